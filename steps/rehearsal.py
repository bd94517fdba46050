"""
The staircase on a clone: every step up, every step down, each landing exactly one stair lower (design section 2).

The clone has the real names in a scratch schema of our own, empty, with stub parents, so no lock falls on the live table or
its parents beyond one SHOW CREATE TABLE. Whatever happens, the scratch schema is removed; one left by a killed run is removed
by the next.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from steps import canary, catalogue, sync
from steps.agreement import Pair
from steps.catalogue import Shape, differences
from steps.errors import Refused, StatementFailed
from steps.ladder import Ladder, Stair, Way
from steps.mysql import VALUE, Session, quote
from steps.plan import Plan, SchemaStep
from steps.target import Target

NOT_SUPPORTED = {1221, 1845, 1846, 1847, 1848, 4092, 4093, 4157}
CANNOT_CREATE_SCHEMA = {1044, 1045, 1142, 1227}
LOCK_S = 30


@dataclass(frozen=True)
class Rehearsed:
    """What the rehearsal learned: the ladder, the pairs, their triggers, and that all of it works up and down."""

    ladder: Ladder
    pairs: tuple[Pair, ...]
    triggers: tuple[sync.SyncTrigger, sync.SyncTrigger]
    baseline_sql: str
    notes: tuple[str, ...] = ()


def scratch_name(target: Target, table: str) -> str:
    """The scratch schema for this table: stable, so that a killed run's leftover is found."""
    return "_rollout_rehearsal_" + hashlib.sha256(f"{target.schema}.{table}".encode()).hexdigest()[:16]


@contextmanager
def scratch(target: Target, plan: Plan) -> Iterator[Session]:
    """
    A session in an empty scratch schema that is removed at the end.

    Raises:
        Refused: no right to create the schema, or another rehearsal of this table is under way.
    """
    own = plan.plan.rehearsal_schema
    name = own or scratch_name(target, plan.table)
    with Session(target) as session:
        if not session.value(f"SELECT GET_LOCK({VALUE}, {VALUE})", name[:64], LOCK_S):
            raise Refused(f"rehearsal of {plan.table}", "another rehearsal of this table is under way", "try again when it ended")
        try:
            if own:
                _empty(session, own)
            else:
                session.run(f"DROP DATABASE IF EXISTS {quote(name)}")
                session.run(f"CREATE DATABASE {quote(name)}")
        except StatementFailed as error:
            if error.errno in CANNOT_CREATE_SCHEMA:
                raise Refused("rehearsal", f"could not look: {error.reason}",
                              "grant CREATE and DROP on a schema of its own and name it as plan.rehearsal_schema") from None
            raise
        try:
            session.run(f"USE {quote(name)}")
            session.schema = name
            yield session
        finally:
            if own:
                _empty(session, own)
            else:
                session.run(f"DROP DATABASE IF EXISTS {quote(name)}")


def _empty(session: Session, schema: str) -> None:
    """Remove every table of the plan's own rehearsal schema."""
    session.run("SET SESSION foreign_key_checks = 0")
    for (table,) in session.query(f"SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = {VALUE}", schema):
        session.run(f"DROP TABLE {quote(schema)}.{quote(str(table))}")
    session.run("SET SESSION foreign_key_checks = 1")


def rehearse(live: Session, target: Target, plan: Plan, baseline_sql: str | None = None) -> Rehearsed:
    """
    Climb and descend the staircase on a clone of *baseline_sql*, else of the live table.

    A live table that is already part of the way up and has no ledger is walked down on the clone first.

    Raises:
        Refused: a step cannot go up or down; names the step, the server's reason, and that nothing was touched.
    """
    with scratch(target, plan) as session:
        _stub_parents(live, session, target.schema, plan.table)
        if baseline_sql is None:
            baseline_sql = _baseline_of(session, plan, catalogue.create_statement(live, target.schema, plan.table))
        session.verbatim(baseline_sql)
        ladder = _climb(session, plan)
        pairs = sync.pairs(session, plan, session.schema or "")
        triggers = sync.sync_triggers(plan.id, pairs)
        notes = _try_sync(session, plan, pairs, triggers)
        return Rehearsed(_descend(session, plan, ladder), pairs, triggers, baseline_sql, notes)


