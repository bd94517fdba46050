"""
Clients with habits, `python -m tests.applications.habits` with the arguments of `flows.demo.traffic`: each writes in one way only.

What their application did is judged as always; each habit is accounted for by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from flows.demo.traffic.__main__ import main
from flows.demo.traffic.client import Surroundings, now
from flows.demo.traffic.generations import GENERATIONS
from flows.demo.traffic.journal import Values
from flows.demo.traffic.process import Cast
from flows.demo.traffic.session import Row
from tests.applications.habitual import Habitual
from tests.applications.queue_habits import Cancels, Claims, Locks, Requeues

LOST = {"queueName": "ai-interactive", "inputRef": None}  # what V0's REPLACE leaves of it: the defaults of columns it does not name


class Whole(Habitual):
    """Sends the whole job each time, in one statement for making and changing it."""

    habit: ClassVar[str]

    def make(self, job: str) -> None:
        self._send(job, "create")

    def follow(self, job: str, row: Row) -> Callable[[], object]:
        return lambda: self._send(job, "update")

    def _send(self, job: str, kind: str) -> None:
        values = self.new()
        self.model.write(self.habit, [(job, kind, values, {})], rows=[self.row(job, values)])


class Upserts(Whole):
    """Prisma's `upsert`, SQLAlchemy's `merge`."""

    habit, pool = "upsert", "u"


class OnDuplicateKey(Whole):
    """INSERT … ON DUPLICATE KEY UPDATE."""

    habit, pool = "onDuplicateKey", "k"


class Replaces(Whole):
    """REPLACE: a new row takes the old one's place, so what a statement does not name is lost; V0's names no new column."""

    habit, pool = "replace", "r"

    def _send(self, job: str, kind: str) -> None:
        values = self.new()
        told = values | (LOST if self.generation.is_old else {})
        self.model.write(self.habit, [(job, "replace", told, {})], rows=[self.row(job, values)])


class ManyRows(Habitual):
    """INSERT IGNORE of several rows, one of which is there already; UPDATE of several rows in one statement."""

    pool = "m"

    def __init__(self, shared: Surroundings, number: int) -> None:
        super().__init__(shared, number)
        self._there: set[str] = set()

    def make(self, job: str) -> None:
        jobs = {name: self.new() for name in (job, self.fresh(), self.fresh())}
        ignored = {name: self.new() for name in sorted(self._there)[:1]}
        rows = [self.row(name, values) for name, values in (jobs | ignored).items()]
        self.model.write("createMany", [(name, "create", values, {}) for name, values in jobs.items()], rows=rows)

    def follow(self, job: str, row: Row) -> Callable[[], object]:
        self._there.add(job)
        return (lambda: self.make(self.fresh())) if self.perhaps(0.3) else self._update

    def _update(self) -> None:
        jobs, values = sorted(self.dice.sample(sorted(self._there), min(3, len(self._there)))), self.moved()
        self.model.write("updateMany", [(job, "update", values, {}) for job in jobs], ids=jobs, data=self.generation.physical(values))


class Twice(Habitual):
    """A transaction that writes a row and then writes it again."""

    pool = "t"

    def make(self, job: str) -> None:
        self.model.create(job, self.new())

    def follow(self, job: str, row: Row) -> Callable[[], object]:
        begun = {"state": "running", "finished": None, "error": None, "progress": 1, "updatedAt": now()}
        return lambda: self._write(job, [begun, self.moved(over=True)])

    def _write(self, job: str, steps: list[Values]) -> None:
        self.model.write("twice", [(job, "update", values, {}) for values in steps], ids=[job],
                         steps=[self.generation.physical(values) for values in steps])


class Deletes(Habitual):
    """Deletes what others are about to write, and makes it again."""

    pool = "d"

    def make(self, job: str) -> None:
        self.model.create(job, self.new())

    def follow(self, job: str, row: Row) -> Callable[[], object]:
        where = {"state": self.state(row)}
        return (lambda: self._delete(job, where)) if self.perhaps(0.5) else (lambda: self.model.update(job, self.moved(), where))

    def _delete(self, job: str, where: Values) -> None:
        self.model.write("deleteMany", [(job, "delete", {}, {})], ids=[job], where=self.generation.physical(where))


EVERYBODYS: Cast = {
    "REPLACE": [Replaces], "on duplicate key": [OnDuplicateKey], "upsert": [Upserts], "many rows": [ManyRows], "twice": [Twice],
    "requeue": [Requeues], "delete": [Deletes]}
NEW: Cast = {**EVERYBODYS, "lock": [Locks], "cancel": [Cancels]}
CASTS: dict[str, Cast] = {name: {**EVERYBODYS, "claim": [Claims]} if generation.is_old else NEW for name, generation in GENERATIONS.items()}

if __name__ == "__main__":
    main(CASTS)
