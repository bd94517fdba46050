"""Clients that move jobs through the queue, each in one way: claim, lock, cancel, requeue; all on the same few jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flows.demo.traffic.client import Surroundings, now
from flows.demo.traffic.session import Row
from tests.applications.habitual import OVER, Habitual


class Queued(Habitual):
    """Jobs that wait, are claimed, run and end; each step on the condition that the job is still as it was seen."""

    pool = "q"

    def make(self, job: str) -> None:
        self._next = None

    def move(self, job: str, seen: str, state: str, *, queued: bool = False, executed: bool = False, **more: Any) -> bool:
        """From *seen* to *state*, if it is still there."""
        values = {"state": state, "updatedAt": now(), **more}
        return self.model.update(job, values, {"state": seen}, queued=queued, executed=executed)


class Requeues(Queued):
    """Makes the jobs, and puts what is over back to `pending`: the application's and the user's *try again*."""

    def make(self, job: str) -> None:
        self.model.create(job, self.new() | {"state": "pending", "finished": None, "error": None}, queued=True)

    def follow(self, job: str, row: Row) -> Callable[[], object] | None:
        seen, cleared = self.state(row), {"startedAt": None, "finished": None, "error": None}
        return (lambda: self.move(job, seen, "pending", queued=True, **cleared)) if seen in OVER else None


class Claims(Queued):
    """V0's worker: `pending` to `processing` in one step, and to an end."""

    def __init__(self, shared: Surroundings, number: int) -> None:
        super().__init__(shared, number)
        self._in_hand: str | None = None

    def unfinished(self) -> bool:
        """Whether a job is in hand, which nobody else would end."""
        return bool(self._in_hand)

    def request(self) -> None:
        """End the job in hand; else look, or claim."""
        if not self._in_hand:
            super().request()
        else:
            end = self.moved(over=True)
            if end["state"] == "cancelled":
                end |= {"state": "succeeded"}
            self.move(self._in_hand, "running", **end)
            self._in_hand = None

    def follow(self, job: str, row: Row) -> Callable[[], object] | None:
        return (lambda: self._claim(job)) if self.state(row) == "pending" else None

    def _claim(self, job: str) -> None:
        if self.move(job, "pending", "running", executed=True, startedAt=now()):
            self._in_hand = job


class Locks(Claims):
    """V1's worker: `pending` to `locked`, and then, if it is still its own lock, to `running`, or back to `pending`."""

    def __init__(self, shared: Surroundings, number: int) -> None:
        super().__init__(shared, number)
        self._locked: str | None = None

    def unfinished(self) -> bool:
        """Whether a job is in hand or locked, which nobody else would take up."""
        return bool(self._locked or self._in_hand)

    def request(self) -> None:
        """Go on with the locked job; else as the older worker."""
        if not self._locked:
            super().request()
            return
        job, mine = self._locked, {"state": "locked", "lockedBy": self.name}
        if self.perhaps(0.3):
            self.model.update(job, {"state": "pending", "lockedBy": None, "updatedAt": now()}, mine)
        elif self.model.update(job, {"state": "running", "startedAt": now(), "updatedAt": now()}, mine, executed=True):
            self._in_hand = job
        self._locked = None

    def _claim(self, job: str) -> None:
        if self.move(job, "pending", "locked", lockedBy=self.name, lockedAt=now()):
            self._locked = job


class Cancels(Queued):
    """`pending` to `cancelled`, which V0 has no word for."""

    def follow(self, job: str, row: Row) -> Callable[[], object] | None:
        at = now()
        return (lambda: self.move(job, "pending", "cancelled", finished=at, cancelRequestedAt=at)) if self.state(row) == "pending" else None
