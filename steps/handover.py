"""
A copy that would block writes for too long, handed over to pt-online-schema-change (F5, case C09).

The tool copies in chunks and keeps its copy in step by triggers; we look the copy over, compare every row, and put it in the
table's place ourselves, in one hold in a gap. So clients wait for two holds, of the triggers' creation and of the swap.
"""

from __future__ import annotations

import shlex
from contextlib import AbstractContextManager, suppress
from dataclasses import replace

import sqlglot

from steps import catalogue, handover_swap, handover_tool, waits
from steps.catalogue import Shape
from steps.checks import Finding
from steps.checks.grants import grants_of, on_schema
from steps.errors import RolloutError, StatementFailed, Stopped
from steps.handover_hooks import HELD, LOOKING, Orders
from steps.handover_names import KEY_PREFIX, Names, left, obstacle
from steps.hold import SLIP_S
from steps.ladder import Ladder, Stair, Way
from steps.mysql import VALUE, Session, literal, quote
from steps.phase import Phase
from steps.rollout import Rollout
from steps.sync import SyncState

ALGORITHM = f"COPY by {handover_tool.TOOL}"
LOCK = "writes wait for two holds and for single chunks"
COST_MS = (4000.0, 0.06)  # fixed, and per row: copy, throttle and comparison; measured with `make bench-copies`
GAP_WHEN_ENDED_S = 10
ON_SCHEMA = ("SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "REFERENCES", "INDEX", "ALTER", "TRIGGER", "LOCK TABLES")
ON_SERVER = ("PROCESS", "REPLICATION CLIENT", "REPLICATION SLAVE")  # it looks for the server's replicas before it starts


def estimate_ms(rows: int) -> float:
    """How long a hand-over should take on *rows* rows; nobody is blocked meanwhile."""
    return COST_MS[0] + COST_MS[1] * rows


def is_due(rollout: Rollout, way: Way, blocked_ms: float) -> bool:
    """Whether *way* copies for longer than the plan lets writes be blocked, and the tool is there to do it instead."""
    return _blocks(rollout, way, blocked_ms) and not way.before and handover_tool.why_not(rollout.plan) is None


def _blocks(rollout: Rollout, way: Way, blocked_ms: float) -> bool:
    return way.algorithm == "COPY" and blocked_ms > rollout.plan.plan.max_blocked_s * 1000


def refusals(rollout: Rollout, ladder: Ladder, stair: Stair, way: Way, to: int, blocked_ms: float, *, back: bool) -> list[Finding]:
    """A finding where the step to *to* is a copy that would block writes for too long and that cannot be handed over (case C09)."""
    if not _blocks(rollout, way, blocked_ms):
        return []
    limit_s = rollout.plan.plan.max_blocked_s
    reason = "an index has to be put back first" if way.before else _why_not(rollout, ladder, stair, to, back=back)
    if not reason:
        return []
    return [Finding("copy-blocks", "refuse", f"step {stair.name}{' (way back)' if back else ''}",
                    f"can only be done by copying the table; writes would be blocked for about {blocked_ms / 1000:.1f} s, the plan allows "
                    f"{limit_s:g} s, and it cannot be handed over to {handover_tool.TOOL}: {reason}",
                    "remove that reason, or do it in a quiet time with a larger plan.max_blocked_s")]


def leftovers(rollout: Rollout) -> list[Finding]:
    """What a killed hand-over left, told before the next start removes it (case C73)."""
    found = left(rollout.session, rollout.schema, rollout.table)
    return [Finding("handover", "warn", f"table {rollout.table}", f"has {', '.join(found)} of a hand-over that was cut short or is under "
                    "way: every write goes to the copy as well", "nothing to do: the next `rollout run` or `rollout rollback` removes "
                    "them first")] if found else []


def missing_rights(session: Session, schema: str) -> str | None:
    """What the account lacks to let the tool copy a table of *schema* and to swap it in, or None; a denial would come half-way."""
    grants = grants_of(session)
    lacking = [f"{', '.join(rights)} on {shown}" for wanted, where, shown in (
        (ON_SCHEMA, schema, on_schema(session, schema)), (ON_SERVER, "*", "*.*")) if (rights := grants.lacks(wanted, where))]
    return f"the account lacks {' and '.join(lacking)}" if lacking else None


def _why_not(rollout: Rollout, ladder: Ladder, stair: Stair, to: int, *, back: bool) -> str | None:
    """Why the step to position *to* cannot be handed over, or None. On the way back our triggers are off by then."""
    late = stair.after_first_pass and bool(rollout.plan.filled_columns) and not rollout.plan.plan.syncs_late
    sync_stands = not back and (late or rollout.sync_state() is not SyncState.OFF)
    return handover_tool.why_not(rollout.plan) or _in_the_way(rollout, ladder.shape_at(to + 1 if back else to - 1), sync_stands=sync_stands)


def _in_the_way(rollout: Rollout, below: Shape, *, sync_stands: bool) -> str | None:
    """What of the table or of the account keeps the tool from copying, or None."""
    return (handover_tool.cannot_be_told(rollout.target)
            or obstacle(rollout.session, rollout.plan, rollout.schema, below, sync_stands=sync_stands)
            or missing_rights(rollout.session, rollout.schema))


def clauses(sql: str) -> str:
    """What follows the table's name in an ALTER TABLE of the plan."""
    return sql[list(sqlglot.tokenize(sql, read="mysql"))[2].end + 1:].strip()


def statement(sql: str) -> str:
    """*sql* as the tool is given it, for people and for the ledger."""
    return f"{handover_tool.TOOL} --alter {shlex.quote(clauses(sql))}"


def carry_out(rollout: Rollout, stair: Stair, way: Way, to: int, ladder: Ladder, direction: str, estimated_ms: float) -> None:
    """
    Bring the table to position *to* by the tool. Safe to repeat from any point, also after kill -9.

    Raises:
        Busy: the tool of an earlier run still works.
        NoGap, LockWaited: no moment for a hold came; the copy is removed again.
        Stopped: the tool failed, or its copy is not the table it should be; the table itself is as it was.
    """
    handover_swap.finish(rollout)
    if ladder.position(rollout.live(), rollout.table) == to:
        return
    found = _in_the_way(rollout, rollout.live(), sync_stands=rollout.sync_state() is not SyncState.OFF)
    if found:
        raise Stopped(f"step {stair.name}", f"cannot be handed over: {found}", "nothing was changed by this step")
    alter = clauses(way.sql)
    with rollout.timed(Phase(stair.phase), stair.name, direction=direction, statement=statement(way.sql)) as facts:
        facts |= {"algorithm": ALGORITHM, "estimate_ms": round(estimated_ms, 1)}
        try:
            began = waits.now_s()
            looked_s = _copy(rollout, alter)
            facts |= {"copied_s": round(waits.now_s() - began, 1), "waited_for_gap_s": round(looked_s, 1)}
            handover_swap.refuse_another_shape(rollout, ladder.shape_at(to))
            if rollout.plan.handover.compare_rows:
                facts["rows"] = handover_swap.refuse_another_content(rollout)
            held_ms, waited_s = handover_swap.swap(rollout)
            facts |= {"held_ms": round(held_ms, 1), "waited_for_gap_s": round(looked_s + waited_s, 1)}
        except BaseException:
            _clean_up(rollout)
            raise


def _clean_up(rollout: Rollout) -> None:
    """After an end that was not meant: triggers and copy go now if a gap comes soon, else at the next start."""
    limits = rollout.limits
    try:
        _end_its_session(rollout)
        handover_swap.finish(rollout, replace(limits, gap_wait_s=min(GAP_WHEN_ENDED_S, limits.gap_wait_s)))
    except RolloutError as standing:
        rollout.say("the hand-over's triggers and copy are left; the next start removes them", why=str(standing))


def _end_its_session(rollout: Rollout) -> None:
    """The process is gone; a statement of it may still run in the server."""
    holder = rollout.session.value(f"SELECT IS_USED_LOCK({VALUE})", Names(rollout.schema, rollout.table).lock)
    if holder is not None:
        with suppress(StatementFailed):  # it ended by itself
            rollout.session.run(f"KILL {int(holder)}")


def _copy(rollout: Rollout, alter: str) -> float:
    """Let the tool copy; return the seconds it looked for its gap."""
    names = Names(rollout.schema, rollout.table)
    related = catalogue.related_tables(rollout.session, rollout.schema, rollout.table)
    keys = catalogue.shape(rollout.session, rollout.schema, rollout.table).foreign_keys
    add = ", ".join(f"ADD CONSTRAINT {quote(KEY_PREFIX + name)} {text}" for name, text in keys.items())
    orders = Orders(
        lock=names.lock, relatives=_holders(related, plain=rollout.limits.plain),
        holders=_holders([(rollout.schema, rollout.table), *related], plain=rollout.limits.plain),
        gap_wait_s=rollout.limits.gap_wait_s, hold=f"LOCK TABLES {names.full(names.table)} WRITE, {names.full(names.new)} WRITE",
        copy=("SET SESSION foreign_key_checks = 0", f"DROP TABLE {names.full(names.new)}",
              f"CREATE TABLE {names.full(names.new)} LIKE {names.full(names.table)}", "SET SESSION foreign_key_checks = 1"),
        keys=("SET SESSION foreign_key_checks = 0", f"ALTER TABLE {names.full(names.new)} {add}, ALGORITHM=INPLACE",
              "SET SESSION foreign_key_checks = 1") if add else ())
    at = dict[str, float]()

    def told(line: str) -> None:
        if line in (LOOKING, HELD):
            at[line] = waits.now_s()
        rollout.check_owner()
        rollout.say(handover_tool.TOOL, line=line)
        for session in (rollout.ledger.session, rollout.watchdog.session) if "%" in line else ():
            session.value("SELECT 1")  # a copy may last longer than a silent connection lives

    def watched(quickly: bool) -> AbstractContextManager[None]:
        connection = int(rollout.session.value(f"SELECT IS_USED_LOCK({VALUE})", names.lock) or 0)
        watchdog, limits = rollout.watchdog, rollout.limits
        if quickly and not limits.plain:
            return watchdog.after(connection, SLIP_S)
        return watchdog.while_waiting(connection, limits.patience_s)

    handover_tool.copy(rollout.plan, rollout.target, alter, names.new, orders, told, watched)
    return at.get(HELD, 0) - at.get(LOOKING, 0)


def _holders(tables: list[tuple[str, str]], *, plain: bool) -> str:
    """A query that counts who holds one of *tables*; without a right to look, or a table, always nobody."""
    if plain or not tables:
        return "SELECT 0"
    each = " OR ".join(f"(OBJECT_SCHEMA = {literal(schema)} AND OBJECT_NAME = {literal(table)})" for schema, table in tables)
    return ("SELECT COUNT(*) FROM performance_schema.metadata_locks WHERE OBJECT_TYPE = 'TABLE' AND OWNER_THREAD_ID <> "
            f"PS_CURRENT_THREAD_ID() AND ({each})")
