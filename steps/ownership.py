"""
One rollout per table: a named lock on a connection of its own plus an owner row with heartbeat (cases C92, C93, C102).

Both are checked before every chunk and every statement that changes something. The lock dies with its connection, and the server
ends that when six heartbeats in a row did not come: a machine that vanished holds a table for half a minute, whatever clocks say.
A row is taken over once nobody holds the lock.
"""

from __future__ import annotations

import hashlib
import os
import socket
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from steps import cancellable, server_trouble
from steps.another_session import over_another
from steps.errors import Busy, ConnectionLost, OwnershipLost, RolloutError, StatementFailed
from steps.ledger import Ledger
from steps.mysql import VALUE, Row, Session, Waits
from steps.target import Target

HEARTBEAT_S = 5.0
BEATS_MISSED = 6


def lock_name(schema: str, table: str) -> str:
    """The named lock of this table, hashed because MySQL allows 64 characters (case C20)."""
    return "rollout:" + hashlib.sha256(f"{schema}.{table}".encode()).hexdigest()[:48]


def forget_dead(ledger: Ledger) -> None:
    """
    Remove the owner row of a run that was killed after its last change; a living owner holds the lock and has another token.

    A run that gave the table back and could not record its end any more gets it now, as a killed one does.
    """
    schema, table, _plan = ledger.key
    for (token,) in ledger.read(f"SELECT token FROM {ledger.table('owner')} WHERE table_schema = {VALUE} AND table_name = {VALUE} "
                                f"AND IS_USED_LOCK({VALUE}) IS NULL", schema, table, lock_name(schema, table)):
        ledger.session.run(f"DELETE FROM {ledger.table('owner')} WHERE token = {VALUE}", token)
    if any(run["ended_at"] is None for run in ledger.runs()):
        ledger.end_killed_runs(unless_held=lock_name(schema, table))


@contextmanager
def unless_lost(owner: Ownership | None, session: Session) -> Iterator[None]:
    """
    What fails while another run has the table may be that run's doing: columns that it took away, rows that it moved. So it is no
    fault of the statement's, no failed verify and no reason to go back (case C93).

    Raises:
        OwnershipLost: in place of such an error, with its text. The server's own troubles come out as they are.
    """
    try:
        yield
    except Exception as error:
        lost = owner.lost(session) if owner and not server_trouble.interrupted(error) else None
        if not lost:
            raise
        raise OwnershipLost(lost.subject, f"{lost.reason}; meanwhile this came, and may be the other run's doing: {error}",
                            lost.remedy) from None


