"""
Climbing and descending the ladder on the live table: ask, act, look, and as few exclusive metadata locks as possible (F24).

What fits `max_stall_ms` by estimate goes together into one hold; what does not goes alone, outside, with its estimate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from steps import aftermath, catalogue, handover, sync_install
from steps.catalogue import differences
from steps.checks import Finding
from steps.errors import StatementFailed, Stopped
from steps.estimates import estimate_ms, works_through
from steps.hold import Gap, alone, hold
from steps.hold_clock import HoldClock
from steps.ladder import Ladder, Stair, Way
from steps.ledger import Event
from steps.mysql import Session, quote
from steps.phase import Phase
from steps.rollout import Rollout
from steps.unchecked import without_foreign_key_checks

HOLD_SHARE = 0.6
SYNC_MS = 80.0


@dataclass(frozen=True)
class Move:
    """One stair in one direction: *to* is the position after it; *handed_over* when another tool copies (:mod:`steps.handover`)."""

    stair: Stair
    way: Way
    to: int
    estimate_ms: float
    handed_over: bool = False

    @property
    def algorithm(self) -> str:
        return handover.ALGORITHM if self.handed_over else self.way.algorithm

    @property
    def statement(self) -> str:
        return handover.statement(self.way.sql) if self.handed_over else self.way.statement


@dataclass(frozen=True)
class Group:
    """
    Moves that go together: in one hold, or a single one alone outside.

    Triggers go off before the first move (a trigger is always gone before a column it names, case C43) or come on after the last.
    """

    moves: tuple[Move, ...]
    in_hold: bool
    sync: Literal["on", "off"] | None = None
    phase: Phase = Phase.PRE_DEPLOY

    @property
    def name(self) -> str:
        names = [move.stair.name for move in self.moves]
        names += {"on": ["sync triggers"], "off": ["sync triggers off"]}.get(self.sync or "", [])
        return ("one hold: " if self.in_hold else "alone: ") + ", ".join(names)


def moves(ladder: Ladder, start: int, end: int, rows: int, slowness: float = 1.0) -> list[Move]:
    """The moves from position *start* to *end*, up or down; *slowness* is how much slower this server is than the figures."""
    if end >= start:
        stairs = [(ladder.stairs[i], ladder.stairs[i].up, i + 1) for i in range(start, end)]
    else:
        stairs = [(ladder.stairs[i - 1], ladder.stairs[i - 1].down, i - 1) for i in range(start, end, -1)]
    return [Move(stair, way, to, estimate_ms(way, rows) * slowness) for stair, way, to in stairs]


def blocking_copies(rollout: Rollout, ladder: Ladder, start: int, end: int) -> list[Finding]:
    """Steps from *start* to *end*, up or down, that only a copy can do and that would block writes for too long (F5, case C09)."""
    rows, back = catalogue.estimated_rows(rollout.session, rollout.schema, rollout.table), end < start
    return [finding for move in moves(ladder, start, end, rows, rollout.slowness)
            for finding in handover.refusals(rollout, ladder, move.stair, move.way, move.to, move.estimate_ms, back=back)]


def grouped(found: list[Move], rollout: Rollout, rows: int, *, with_sync: bool) -> list[Group]:
    """
    *found* packed into as few holds as the budget allows, in order; triggers go into the last one.

    An INPLACE index build on a large table always goes alone, whatever its estimate.
    """
    budget = rollout.plan.plan.max_stall_ms * HOLD_SHARE
    groups: list[Group] = []
    current: list[Move] = []
    spent = 0.0
    for move in found:
        if handover.is_due(rollout, move.way, move.estimate_ms):
            move = replace(move, handed_over=True, estimate_ms=handover.estimate_ms(rows) * rollout.slowness)
        large = rows >= rollout.plan.plan.large_rows and works_through(move.way)
        if large or move.handed_over or move.estimate_ms > budget:
            groups += [Group(tuple(current), in_hold=True)] if current else []
            groups.append(Group((move,), in_hold=False))
            current, spent = [], 0.0
            continue
        if spent + move.estimate_ms > budget and current:
            groups.append(Group(tuple(current), in_hold=True))
            current, spent = [], 0.0
        current.append(move)
        spent += move.estimate_ms
    if with_sync and current and spent + SYNC_MS > budget:
        groups.append(Group(tuple(current), in_hold=True))
        current = []
    if current or with_sync:
        groups.append(Group(tuple(current), in_hold=True, sync="on" if with_sync else None))
    return groups


def carry_out(rollout: Rollout, group: Group, ladder: Ladder, direction: str) -> None:
    """
    Carry out *group* on the live table. Safe to repeat from any point: moves whose effect is there are left out.

    Raises:
        NoGap, LockWaited: nobody's fault; nothing of this group was done.
        Stopped: a statement failed; everything before it stands and the same command continues.
    """
    if group.in_hold or _copies_within_a_stall(rollout, group.moves[0]):
        begins = {"statements": [move.way.statement for move in group.moves], "sync": group.sync}
        rollout.record(Event(group.phase.value, _hold_name(group).replace(" for ", " begins: ", 1), "begins", direction, detail=begins))
        while not _in_one_hold(rollout, group, ladder, direction):
            rollout.say("hold given back early", phase=group.phase.value, why="the rest would stall clients for too long")
    elif group.moves[0].handed_over:
        [move] = group.moves
        handover.carry_out(rollout, move.stair, move.way, move.to, ladder, direction, move.estimate_ms)
    else:
        _alone(rollout, group.moves[0], ladder, direction)


def _copies_within_a_stall(rollout: Rollout, move: Move) -> bool:
    """Whether a copy gets a hold of its own: outside, readers go on, and at its end each that waits to write dies of 1213 (F24)."""
    return move.way.algorithm == "COPY" and not move.handed_over and move.estimate_ms <= rollout.plan.plan.max_stall_ms


def _hold_name(group: Group) -> str:
    return f"hold for {len(group.moves) + 2 * bool(group.sync)} objects"


def _in_one_hold(rollout: Rollout, group: Group, ladder: Ladder, direction: str) -> bool:
    """
    Every client waits meanwhile, so inside there is one look before, one after, and the audit trail is written later.

    Returns whether all of *group* is done: on a server that is slower than estimated the hold is given back in time, and the
    rest goes into the next one.
    """
    tables, related = rollout.tables_to_lock()
    with rollout.recorded_later(), \
            rollout.timed(group.phase, _hold_name(group), direction=direction,
                          statement=f"LOCK TABLES {quote(rollout.table)} WRITE") as facts, \
            hold(rollout.target, rollout.watchdog, rollout.limits, tables, related, rollout.check_owner) as (session, waited_s):
        clock = HoldClock(rollout.plan.plan.max_stall_ms)
        facts["waited_for_gap_s"] = round(waited_s, 3)
        session.run(f"USE {quote(rollout.schema)}")
        with rollout.watchdog.while_waiting(session.connection_id, rollout.limits.patience_in_hold_s):
            if group.sync == "off":
                sync_install.take_off_in(rollout, session, group.phase, direction)
            here = ladder.position(catalogue.shape(session, rollout.schema, rollout.table), rollout.table)
            left = [move for move in group.moves if (move.to > here if direction == "forward" else move.to < here)]
            done, finished = list[Move](), True
            for move in left:
                finished = clock.fits(move.estimate_ms)
                if not finished:
                    break
                _act(rollout, session, move, ladder, direction)
                done.append(move)
                clock.did(move.estimate_ms)
            if done:
                _landed_as_rehearsed(rollout, session, done[-1], ladder)
            finished = finished and (group.sync != "on" or clock.fits(SYNC_MS))
            if finished and group.sync == "on":
                sync_install.put_on(rollout, session, group.phase)
        facts["held_ms"] = round(clock.elapsed_ms, 1)
        if facts["held_ms"] > clock.max_stall_ms:
            facts["longer than max_stall_ms"] = clock.max_stall_ms
            rollout.say("held for longer than max_stall_ms", held_ms=facts["held_ms"], max_stall_ms=clock.max_stall_ms)
        return finished


def _alone(rollout: Rollout, move: Move, ladder: Ladder, direction: str) -> None:
    def lost(holder: str) -> None:
        rollout.record(Event(move.stair.phase, move.stair.name, "lost, begun again", direction, detail={"held by": holder}))

    with alone(rollout.target, rollout.watchdog, rollout.limits, *rollout.tables_to_lock(), lost) as (session, gap):
        _move(rollout, session, move, ladder, direction, gap)


def _move(rollout: Rollout, session: Session, move: Move, ladder: Ladder, direction: str, gap: Gap) -> None:
    """Look, act, look: one stair, alone, through *gap*; the looks are the worker's, since *session* may be lost meanwhile."""
    if ladder.position(rollout.live(), rollout.table) != move.to:
        _act(rollout, session, move, ladder, direction, gap)
        _landed_as_rehearsed(rollout, rollout.session, move, ladder)


