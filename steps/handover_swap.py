"""
The copy takes the table's place in one hold, with every foreign key named as before; and what a killed hand-over left goes away.

Each state that a kill can leave is told by the catalogue alone, and the way from it goes on with :func:`finish` (case C73):
a copy without a replaced original was not swapped and is removed, a replaced original stands until all names are right.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from steps import catalogue, waits
from steps.catalogue import Shape, differences
from steps.errors import Busy, Stopped
from steps.handover_names import KEY_PREFIX, Names, child_keys, is_ours, standing
from steps.hold import Limits, hold
from steps.keyset import Key, Keyset, shown_key
from steps.mysql import VALUE, Session, quote
from steps.rollout import Rollout

TEXTS = ("char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set")
ENDING_TRIES, ENDING_WAIT_S = 20, 0.25


def names_of(rollout: Rollout) -> Names:
    return Names(rollout.schema, rollout.table)


def wait_for_the_tools_end(rollout: Rollout) -> None:
    """
    Wait some seconds for a tool of an earlier run of ours to end.

    Raises:
        Busy: it still copies; names its connection.
    """
    for _ in range(ENDING_TRIES):
        holder = rollout.session.value(f"SELECT IS_USED_LOCK({VALUE})", names_of(rollout).lock)
        if holder is None:
            return
        waits.sleep_s(ENDING_WAIT_S)
    raise Busy(f"table {rollout.table}", f"pt-online-schema-change of an earlier run still copies it (connection {holder})",
               "wait for its end or end that process, then run the same command again")


def finish(rollout: Rollout, limits: Limits | None = None) -> None:
    """
    Remove what a hand-over that was cut short left, or end its swap. Safe to repeat; one look where there is nothing.

    *limits* are the plan's unless given.
    """
    names = names_of(rollout)
    left = standing(rollout.session, names)
    triggers = [t for t in catalogue.triggers(rollout.session, rollout.schema, rollout.table) if is_ours(t, names)]
    if not left and not triggers:
        return
    wait_for_the_tools_end(rollout)
    left = standing(rollout.session, names)
    children = [key for parent in (names.table, names.new) for key in child_keys(rollout.session, names, parent)
                if key[2].startswith(KEY_PREFIX)]
    rollout.say("ending a hand-over that was cut short", left=sorted(left), triggers=len(triggers))
    with _held(rollout, names, left | {rollout.table}, children, limits) as (session, _waited_s):
        rollout.check_owner()
        for trigger in triggers:
            session.verbatim(f"DROP TRIGGER IF EXISTS {names.full(trigger.name)}")
        _name_back(session, names, children)
        if names.old in left:
            _keep_counter(session, names)
        for table in left:
            _without_keys(session, names, table)
    for table in sorted(left):
        rollout.check_owner()
        rollout.session.verbatim(f"DROP TABLE {names.full(table)}")


def swap(rollout: Rollout) -> tuple[float, float]:
    """
    Put the copy in the table's place; return the milliseconds in which clients waited, and the seconds waited for the gap.

    A child's key moves to the copy before, so that at no moment one points at the replaced original.
    """
    names = names_of(rollout)
    children = child_keys(rollout.session, names, rollout.table)
    with _held(rollout, names, {rollout.table, names.new}, children) as (session, waited_s):
        began = waits.now_s()
        for schema, child, key, text in children:
            moved = text.replace(f" REFERENCES {quote(names.table)} (", f" REFERENCES {names.full(names.new)} (", 1)
            _replace_key(session, f"{quote(schema)}.{quote(child)}", key, KEY_PREFIX + key, moved)
        rollout.check_owner()
        session.verbatim(f"RENAME TABLE {names.full(names.table)} TO {names.full(names.old)}, "
                         f"{names.full(names.new)} TO {names.full(names.table)}")
        _keep_counter(session, names)
        _without_keys(session, names, names.old)
        _name_back(session, names, child_keys(session, names, names.table))
        held_ms = (waits.now_s() - began) * 1000
    rollout.check_owner()
    rollout.session.verbatim(f"DROP TABLE {names.full(names.old)}")
    return held_ms, waited_s


@contextmanager
def _held(rollout: Rollout, names: Names, tables: set[str], children: list[tuple[str, str, str, str]],
          limits: Limits | None = None) -> Iterator[tuple[Session, float]]:
    """A hold of *tables* and of the children whose keys change, in a gap; inside without foreign-key checks, so all is metadata."""
    ours = sorted({(names.schema, table) for table in tables} | {(schema, table) for schema, table, _, _ in children})
    related = {found for schema, table in ours for found in catalogue.related_tables(rollout.session, schema, table)} - set(ours)
    limits = limits or rollout.limits
    with hold(rollout.target, rollout.watchdog, limits, ours, sorted(related), rollout.check_owner) as (session, waited_s):
        session.run(f"USE {quote(names.schema)}")
        session.run("SET SESSION foreign_key_checks = 0")
        with rollout.watchdog.while_waiting(session.connection_id, limits.patience_s):
            yield session, waited_s


def _replace_key(session: Session, table: str, name: str, by: str, text: str) -> None:
    """In one statement, under another name: MySQL refuses to drop and add the same one at once (1826)."""
    session.verbatim(f"ALTER TABLE {table} DROP FOREIGN KEY {quote(name)}, ADD CONSTRAINT {quote(by)} {text}, "
                     "ALGORITHM=INPLACE, LOCK=NONE")


def _name_back(session: Session, names: Names, children: list[tuple[str, str, str, str]]) -> None:
    """Every key that bears our prefix gets its own name again, on the table and on its children; theirs point at the table."""
    for schema, child, key, text in children:
        if key.startswith(KEY_PREFIX):
            home = text
            for parent in (quote(names.new), names.full(names.new)):
                home = home.replace(f" REFERENCES {parent} (", f" REFERENCES {names.full(names.table)} (", 1)
            _replace_key(session, f"{quote(schema)}.{quote(child)}", key, key.removeprefix(KEY_PREFIX), home)
    for key, text in catalogue.shape(session, names.schema, names.table).foreign_keys.items():
        if key.startswith(KEY_PREFIX):
            _without_keys(session, names, names.old)  # keys are unique in a schema: the original's go first
            _replace_key(session, names.full(names.table), key, key.removeprefix(KEY_PREFIX), text)


def _without_keys(session: Session, names: Names, table: str) -> None:
    """Take *table*'s foreign keys off, so that its drop asks for no lock on their parents. Safe to repeat."""
    keys = catalogue.shape(session, names.schema, table).foreign_keys
    if keys:
        session.verbatim(f"ALTER TABLE {names.full(table)} " + ", ".join(f"DROP FOREIGN KEY {quote(key)}" for key in keys)
                         + ", ALGORITHM=INPLACE, LOCK=NONE")


