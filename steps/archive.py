"""
The archive: what cleanup takes away, kept by key, counted and compared with the table before anything is dropped (case C98).

One table beside the ledger for each plan, `_rollout_archive_<hash>`: the primary key and the removed columns as they were.
"""

from __future__ import annotations

import hashlib
import re

from steps import catalogue, waits
from steps.agreement import Pair
from steps.errors import Stopped
from steps.keyset import Key, Keyset, decode, encode
from steps.mysql import quote
from steps.phase import Phase
from steps.rollout import Rollout
from steps.rungs import tombstone
from steps.sync import column_facts

PASS = "archive"  # noqa: S105  # a pass over rows
ROWS, COPIED_ANEW = 2000, 20
CHANGES_BY_ITSELF = re.compile(r"(?P<text>'(?:[^'\\]|\\.|'')*')| ON UPDATE CURRENT_TIMESTAMP(?:\(\d\))?| INVISIBLE", re.DOTALL)


def name(rollout: Rollout) -> str:
    """The archive's quoted name."""
    return f"{quote(rollout.ledger.home)}.{quote(plain_name(rollout))}"


def plain_name(rollout: Rollout) -> str:
    return "_rollout_archive_" + hashlib.sha256("/".join(rollout.ledger.key).encode()).hexdigest()[:24]


def stands(rollout: Rollout) -> bool:
    return catalogue.exists(rollout.session, rollout.ledger.home, plain_name(rollout))


def is_complete(rollout: Rollout) -> bool:
    """Whether this cleanup's archive was filled and found equal to the table; one left by an earlier cleanup does not count."""
    return bool((rollout.ledger.passes().get(PASS) or {}).get("finished_at")) and stands(rollout)


def fill(rollout: Rollout) -> None:
    """
    Copy the tombstones of every row by key, chunk by chunk; on record with rows and checksum. Safe to repeat and to kill.

    Tombstones no longer change: nobody names them and the triggers are off. Takes no lock on rows. An archive that somebody took away
    meanwhile is filled anew from the first row, as the columns still stand.

    Raises:
        Stopped: the archive is not equal to the table afterwards.
    """
    live, keyset = rollout.live(), rollout.walk_without_pairs().keyset
    kept = ", ".join(quote(c) for c in rollout.plan.removed_columns)
    buried = ", ".join(quote(tombstone(c)) for c in rollout.plan.removed_columns)
    insert = f"INSERT INTO {name(rollout)} ({keyset.select}, {kept}) SELECT {keyset.select}, {buried} FROM {keyset.name}"
    with rollout.timed(Phase.CLEANUP, "archive", statement=f"{insert} WHERE {keyset.among_elided}") as facts:
        if PASS not in rollout.ledger.passes():
            remove(rollout)  # one that an earlier cleanup left behind
        elif not stands(rollout):
            rollout.ledger.reset_pass(PASS)
        _create(rollout, live, keyset.columns)
        rollout.ledger.start_pass(PASS)
        if not rollout.ledger.passes()[PASS]["finished_at"]:
            _copy(rollout, keyset, insert)
            _refuse_unequal(rollout, keyset)
            rollout.ledger.end_sweep(PASS, finished=True)
        facts["rows"] = int(rollout.session.value(f"SELECT COUNT(*) FROM {name(rollout)}"))
        facts["checksum"] = checksum(rollout)


def remove(rollout: Rollout) -> None:
    """Drop the archive: its values are back on the table, or nobody may need them any more. Safe to repeat."""
    rollout.session.run(f"DROP TABLE IF EXISTS {name(rollout)}")


def checksum(rollout: Rollout) -> int:
    """A checksum over keys and values, independent of order."""
    columns = ", ".join(f"HEX({quote(c)})" for c in [*rollout.walk_without_pairs().keyset.columns, *rollout.plan.removed_columns])
    return int(rollout.session.value(f"SELECT BIT_XOR(CAST(CRC32(CONCAT_WS('/', {columns})) AS UNSIGNED)) FROM {name(rollout)}") or 0)