def _stub_parents(live: Session, session: Session, schema: str, table: str) -> None:
    """Empty parents with just the referenced columns, so that foreign keys are real and live parents stay untouched."""
    parents: dict[str, list[str]] = {}
    for parent_schema, parent, column in live.query(
            "SELECT DISTINCT REFERENCED_TABLE_SCHEMA, REFERENCED_TABLE_NAME, REFERENCED_COLUMN_NAME "
            f"FROM information_schema.KEY_COLUMN_USAGE WHERE TABLE_SCHEMA = {VALUE} AND TABLE_NAME = {VALUE} "
            "AND REFERENCED_TABLE_NAME IS NOT NULL", schema, table):
        if parent_schema != schema:
            raise Refused(f"table {table}", f"has a foreign key into another schema, {parent_schema}.{parent}",
                          "could not look: such a table cannot be cloned")
        if parent != table:
            parents.setdefault(str(parent), []).append(str(column))
    for parent, columns in parents.items():
        shape = catalogue.shape(live, schema, parent)
        collation = catalogue.table_collation(live, schema, parent)
        keys = ", ".join(f"INDEX ({quote(column)})" for column in columns)
        body = ", ".join(f"{quote(column)} {shape.columns[column].replace(' AUTO_INCREMENT', '')}" for column in columns)
        session.verbatim(f"CREATE TABLE {quote(parent)} ({body}, UNIQUE INDEX ({', '.join(map(quote, columns))}), {keys}) "
                         f"DEFAULT CHARSET={collation.partition('_')[0]} COLLATE={collation}")


def _up_sql(plan: Plan, step: SchemaStep, shape: Shape) -> str:
    if step.ddl:
        return plan.sql_text[f"{step.ddl}.up.sql"]
    assert step.rename is not None  # noqa: S101  # the model allows nothing else
    old, new = step.rename.old, step.rename.new
    definition = shape.columns.get(old)
    if definition is None:
        raise Refused(f"step {step.name}", f"column {old} does not exist", "correct the plan")
    if "NOT NULL" in definition and "DEFAULT" not in definition:
        raise Refused(f"step {step.name}", f"{old} is NOT NULL without a default, so a second column would refuse the old "
                      "application's INSERTs with 1364 whenever the triggers are off (case C31)", f"give {old} a default first")
    return f"ALTER TABLE {quote(plan.table)} ADD COLUMN {quote(new)} {definition} AFTER {quote(old)}"


def _down_sql(plan: Plan, step: SchemaStep) -> str:
    if step.ddl:
        return plan.sql_text[f"{step.ddl}.down.sql"]
    assert step.rename is not None  # noqa: S101  # the model allows nothing else
    return f"ALTER TABLE {quote(plan.table)} DROP COLUMN {quote(step.rename.new)}"


def _best_way(session: Session, name: str, sql: str, *, adds_fk: bool) -> Way:
    """Send *sql* with the best algorithm the server takes (cases C09, C10, C13); INSTANT, INPLACE, then COPY."""
    ways = [Way(sql, "INSTANT"), Way(sql, "INPLACE"), *([Way(sql, "INPLACE", fk_checks_off=True)] if adds_fk else []), Way(sql, "COPY")]
    reason = ""
    for way in ways:
        try:
            if way.fk_checks_off:
                session.run("SET SESSION foreign_key_checks = 0")
            session.verbatim(way.statement)
        except StatementFailed as error:
            reason = error.reason
            if error.errno not in NOT_SUPPORTED:
                break
        else:
            return way
        finally:
            if way.fk_checks_off:
                session.run("SET SESSION foreign_key_checks = 1")
    raise Refused(f"step {name}", f"does not work on a clone of the table: {reason}", "correct the plan; nothing was touched")


