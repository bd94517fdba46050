"""
What changes something outside of the server, on record while it is under way: a command outlives a tool that is killed, and a tool that
lost its table cannot call back what it has begun (case C93). Whoever works on the table next reckons with it (:mod:`steps.reckoning`).

Such a line says nothing that decides by itself, so it is written past the fence, also by a run that has lost its table.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from steps import processes
from steps.another_session import PATIENT, over_another
from steps.errors import ConnectionLost, OwnershipLost, RolloutError
from steps.ledger import Event, Ledger
from steps.mysql import VALUE, shown
from steps.phase import Outcome, Phase
from steps.rollout import Rollout

UNDER_WAY, TABLE_LOST, RECKONED = "under way", "table lost", "reckoned with"
PROCESS_OF = "process of "


@dataclass(frozen=True)
class Errand:
    """One thing of that sort: what it is called on record, which way it goes, and the generation that it puts out or the like."""

    phase: Phase
    step: str
    direction: str
    brings: str

    def begins(self, rollout: Rollout) -> Callable[[int], None]:
        """For `run_command`: the process is on record before it does anything."""
        return lambda pid: rollout.record_now(self._event(UNDER_WAY, processes.described(pid), PROCESS_OF))

    @contextmanager
    def guarded(self, rollout: Rollout) -> Iterator[None]:
        """
        Around all of it. However the block ends, the table must be ours still; else that is on record, as what may have happened.

        Raises:
            OwnershipLost: in place of any other error; says what may have been done all the same.
        """
        try:
            yield
        except BaseException as error:
            lost = self._lost(rollout, ended=isinstance(error, ConnectionLost) and error.subject == self.step)
            if isinstance(error, Exception) and lost:
                raise lost from None
            raise
        lost = self._lost(rollout, ended=True)
        if lost:
            raise lost

    def ended_well(self, rollout: Rollout, statement: str | None) -> bool:
        """
        Whether the run that marked the phase last has this on record as done, by the same *statement*, and nothing that it did after it:
        its connections were lost, or it was killed, before it could say so in the phase. Reads only.
        """
        ledger = rollout.ledger
        run_id = ledger.phases().get(self.phase, {}).get("run_id")
        rows = ledger.read(f"SELECT step, direction, outcome, statement FROM {ledger.table('event')} WHERE table_schema = {VALUE} AND "
                           f"table_name = {VALUE} AND plan_id = {VALUE} AND run_id = {VALUE} AND phase = {VALUE} AND outcome <> {VALUE} "
                           "ORDER BY id DESC LIMIT 1", *ledger.key, run_id, self.phase.value, TABLE_LOST)
        return rows == [(self.step, self.direction, Outcome.DONE.value, shown(statement) if statement else None)]

    def _lost(self, rollout: Rollout, *, ended: bool) -> OwnershipLost | None:
        lost = _not_ours(rollout)
        if not lost:
            return None
        with suppress(ConnectionLost):  # it is on record over another connection, or none can be had
            rollout.record_now(self._event(TABLE_LOST, {"why": lost.reason, "brings": self.brings}), only_known_here=True)
        became = f"it came to its end, and {self.brings}" if ended else f"it was ended, and {self.brings} all the same"
        return OwnershipLost(lost.subject, f"{lost.reason} while {self.step} was under way: {became}",
                             f"make sure what lives, and see who has the table: `rollout status {rollout.plan.called}`. This is on record: "
                             "the same command continues, and asks a person where another run has gone on meanwhile")

    def _event(self, outcome: str, detail: dict[str, Any], before: str = "") -> Event:
        return Event(self.phase.value, before + self.step, outcome, self.direction, detail=detail)


def _not_ours(rollout: Rollout) -> OwnershipLost | None:
    owner, session = rollout.owner, rollout.ledger.session
    if not owner:
        return None
    try:
        owner.check(session)
    except ConnectionLost:
        return over_another(rollout.target, owner.lost, tries=PATIENT) or owner.gone()
    except OwnershipLost as lost:
        return lost
    except RolloutError:
        return owner.gone()
    return owner.gone()


@dataclass(frozen=True)
class Unsettled:
    """A line that nobody has reckoned with: its process was never seen to end, or its run had lost the table by then."""

    run_id: str
    at: str
    phase: Phase
    direction: str
    step: str
    outcome: str
    detail: dict[str, Any]

    @property
    def at_work(self) -> bool | None:
        """Whether its process is there still; None when that cannot be seen from this machine."""
        return processes.is_at_work(self.detail) if self.outcome == UNDER_WAY else False

    def __str__(self) -> str:
        began = f"of run {self.run_id[:8]}"
        if self.outcome == TABLE_LOST:
            return f"{self.step} {began} was under way when that run lost the table, so that {self.detail.get('brings')}"
        seen = "is still at work" if self.at_work else "was never seen to end" + (", and is gone" if self.at_work is False else "")
        return f"{self.step} {began}, begun {self.at} on {self.detail.get('host')} as process {self.detail.get('pid')}, {seen}"


def unsettled(ledger: Ledger) -> list[Unsettled]:
    """Oldest first. Reads only."""
    def key(table: str) -> str:
        return f"{table}.table_schema = {VALUE} AND {table}.table_name = {VALUE} AND {table}.plan_id = {VALUE}"

    event = ledger.table("event")
    settled = f"SELECT IFNULL(MAX(s.id), 0) FROM {event} s WHERE {key('s')} AND s.outcome = {VALUE}"
    ended = (f"SELECT 1 FROM {event} c WHERE {key('c')} AND c.id > e.id AND c.run_id = e.run_id AND c.phase = e.phase AND "
             f"c.direction = e.direction AND CONCAT({VALUE}, c.step) = e.step")
    rows = ledger.read(
        f"SELECT e.run_id, e.at, e.phase, e.direction, e.step, e.outcome, e.detail FROM {event} e WHERE {key('e')} AND e.id > ({settled}) "
        f"AND (e.outcome = {VALUE} OR e.outcome = {VALUE} AND NOT EXISTS ({ended})) ORDER BY e.id",
        *ledger.key, *ledger.key, RECKONED, TABLE_LOST, UNDER_WAY, *ledger.key, PROCESS_OF)
    return [Unsettled(str(run), f"{at} UTC", Phase(phase), str(direction), str(step).removeprefix(PROCESS_OF), str(outcome),
                      json.loads(detail)) for run, at, phase, direction, step, outcome, detail in rows]


def told(ledger: Ledger) -> list[str]:
    """One line for each; for people who look."""
    try:
        return [str(one) for one in unsettled(ledger)]
    except RolloutError as error:
        return [f"could not look: {error.reason}"]
