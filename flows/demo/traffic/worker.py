"""The workers: they poll for waiting jobs, claim each with a conditional UPDATE, execute it and write its end."""

from datetime import timedelta

from flows.demo.traffic.client import TEXTS, Client, Surroundings, now
from flows.demo.traffic.journal import Values
from flows.demo.traffic.session import Row

LEASE = timedelta(seconds=60)


class Worker(Client):
    """
    Executes a job exactly when the claim that says so was acknowledged and matched one row.

    V0 claims in one step, pending to processing. V1 locks first, pending to locked, and executes only when it could
    confirm its own lock, locked to running: V0 may have claimed the job in between (F18).
    """

    def __init__(self, shared: Surroundings, number: int) -> None:
        super().__init__(shared, number)
        self._seen: list[Row] = []
        self._locked: Row | None = None
        self._in_hand: Row | None = None

    def unfinished(self) -> bool:
        """Tell whether a job is being executed or locked."""
        return bool(self._in_hand or self._locked)

    def request(self) -> None:
        """End the job in hand, else confirm, else claim, else poll."""
        if self._in_hand:
            self._finish(self._in_hand)
        elif self._locked:
            self._confirm(self._locked)
        elif self._seen:
            self._claim(self._seen.pop(self.dice.randrange(len(self._seen))))
        else:
            self._seen = self.model.waiting(self.shared.users)

    def _claim(self, row: Row) -> None:
        at, job = now(), row["id"]
        if self.generation.is_old:
            values: Values = {"state": "running", "startedAt": at, "updatedAt": at}
            if self.model.update(job, values, {"state": "pending"}, executed=True):
                self._in_hand = row
            return
        values = {"state": "locked", "lockedBy": self.name, "lockedAt": at, "lockUntil": at + LEASE, "updatedAt": at}
        if self.model.update(job, values, {"state": "pending"}):
            self._locked = row

    def _confirm(self, row: Row) -> None:
        at = now()
        values = {"state": "running", "startedAt": at, "attemptCount": row["attemptCount"] + 1, "updatedAt": at}
        if self.model.update(row["id"], values, {"state": "locked", "lockedBy": self.name}, executed=True):
            self._in_hand = row
        self._locked = None

    def _finish(self, row: Row) -> None:
        failed = self.perhaps(0.3)
        text, at = self.dice.choice(TEXTS), now()
        values: Values = {"state": "failed" if failed else "succeeded", "error": text if failed else None}
        values |= {"progress": 100, "finished": at, "updatedAt": at}
        if not self.generation.is_old:
            values |= {"lockedBy": None, "lockUntil": None}
            values |= {"errorCode": "timeout", "publicErrorMessage": "try again"} if failed else {}
            values |= {} if failed else {"outputHash": row["id"], "validatedOutput": '{"score": 7, "labels": ["ok"]}'}
        self.model.update(row["id"], values)
        self._in_hand = None
