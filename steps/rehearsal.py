"""
The staircase on a clone: every step up, every step down, each landing exactly one stair lower (design section 2).

The clone has the real names in a scratch schema (:mod:`steps.scratch`), so plan SQL runs there to the letter.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from steps import canary, catalogue, rungs, sync, waits
from steps.agreement import Pair
from steps.catalogue import Shape, differences
from steps.errors import Refused, StatementFailed
from steps.ladder import Ladder, Stair, Way
from steps.mysql import Session, quote
from steps.phase import Phase
from steps.plan import Plan
from steps.scratch import scratch, stub_parents
from steps.target import Target

NOMINAL_MS = 60.0  # a stair's tries, looks and share of the canary on the machine that the estimates come from
NOT_SUPPORTED = {1221, 1845, 1846, 1847, 1848, 4092, 4093, 4157}


@dataclass(frozen=True)
class Rehearsed:
    """What the rehearsal learned: the ladder, the pairs, their triggers, and that all of it works up and down."""

    ladder: Ladder
    pairs: tuple[Pair, ...]
    triggers: tuple[sync.SyncTrigger, sync.SyncTrigger]
    baseline_sql: str
    slowness: float = 1.0
    notes: tuple[str, ...] = ()


def rehearse(live: Session, target: Target, plan: Plan, baseline_sql: str | None = None) -> Rehearsed:
    """
    Climb and descend the staircase on a clone of *baseline_sql*, else of the live table.

    A live table that is already part of the way up and has no ledger is walked down on the clone first.

    Raises:
        Refused: a step cannot go up or down; names the step, the server's reason, and that nothing was touched.
    """
    with scratch(target, plan) as session:
        stub_parents(live, session, target.schema, plan.table)
        if baseline_sql is None:
            baseline_sql = _baseline_of(session, plan, catalogue.create_statement(live, target.schema, plan.table))
        session.verbatim(baseline_sql)
        began, wanted = waits.now_s(), rungs.rungs(plan)
        bottom = Ladder(catalogue.shape(session, session.schema or "", plan.table), ())
        ladder = _climb(session, plan, [rung for rung in wanted if rung.phase is Phase.PRE_DEPLOY], bottom)
        pairs = sync.pairs(session, plan, session.schema or "")
        triggers = sync.sync_triggers(plan.id, pairs)
        notes = _try_sync(session, plan, pairs, triggers)
        ladder = _climb(session, plan, [rung for rung in wanted if rung.phase is Phase.CLEANUP], ladder)
        slowness = (waits.now_s() - began) * 1000 / max(1.0, NOMINAL_MS * len(ladder.stairs))
        return Rehearsed(_descend(session, plan, ladder), pairs, triggers, baseline_sql, min(10.0, max(1.0, slowness)), notes)


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


def _climb(session: Session, plan: Plan, wanted: list[rungs.Rung], ladder: Ladder) -> Ladder:
    """*ladder* with the *wanted* rungs on top, each with the shape it leads to; rungs with nothing to do are left out."""
    schema, stairs = session.schema or "", list(ladder.stairs)
    below = ladder.shape_at(ladder.top)
    for rung in wanted:
        sql = rung.up(below)
        if not sql:
            continue
        up = _best_way(session, rung.name, sql, adds_fk="FOREIGN KEY" in sql.upper())
        now = catalogue.shape(session, schema, plan.table)
        if now == below:
            raise Refused(f"step {rung.name}", "changes nothing on this table", "remove the step; the table already has its effect")
        stairs.append(Stair(rung.name, up, Way(rung.down(below), "INSTANT"), now, rung.phase.value, rung.after_first_pass))
        below = now
    return Ladder(ladder.baseline, tuple(stairs))


def _descend(session: Session, plan: Plan, ladder: Ladder) -> Ladder:
    """Every way down, proven to land exactly one stair lower; returns the ladder with what was learned of them."""
    stairs = list(ladder.stairs)
    for position in range(ladder.top, 0, -1):
        stair, want = stairs[position - 1], ladder.shape_at(position - 1)
        before = _lost_indexes(plan, stair, want)
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


def _lost_indexes(plan: Plan, stair: Stair, want: Shape) -> tuple[str, ...]:
    """Statements that put back indexes MySQL made for a foreign key and dropped when the step up brought a better one."""
    if stair.phase != Phase.PRE_DEPLOY.value:
        return ()
    return tuple(f"ALTER TABLE {quote(plan.table)} ADD {want.indexes[name].replace('INDEX', 'INDEX ' + quote(name), 1)}, "
                 "ALGORITHM=INPLACE, LOCK=NONE" for name in want.indexes if name not in stair.shape.indexes)


def _try_sync(session: Session, plan: Plan, pairs: tuple[Pair, ...],
              triggers: tuple[sync.SyncTrigger, sync.SyncTrigger]) -> tuple[str, ...]:
    """Create the triggers on the clone, let the canary write as each generation, drop them again."""
    if not pairs:
        return ()
    for trigger in triggers:
        session.verbatim(trigger.create(plan.table, "CURRENT_USER", None))
    try:
        if sync.state(session, session.schema or "", plan.table, triggers) is not sync.SyncState.ON:
            raise Refused("sync triggers", "read back from the server as another text than was sent, so they could never be compared",
                          "rename columns whose names hold backticks, or leave them out of the plan's pairs")
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
    schema, expand = session.schema or "", [rung for rung in rungs.rungs(plan) if rung.phase is Phase.PRE_DEPLOY]
    found = catalogue.shape(session, schema, plan.table)
    for position in range(len(expand), 0, -1):
        try:
            for rung in reversed(expand[:position]):
                _best_way(session, rung.name, rung.down(found), adds_fk=False)
            candidate = catalogue.create_statement(session, schema, plan.table)
            for rung in expand[:position]:
                sql = rung.up(catalogue.shape(session, schema, plan.table))
                _best_way(session, rung.name, sql, adds_fk="FOREIGN KEY" in sql.upper())
            if catalogue.shape(session, schema, plan.table) == found:
                return candidate
        except Refused:
            pass
        finally:
            session.verbatim(f"DROP TABLE {quote(plan.table)}")
        session.verbatim(create_sql)
    session.verbatim(f"DROP TABLE {quote(plan.table)}")
    return create_sql