def restore(rollout: Rollout) -> None:
    """
    Put archived values back where no mapping decides: columns without a counterpart, and pairs whose new value has none.

    Before the triggers come on, since they would take the old side's change for V0's. Rows are picked with SKIP LOCKED, so no
    application statement waits for a wait of ours. Rows born after the archive have nothing there. Safe to repeat. On record with rows.
    """
    keyset, by_pair = rollout.walk_without_pairs().keyset, {pair.old: pair for pair in rollout.pairs()}
    wanted = {c: _where_undecided(by_pair[c]) if c in by_pair else f"a.{quote(c)}" for c in rollout.plan.removed_columns}
    differ = " OR ".join(f"NOT (HEX(t.{quote(c)}) <=> HEX({value}))" for c, value in wanted.items())
    keep = [f"t.{quote(c)} = t.{quote(c)}" for c in catalogue.self_updating_columns(rollout.session, rollout.schema, rollout.table)]
    sets = ", ".join([f"t.{quote(c)} = {value}" for c, value in wanted.items()] + keep)
    source = _source(rollout, keyset)
    update = f"UPDATE {source} SET {sets}"
    with rollout.timed(Phase.CLEANUP, "restore from the archive", direction="back",
                       statement=f"{update} WHERE {keyset.among_elided}") as facts:
        facts["rows"] = _put_back(rollout, keyset, source, differ, update)


def _put_back(rollout: Rollout, keyset: Keyset, source: str, differ: str, update: str) -> int:
    """Run *update* on the rows of *source* that *differ*, sweep by sweep; return how many there were."""
    key = ", ".join(f"t.{quote(c)}" for c in keyset.columns)
    restored = 0
    for sweep in range(rollout.plan.backfill.max_passes):
        left, cursor = 0, None
        while chunk := keyset.next_keys(rollout.session, cursor, ROWS):
            rollout.check_owner()
            among, values = keyset.among(chunk, "t.")
            left += int(rollout.session.value(f"SELECT COUNT(*) FROM {source} WHERE {among} AND ({differ})", *values))
            with rollout.session.transaction():
                picked = rollout.session.query(f"SELECT {key} FROM {source} WHERE {among} AND ({differ}) "
                                               "FOR UPDATE OF t SKIP LOCKED", *values)
                if picked:
                    mine, keys = keyset.among(picked, "t.")
                    rollout.session.run(f"{update} WHERE {mine}", *keys)
            restored, left, cursor = restored + len(picked), left - len(picked), chunk[-1]
        if left <= 0:
            return restored
        waits.sleep_s(min(0.1 * (sweep + 1), 2))
    raise Stopped(f"archive of {rollout.table}", f"{left} rows stayed locked by the application", "run the same command again")


def _source(rollout: Rollout, keyset: Keyset, join: str = "JOIN") -> str:
    """The table as `t` with its archive as `a`, by key."""
    on = " AND ".join(f"a.{quote(c)} = t.{quote(c)}" for c in keyset.columns)
    return f"{keyset.name} AS t {join} {name(rollout)} AS a ON {on}"


def _where_undecided(pair: Pair) -> str:
    """The archived old value where the new side has no counterpart and the two agree; else what is there."""
    if pair.value_map is None:
        return f"t.{quote(pair.old)}"
    archived, new = pair.bytes_of(f"a.{quote(pair.old)}"), pair.bytes_of(f"t.{quote(pair.new)}")
    allowed = pair.pairs_in(archived, new)
    return f"CASE WHEN NOT {pair.old_is_known('t.')} AND {allowed} THEN a.{quote(pair.old)} ELSE t.{quote(pair.old)} END"


