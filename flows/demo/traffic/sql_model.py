"""The jobs as one generation sees them over a connection of its own, with the statements Prisma would send."""

import time
from collections.abc import Callable
from typing import Any

from flows.demo.traffic.failure import BROKEN, DEADLOCK, kind_of
from flows.demo.traffic.generations import TABLE, Generation
from flows.demo.traffic.journal import Journal, Values
from flows.demo.traffic.model import LISTED, POLLED, Model
from flows.demo.traffic.session import Row, Session, quoted


class SqlModel(Model):
    """`prisma.aiJob` of one *generation* on one *session*, statement by statement. Errors are pymysql's."""

    def __init__(
        self, generation: Generation, session: Session, journal: Journal, wrong: Callable[[str, str], None]
    ) -> None:
        super().__init__(generation, wrong)
        self._session, self._journal = session, journal
        self._select = f"SELECT {quoted(generation.columns)} FROM `{TABLE}`"

    def find(self, job: str) -> Row | None:
        """`findUnique`: the job's detail, on record for the judge; None when there is none."""
        begun = time.monotonic_ns()
        row = self._by_key(job)
        word = row[self.generation.column("state")] if row else None
        self._journal.saw(self.generation.name, job, begun, word)
        return row

    def waiting(self, users: tuple[str, ...]) -> list[Row]:
        """`findMany` of pending jobs. V0 asks for *users* only: its table has no index on status, each poll would scan it."""
        state, pending = self.generation.column("state"), self.generation.word("pending")
        if not self.generation.is_old:
            return self._many(f"WHERE `{state}` = %s ORDER BY `createdAt` LIMIT {POLLED}", pending)
        places = ", ".join(["%s"] * len(users))
        where = f"WHERE `{state}` = %s AND `userId` IN ({places}) ORDER BY `createdAt` LIMIT {POLLED}"
        return self._many(where, pending, *users)

    def listed(self, user: str, job_type: str) -> list[Row]:
        """`findMany` of one user's jobs, newest first."""
        where, values = "WHERE `userId` = %s", [user]
        if not self.generation.is_old:
            where, values = f"{where} AND `jobType` = %s", [user, job_type]
        return self._many(f"{where} ORDER BY `createdAt` DESC LIMIT {LISTED}", *values)

    def create(self, job: str, values: Values, *, queued: bool = False) -> None:
        """`create`: BEGIN, INSERT, SELECT, COMMIT; *queued* when the job now waits for a worker."""
        row = {"id": job, **self.generation.physical(values)}
        self._session.run("BEGIN")
        places = ", ".join(["%s"] * len(row))
        self._session.run(f"INSERT INTO `{TABLE}` ({quoted([*row])}) VALUES ({places})", *row.values())
        self._commit(job, "create", values, {"queued": queued})

    def update(
        self, job: str, values: Values, where: Values | None = None, *, queued: bool = False, executed: bool = False
    ) -> bool:
        """
        `update`: BEGIN, SELECT, UPDATE, SELECT, COMMIT; return whether the one row still fitted *where*.

        *queued* when the job now waits for a worker, *executed* when this is the claim upon which it is run.
        """
        self._session.run("BEGIN")
        row = self.generation.physical(values)
        sets = ", ".join(f"`{column}` = %s" for column in row)
        sql = f"UPDATE `{TABLE}` SET {sets} WHERE `id` = %s"
        if not self._by_key(job) or not self._changed(sql, [*row.values(), job], where):
            self._session.run("COMMIT")
            return False
        self._commit(job, "update", values, {"queued": queued, "executed": executed})
        return True

    def delete(self, job: str, where: Values) -> bool:
        """`delete`: BEGIN, SELECT, DELETE, COMMIT; return whether the row was there and fitted *where*."""
        self._session.run("BEGIN")
        if not self._by_key(job) or not self._changed(f"DELETE FROM `{TABLE}` WHERE `id` = %s", [job], where):
            self._session.run("COMMIT")
            return False
        self._commit(job, "delete", {}, {})
        return True

    def recover(self) -> None:
        """End whatever transaction is open."""
        self._session.recover()

    def close(self) -> None:
        """Safe to repeat."""
        self._session.close()

    def _many(self, where: str, *values: Any) -> list[Row]:
        return self._session.rows(f"{self._select} {where}", *values)

    def _by_key(self, job: str) -> Row | None:
        rows = self._session.rows(f"{self._select} WHERE `id` = %s LIMIT 1", job)
        return rows[0] if rows else None

    def _changed(self, sql: str, values: list[Any], where: Values | None) -> bool:
        fits = self.generation.physical(where or {})
        conditions = "".join(f" AND `{column}` = %s" for column in fits)
        return self._session.run(sql + conditions, *values, *fits.values()) == 1

    def _commit(self, job: str, kind: str, values: Values, marks: Values) -> None:
        """Read back, then commit; on record before COMMIT is sent, because its answer may never come."""
        if kind != "delete":
            self.check(job, self._by_key(job), values)
        number = self._journal.intend(self.generation.name, job, kind, values, marks)
        try:
            self._session.run("COMMIT")
        except BROKEN as error:
            if kind_of(error) == DEADLOCK:
                self._journal.withdraw(number)
            raise
        self._journal.acknowledge(number)
