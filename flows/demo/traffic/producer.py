"""The producers: they create jobs, look after the ones they made, and now and then requeue, cancel or delete one."""

import time
from collections import deque
from collections.abc import Callable
from typing import Any

from flows.demo.traffic.client import TEXTS, Client, Surroundings, cuid, now
from flows.demo.traffic.journal import Values

DONE = 100
WATCHED = 40  # jobs of its own a producer looks after; older ones are forgotten
MOVABLE = ("pending", "failed", "succeeded")


class Producer(Client):
    """
    Makes two kinds of jobs: queued ones, which any worker may take, and inline ones, which it runs itself.

    An inline job is never pending, so nobody else writes it, and each detail read of it must show its last write.
    """

    def __init__(self, shared: Surroundings, number: int) -> None:
        super().__init__(shared, number)
        self._queued: deque[str] = deque(maxlen=WATCHED)
        self._inline: dict[str, Values] = {}
        self._next: Callable[[], object] | None = None

    def request(self) -> None:
        """Do what the last look suggested; else create a job, move an inline one on, or look at one."""
        if self._next:
            follow, self._next = self._next, None
            follow()
        elif self.perhaps(0.3) or not self._queued:
            self._create_queued()
        elif self.perhaps(0.15) and len(self._inline) < WATCHED:
            self._create_inline()
        elif self.perhaps(0.5) and self._inline:
            self._tend(self.dice.choice([*self._inline]))
        else:
            self._look(self.dice.choice(self._queued))

    def _create_queued(self) -> None:
        job = cuid(int(time.time() * 1000), self.dice)
        self.model.create(job, self._new_job("pending"), queued=True)
        self._queued.append(job)

    def _create_inline(self) -> None:
        job, values = cuid(int(time.time() * 1000), self.dice), self._new_job("running")
        self.model.create(job, values)
        self._inline[job] = values

    def _new_job(self, state: str) -> Values:
        at, dice = now(), self.dice
        values: Values = {"userId": dice.choice(self.shared.users), "jobType": dice.choice(self.generation.job_types)}
        if self.generation.is_old:
            values |= {"answerId": cuid(int(time.time() * 1000), dice)} if self.perhaps(0.22) else {}
        else:
            values |= new_fields(cuid(int(time.time() * 1000), dice))
        return values | {"state": state, "progress": 0, "queuedAt": at, "createdAt": at, "updatedAt": at}

    def _tend(self, job: str) -> None:
        """Look at an inline job, or move it on: more progress, then an end, then its deletion or nothing but a last look."""
        known = self._inline[job]
        over = known["state"] != "running"
        removed = over and self.generation.is_old and self.perhaps(0.3)
        if not removed and (over or self.perhaps(0.5)):
            self.model.check(job, self.model.find(job), known)
            if over and self.perhaps(0.5):
                del self._inline[job]
            return
        del self._inline[job]  # should the write's outcome stay unknown, nothing about the job is certain any more
        if removed:
            self.model.delete(job, {"state": known["state"]})
            return
        values: Values = {"progress": known["progress"] + DONE // 4, "updatedAt": now()}
        if values["progress"] >= DONE:
            failed = self.perhaps(0.3)
            values |= {"state": "failed" if failed else "succeeded", "finished": now()}
            values |= {"error": self.dice.choice(TEXTS) if failed else None}
        if self.model.update(job, values):
            self._inline[job] = known | values

    def _look(self, job: str) -> None:
        """Read a queued job's detail; what it says may suggest the next request."""
        row, answered = self.model.find(job), self.model.answered
        word = row and row[answered.column("state")]
        state = next((state for state in MOVABLE if answered.word(state) == word), None)
        if row is None:
            self._queued.remove(job)
        elif self.generation.is_old and state == "failed" and self.perhaps(0.5):
            self._next = lambda: self._requeue(job)
        elif self.generation.is_old and state in ("failed", "succeeded") and self.perhaps(0.4):
            self._next = lambda: self.model.delete(job, {"state": state})
        elif not self.generation.is_old and state == "pending" and self.perhaps(0.3):
            self._next = lambda: self._cancel(job)

    def _requeue(self, job: str) -> None:
        cleared: dict[str, Any] = dict.fromkeys(("startedAt", "finished", "error"))
        at = now()
        values = {"state": "pending", "progress": 0, "queuedAt": at, "updatedAt": at, **cleared}
        self.model.update(job, values, {"state": "failed"}, queued=True)

    def _cancel(self, job: str) -> None:
        at = now()
        values = {"state": "cancelled", "finished": at, "cancelRequestedAt": at, "updatedAt": at}
        self.model.update(job, values, {"state": "pending"})


def new_fields(key: str) -> Values:
    """Return what Prisma names beside the old fields when V1 creates: its constant defaults and what a service sets."""
    return {
        "triggerType": "api", "queueName": "ai-interactive", "targetType": "answer", "targetId": key,
        "idempotencyKey": key, "priority": 0, "attemptCount": 0, "maxAttempts": 3, "timeoutMs": 120_000,
        "inputRef": f"answer:{key}", "inputSchemaVersion": "1", "promptKey": "analysis", "promptVersion": "3",
        "outputSchemaVersion": "1", "credentialMode": "platform_key", "modelTier": "primary",
        "modelProvider": "deepseek", "modelName": "deepseek-chat",
    }  # fmt: skip