def _climb(session: Session, plan: Plan) -> Ladder:
    schema, stairs = session.schema or "", []
    below = baseline = catalogue.shape(session, schema, plan.table)
    for step in plan.pre_deploy.step:
        sql = _up_sql(plan, step, below)
        up = _best_way(session, step.name, sql, adds_fk="FOREIGN KEY" in sql.upper())
        now = catalogue.shape(session, schema, plan.table)
        if now == below:
            raise Refused(f"step {step.name}", "changes nothing on this table", "remove the step; the table already has its effect")
        stairs.append(Stair(step.name, up, Way(_down_sql(plan, step), "INSTANT"), now, step.after is not None))
        below = now
    return Ladder(baseline, tuple(stairs))


def _descend(session: Session, plan: Plan, ladder: Ladder) -> Ladder:
    """Every way down, proven to land exactly one stair lower; returns the ladder with what was learned of them."""
    stairs = list(ladder.stairs)
    for position in range(ladder.top, 0, -1):
        stair, want = stairs[position - 1], ladder.shape_at(position - 1)
        lost = [name for name in want.indexes if name not in stair.shape.indexes]
        before = tuple(f"ALTER TABLE {quote(plan.table)} ADD {want.indexes[name].replace('INDEX', 'INDEX ' + quote(name), 1)}, "
                       "ALGORITHM=INPLACE, LOCK=NONE" for name in lost)
        for statement in before:
            session.verbatim(statement)
        down = _best_way(session, f"{stair.name} (way back)", stair.down.sql, adds_fk=False)
        have = catalogue.shape(session, session.schema or "", plan.table)
        everything = {kind: set(getattr(have, kind)) | set(getattr(want, kind)) for kind in catalogue.KINDS}
        wrong = differences(have, want, everything)
        if wrong:
            raise Refused(f"step {stair.name}", f"its way back does not land one stair lower: {'; '.join(wrong)}",
                          "correct the .down.sql; nothing was touched")
        stairs[position - 1] = replace(stair, down=replace(down, before=before))
    return Ladder(ladder.baseline, tuple(stairs))


def _try_sync(session: Session, plan: Plan, pairs: tuple[Pair, ...],
              triggers: tuple[sync.SyncTrigger, sync.SyncTrigger]) -> tuple[str, ...]:
    """Create the triggers on the clone, let the canary write as each generation, drop them again."""
    if not pairs:
        return ()
    for trigger in triggers:
        session.verbatim(trigger.create(plan.table, "CURRENT_USER", None))
    try:
        return canary.sing(session, plan.table, session.schema or "", pairs)
    finally:
        for trigger in reversed(triggers):
            session.verbatim(trigger.drop())


def _baseline_of(session: Session, plan: Plan, create_sql: str) -> str:
    """
    The table before any step: *create_sql* itself, or, for a table found half-way, what the downs leave of it.

    Each stair is tried from the top: downs from there, then ups again, must give the same table.
    """
    session.verbatim(create_sql)
    found = catalogue.shape(session, session.schema or "", plan.table)
    for position in range(len(plan.pre_deploy.step), 0, -1):
        try:
            for step in reversed(plan.pre_deploy.step[:position]):
                _best_way(session, step.name, _down_sql(plan, step), adds_fk=False)
            candidate = catalogue.create_statement(session, session.schema or "", plan.table)
            for step in plan.pre_deploy.step[:position]:
                sql = _up_sql(plan, step, catalogue.shape(session, session.schema or "", plan.table))
                _best_way(session, step.name, sql, adds_fk="FOREIGN KEY" in sql.upper())
            if catalogue.shape(session, session.schema or "", plan.table) == found:
                return candidate
        except Refused:
            pass
        finally:
            session.verbatim(f"DROP TABLE {quote(plan.table)}")
        session.verbatim(create_sql)
    session.verbatim(f"DROP TABLE {quote(plan.table)}")
    return create_sql