def _act(rollout: Rollout, session: Session, move: Move, ladder: Ladder, direction: str, gap: Gap | None = None) -> None:
    """Send one move's statements; after a failure the catalogue says whether it happened all the same (case C84)."""
    rollout.check_owner()
    with rollout.timed(Phase(move.stair.phase), move.stair.name, direction=direction, statement=move.way.sent) as facts:
        facts["algorithm"] = move.way.algorithm + (", foreign_key_checks=0" if move.way.fk_checks_off else "")
        facts["estimate_ms"] = round(move.estimate_ms, 1)
        try:
            _send(session, move.way, gap, rollout.check_owner)
        except StatementFailed as error:
            aftermath.refuse_undone(rollout, f"step {move.stair.name}", session, error, lambda another: ladder.position(
                catalogue.shape(another, rollout.schema, rollout.table), rollout.table) == move.to)
            facts["outcome"] = "done, seen after a lost connection"


def _landed_as_rehearsed(rollout: Rollout, session: Session, move: Move, ladder: Ladder) -> None:
    wrong = differences(catalogue.shape(session, rollout.schema, rollout.table), ladder.shape_at(move.to), ladder.touched())
    if wrong:
        raise Stopped(f"step {move.stair.name}", f"landed elsewhere than on the clone: {'; '.join(wrong)}",
                      "somebody else changes this table; find out who, then run the same command again")


def _send(session: Session, way: Way, gap: Gap | None, check_owner: Callable[[Session], None]) -> None:
    send = session.verbatim if gap is None else lambda sql: gap.fire(sql, is_long=True, before_try=lambda: check_owner(session))
    for statement in way.before:
        send(statement)
    if not way.fk_checks_off:
        send(way.statement)
        return
    # In place is only possible with the checks off (case C16); inside the hold nobody can add an orphan meanwhile.
    with without_foreign_key_checks(session):
        send(way.statement)