def _keep_counter(session: Session, names: Names) -> None:
    """The tool copies rows, not the AUTO_INCREMENT counter, and without it a deleted row's key would come again. Safe to repeat."""
    was, now = (int(session.value("SELECT AUTO_INCREMENT FROM information_schema.TABLES WHERE TABLE_SCHEMA = "
                                  f"{VALUE} AND TABLE_NAME = {VALUE}", names.schema, table) or 0) for table in (names.old, names.table))
    if was > now:
        session.verbatim(f"ALTER TABLE {names.full(names.table)} AUTO_INCREMENT = {was}, ALGORITHM=INPLACE, LOCK=NONE")


def refuse_another_shape(rollout: Rollout, want: Shape) -> None:
    """
    Raises:
        Stopped: the copy is not the table that the rehearsal saw on this stair; it was not swapped.
    """
    names = names_of(rollout)
    found = catalogue.shape(rollout.session, names.schema, names.new)
    have = Shape(found.columns, found.indexes, {k.removeprefix(KEY_PREFIX): v for k, v in found.foreign_keys.items()}, found.checks)
    wrong = differences(have, want, {kind: {*getattr(have, kind), *getattr(want, kind)} for kind in catalogue.KINDS})
    if wrong:
        raise Stopped(f"table {names.new}", f"is not what the clone was: {'; '.join(wrong)}",
                      "the table itself is as it was; the next start removes the copy. Tell us, or do without [handover]")


def refuse_another_content(rollout: Rollout) -> int:
    """
    Compare table and copy row by row, in chunks, each in one snapshot; return the number of rows.

    The tool copies with INSERT IGNORE, which loses in silence what the new table refuses.

    Raises:
        Stopped: they differ; says behind which key. The copy was not swapped.
    """
    names, session = names_of(rollout), rollout.session
    keyset = Keyset.of(session, names.schema, names.table)
    digest = _digest(catalogue.shape(session, names.schema, names.table), catalogue.shape(session, names.schema, names.new))
    rows = 0
    cursor: Key | None = None
    while True:
        rollout.check_owner()
        stretch = keyset.next_stretch(session, cursor, rollout.plan.backfill.largest_chunk_rows)
        condition, values = keyset.between(cursor, stretch.end if stretch else None)
        look = f"SELECT CAST(CONCAT(COUNT(*), ' ', BIT_XOR({digest})) AS CHAR) FROM"
        each = [f"({look} {names.full(table)} FORCE INDEX (PRIMARY) WHERE {condition})"
                for table in (names.table, names.new)]
        ours, theirs = session.one(f"SELECT {', '.join(each)}", *values, *values)
        if ours != theirs:
            raise Stopped(f"table {names.new}", f"differs from the table behind key {shown_key(cursor) if cursor else '(first)'}",
                          "the table itself is as it was; the next start removes the copy and copies anew")
        rows += int(str(ours).split()[0])
        if stretch is None:
            return rows
        cursor = stretch.end


def _digest(have: Shape, copy: Shape) -> str:
    """A row's fingerprint over what both tables must hold alike; of a column of another type only whether it is NULL."""
    parts = []
    for column, definition in have.columns.items():
        if column not in copy.columns:
            continue
        name, text = quote(column), definition.split("(")[0].split(" ")[0] in TEXTS
        as_text = text and copy.columns[column].split("(")[0].split(" ")[0] in TEXTS
        parts.append(f"ISNULL({name})")
        if as_text:
            parts.append(f"CAST(CONVERT({name} USING utf8mb4) AS BINARY)")
        elif definition == copy.columns[column]:
            parts.append(f"CAST({name} AS BINARY)")
    return f"CRC32(CONCAT_WS(',', {', '.join(parts)}))"
