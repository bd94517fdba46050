"""
What changes something outside of the server, on record while it is under way: a command outlives a tool that is killed, and a tool that
lost its table cannot call back what it has begun (case C93). Whoever works on the table next reckons with it (:mod:`steps.reckoning`).

Such a line says nothing that decides by itself, so it is written past the fence, also by a run that has lost its table.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from steps import processes
from steps.errors import OwnershipLost, RolloutError
from steps.ledger import Event, Ledger
from steps.mysql import VALUE
from steps.phase import Phase
from steps.rollout import Rollout

UNDER_WAY, TABLE_LOST, RECKONED = "under way", "table lost", "reckoned with"


@dataclass(frozen=True)
class Errand:
    """One thing of that sort: what it is called on record, which way it goes, and the generation that it puts out or the like."""

    phase: Phase
    step: str
    direction: str
    brings: str

    def begins(self, rollout: Rollout) -> Callable[[int], None]:
        """For `run_command`: the process is on record before it does anything."""
        return lambda pid: rollout.record_now(self._event(UNDER_WAY, processes.described(pid)))

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
            lost = self._lost(rollout)
            if isinstance(error, Exception) and lost:
                raise lost from None
            raise
        lost = self._lost(rollout)
        if lost:
            raise lost

    def _lost(self, rollout: Rollout) -> OwnershipLost | None:
        lost = _not_ours(rollout)
        if not lost:
            return None
        rollout.record_now(self._event(TABLE_LOST, {"why": lost.reason, "brings": self.brings}))
        return OwnershipLost(lost.subject, f"{lost.reason} while {self.step} was under way: it was ended, and {self.brings} all the same",
                             f"make sure what lives, and see who has the table: `rollout status {rollout.plan.id}`. This is on record: the "
                             "same command continues, and asks a person where another run has gone on meanwhile")

    def _event(self, outcome: str, detail: dict[str, Any]) -> Event:
        return Event(self.phase.value, self.step, outcome, self.direction, detail=detail)


def _not_ours(rollout: Rollout) -> OwnershipLost | None:
    owner = rollout.owner
    return (owner.gone() or owner.lost(rollout.ledger.session)) if owner else None


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
             f"c.direction = e.direction AND c.step = e.step AND c.outcome <> {VALUE}")
    rows = ledger.read(
        f"SELECT e.run_id, e.at, e.phase, e.direction, e.step, e.outcome, e.detail FROM {event} e WHERE {key('e')} AND e.id > ({settled}) "
        f"AND (e.outcome = {VALUE} OR e.outcome = {VALUE} AND NOT EXISTS ({ended})) ORDER BY e.id",
        *ledger.key, *ledger.key, RECKONED, TABLE_LOST, UNDER_WAY, *ledger.key, UNDER_WAY)
    return [Unsettled(str(run), f"{at} UTC", Phase(phase), str(direction), str(step), str(outcome), json.loads(detail))
            for run, at, phase, direction, step, outcome, detail in rows]


def told(ledger: Ledger) -> list[str]:
    """One line for each; for people who look."""
    try:
        return [str(one) for one in unsettled(ledger)]
    except RolloutError as error:
        return [f"could not look: {error.reason}"]
