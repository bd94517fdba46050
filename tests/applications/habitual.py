"""
What clients with habits have in common: a few jobs that every generation knows by their ids, and a look before each write.

A client looks at one of its habit's jobs and then writes it in its own way, whoever wrote it last; so generations meet on the same rows all
the time. Each job is made by one generation alone, so that no two make it at once.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

from flows.demo.traffic.client import TEXTS, Client, Surroundings, cuid, now
from flows.demo.traffic.http_model import HttpModel, Planned
from flows.demo.traffic.journal import Values
from flows.demo.traffic.model import Model
from flows.demo.traffic.session import Row

JOBS = 9
MAKERS = ("v0", "v1", "v2")  # job n is made by the n-th of them, modulo their number
OVER = ("succeeded", "failed", "cancelled")
ONLY_NEW = {"queueName": "ai-background", "inputRef": "answer:1"}


class ByHabit(HttpModel):
    """The application, asked to write by a habit."""

    def write(self, habit: str, writes: list[Planned], **body: Any) -> bool:
        """`POST /habits/HABIT`: all *writes* in one transaction; whether it met a row."""
        return self.asked_on_record("POST", f"/habits/{habit}", body, writes) is not None


class Habitual(Client):
    """Looks at a job, then does what the habit makes of it: one request each."""

    model: ByHabit
    pool: ClassVar[str]

    def __init__(self, shared: Surroundings, number: int) -> None:
        super().__init__(shared, number)
        self._next: Callable[[], object] | None = None

    def request(self) -> None:
        """Do what the last look suggested, else look."""
        if self._next:
            follow, self._next = self._next, None
            follow()
            return
        number = self.dice.randrange(JOBS)
        job = f"chabit{self.pool}{number:03}"
        row = self.model.find(job)
        if row:
            self._next = self.follow(job, row)
        elif MAKERS[number % len(MAKERS)] == self.generation.name:
            self._next = lambda: self.make(job)

    @abstractmethod
    def make(self, job: str) -> None:
        """Make the *job*, which is not there."""

    @abstractmethod
    def follow(self, job: str, row: Row) -> Callable[[], object] | None:
        """The request that follows from having seen the *row*, or None."""

    def state(self, row: Row) -> str:
        """What the *row* says to this generation, in the words of lifecycleStatus."""
        word = row[self.generation.column("state")]
        return next(state for state in ("pending", "running", "locked", *OVER) if word == state or (
            self.generation.is_old and state != "locked" and word == self.generation.word(state)))

    def fresh(self) -> str:
        """The id of a job that nobody else knows."""
        return cuid(int(time.time() * 1000), self.dice)

    def new(self) -> Values:
        """A whole job, as this generation makes it."""
        known = {} if self.generation.is_old else ONLY_NEW
        return {"userId": self.dice.choice(self.shared.users), "jobType": "habit", "createdAt": now(), **known, **self.moved()}

    def moved(self, *, over: bool = False) -> Values:
        """A state that anybody may set at any time, with what belongs to it; one that is *over* if so told."""
        states = [*OVER[:2 if self.generation.is_old else 3], *([] if over else ["pending", "running"])]
        state = self.dice.choice(states)
        return {"state": state, "progress": self.dice.randrange(100), "finished": now() if state in OVER else None,
                "error": self.dice.choice(TEXTS) if state == "failed" else None, "updatedAt": now()}

    def row(self, job: str, values: Values) -> dict[str, Any]:
        """*job* as this generation's application takes it."""
        return {"id": job, **self.generation.physical(values)}

    def _model(self) -> Model:
        assert self.shared.application, "habits are an application's"
        return ByHabit(self.generation, self.shared.application, self.shared.journal, self._wrong)