def _create(rollout: Rollout, live: catalogue.Shape, key: tuple[str, ...]) -> None:
    if stands(rollout):
        return
    collation = catalogue.table_collation(rollout.session, rollout.schema, rollout.table)
    columns = [f"{quote(c)} {live.columns[c].replace(' AUTO_INCREMENT', '')}" for c in key]
    columns += [f"{quote(c)} {_plain(live.columns[tombstone(c)])}" for c in rollout.plan.removed_columns]
    create = (f"CREATE TABLE IF NOT EXISTS {name(rollout)} ({', '.join(columns)}, PRIMARY KEY ({', '.join(map(quote, key))})) "
              f"ENGINE=InnoDB DEFAULT CHARSET={collation.partition('_')[0]} COLLATE={collation}")
    with rollout.timed(Phase.CLEANUP, "archive table", statement=create):
        rollout.session.run(create)


def _plain(definition: str) -> str:
    """*definition* of a column that keeps what it was given and is seen; words in its default or comment are left as they are."""
    return CHANGES_BY_ITSELF.sub(lambda found: found.group("text") or "", definition)


def _copy(rollout: Rollout, keyset: Keyset, insert: str) -> None:
    cursor: Key | None = decode(rollout.ledger.passes()[PASS]["cursor"])
    while chunk := keyset.next_keys(rollout.session, cursor, ROWS):
        rollout.check_owner()
        among, values = keyset.among(chunk)
        with rollout.session.transaction():
            rows = rollout.session.run(f"{insert} WHERE {among}", *values)
            rollout.ledger.move_pass(rollout.session, PASS, encode(chunk[-1]), len(chunk), rows)
        cursor = chunk[-1]


def _refuse_unequal(rollout: Rollout, keyset: Keyset) -> None:
    """
    A default that is not constant cannot be told from a value, so such a column does not speak for a row without an archive. A row that V2
    has borne again under its key since it was copied (REPLACE, or DELETE and INSERT) holds nothing but defaults, and is copied anew.

    Raises:
        Stopped: rows of the table differ from their archived values, by bytes, or have none; one born since holds nothing but defaults.
    """
    buried = [(quote(c), tombstone(c)) for c in rollout.plan.removed_columns]
    differ = " OR ".join(f"NOT (HEX(a.{c}) <=> HEX(t.{quote(t)}))" for c, t in buried)
    facts = [(quote(t), column_facts(rollout.session, rollout.schema, rollout.table, t)) for _, t in buried]
    given = " OR ".join(f"NOT (HEX(t.{t}) <=> HEX(DEFAULT(t.{t})))" for t, fact in facts if not fact.default_is_expression) or "FALSE"
    missing = f"a.{quote(keyset.columns[0])} IS NULL"
    both = _source(rollout, keyset, "LEFT JOIN")
    for _ in range(COPIED_ANEW):
        wrong = int(rollout.session.value(f"SELECT COUNT(*) FROM {both} WHERE IF({missing}, {given}, {differ})"))
        if not wrong or not _copy_anew(rollout, keyset, f"({differ}) AND NOT ({given})"):
            break
    if wrong:
        raise Stopped(f"archive of {rollout.table}", f"{wrong} rows differ from the table",
                      f"nothing was dropped; DROP TABLE {name(rollout)}, and the same command fills it anew")


def _copy_anew(rollout: Rollout, keyset: Keyset, born_again: str) -> int:
    """Bring the archive of rows that were *born_again* up to date, some at a time; how many there were."""
    source, key = _source(rollout, keyset), ", ".join(f"t.{quote(c)}" for c in keyset.columns)
    rows = rollout.session.query(f"SELECT {key} FROM {source} WHERE {born_again} LIMIT {ROWS}")
    if rows:
        rollout.check_owner()
        among, values = keyset.among(rows, "t.")
        sets = ", ".join(f"a.{quote(c)} = t.{quote(tombstone(c))}" for c in rollout.plan.removed_columns)
        rollout.session.run(f"UPDATE {source} SET {sets} WHERE {among} AND {born_again}", *values)
    return len(rows)