class Ownership:
    """The right to work on one table, from :meth:`take` to :meth:`release`. Use as a context manager."""

    def __init__(self, target: Target, ledger: Ledger, actor: str, heartbeat_s: float = HEARTBEAT_S) -> None:
        self.ledger, self.actor, self.heartbeat_s = ledger, actor, heartbeat_s
        self.schema, self.table, self.plan_id = ledger.key
        self.name, self.token = lock_name(self.schema, self.table), uuid.uuid4().hex
        self._session = Session(target, read_timeout_s=30, waits=Waits(silence_s=max(1, round(BEATS_MISSED * heartbeat_s))))
        cancellable.spared(self._session)
        self._one_at_a_time = threading.Lock()
        self._ended, self._lost = threading.Event(), threading.Event()
        self._beat = threading.Thread(target=self._keep_beating, name="rollout-heartbeat", daemon=True)

    def take(self) -> None:
        """
        Take the lock and the owner row, never waiting.

        Raises:
            Busy: another rollout holds the table; names it.
        """
        if not self._session.value(f"SELECT GET_LOCK({VALUE}, 0)", self.name):
            raise Busy(f"table {self.table}", f"is held by {self._holder()}", "this run did nothing; wait for that one to end")
        self._session.run(
            f"REPLACE INTO {self.ledger.table('owner')} VALUES ({', '.join([VALUE] * 8)}, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3))",
            self.schema, self.table, self.token, self.plan_id, self.actor, socket.gethostname(), os.getpid(),
            self._session.connection_id)
        self._beat.start()

    def check(self, session: Session) -> None:
        """
        Assert on *session* that the table is still ours; one read.

        Raises:
            OwnershipLost: the lock or the row is gone; the caller stops at this edge.
        """
        if session.server_uuid != self._session.server_uuid:
            raise OwnershipLost(f"table {self.table}", "another server answers at this address than when this run began (failover)",
                                "run the same command again: it looks at what that server has")
        holder, token = self._said(session)
        if holder != self._session.connection_id or token != self.token:
            raise self._not_ours()

    def gone(self) -> OwnershipLost | None:
        """What the heartbeat has met of :meth:`check`'s errors; asks nobody."""
        return self._not_ours() if self._lost.is_set() else None

    def _not_ours(self) -> OwnershipLost:
        return OwnershipLost(f"table {self.table}", "this run no longer holds its lock (connection killed, or another run took over)",
                             "nothing is half done; run the same command again")

    def lost(self, session: Session) -> OwnershipLost | None:
        """What :meth:`check` has to say on *session*; None also when it cannot be asked."""
        try:
            self.check(session)
        except OwnershipLost as lost:
            return lost
        except RolloutError:
            return None
        return None

    def release(self) -> None:
        """
        Give the table free. Safe to repeat.

        A server that keeps the lock's connection though it is lost to us is told to end it; else the lock stands until it falls silent.
        """
        self._ended.set()
        if self._beat.is_alive():
            self._beat.join()
        with self._one_at_a_time:
            try:
                self._session.run(f"DELETE FROM {self.ledger.table('owner')} WHERE token = {VALUE}", self.token)
                self._session.run(f"DO RELEASE_LOCK({VALUE})", self.name)
            except StatementFailed:
                over_another(self.ledger.session.target, self._release_beside)  # the ledger's session may have gone along with ours
            self._session.close()

    def _release_beside(self, session: Session) -> None:
        """Whose lock it is, the row says too: a restarted server gives connection numbers anew."""
        if session.server_uuid != self._session.server_uuid:
            return
        holder, token = self._said(session)
        if token in (self.token, None):
            session.run(f"DELETE FROM {self.ledger.table('owner')} WHERE token = {VALUE}", self.token)
            if holder == self._session.connection_id:
                session.run(f"KILL {int(holder)}")

    def _said(self, session: Session) -> Row:
        """Which connection holds the lock, and the token in the owner row."""
        return session.one(
            f"SELECT IS_USED_LOCK({VALUE}), (SELECT token FROM {self.ledger.table('owner')} WHERE table_schema = {VALUE} "
            f"AND table_name = {VALUE})", self.name, self.schema, self.table)

    def _keep_beating(self) -> None:
        while not self._ended.wait(self.heartbeat_s):
            try:
                with self._one_at_a_time:
                    kept = self._session.run(f"UPDATE {self.ledger.table('owner')} SET heartbeat_at = UTC_TIMESTAMP(3) "
                                             f"WHERE token = {VALUE}", self.token)
            except ConnectionLost:
                kept = 0
            except StatementFailed:
                continue  # a lock or a read-only server, for now: we live, and must not be taken for dead afterwards
            if not kept:
                self._lost.set()  # check() says so where a statement goes, steps/tenure.py in a wait between two
                return

    def _holder(self) -> str:
        rows = self.ledger.read(
            f"SELECT plan_id, actor, host, pid, taken_at FROM {self.ledger.table('owner')} WHERE table_schema = {VALUE} "
            f"AND table_name = {VALUE}", self.schema, self.table)
        if not rows:
            return "another session that has just taken the lock"
        plan, actor, host, pid, taken = rows[0]
        return f"plan {plan} run by {actor} on {host}, pid {pid}, since {taken} UTC"

    def __enter__(self) -> Self:
        try:
            self.take()
        except BaseException:
            self._session.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
