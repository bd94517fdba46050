"""
How the server and its replicas bear a pass (cases C65, C107). What cannot be read counts as unhealthy, never as zero.

Each signal is one small read. A limit of 0 in the plan means: do without this signal. Rights: none for running threads and redo, PROCESS
for the history list, SELECT on performance_schema for the application's commits, SELECT on the ledger for a replica.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from steps import masking, waits
from steps.errors import RolloutError, StatementFailed
from steps.ledger import Ledger
from steps.mysql import VALUE, Session
from steps.plan import Backfill
from steps.target import target_of

PATIENCE_S = 0.3


@dataclass(frozen=True)
class Reading:
    """One signal now: *value* against *limit* in *unit*; *value* None says that it could not be read, and *why*."""

    name: str
    value: float | None
    limit: float
    unit: str = ""
    why: str = ""

    @property
    def strain(self) -> float:
        """From 0 (idle) over 1 (at its limit); what cannot be read is over any limit."""
        return float("inf") if self.value is None else self.value / self.limit

    @property
    def problem(self) -> str:
        """Why a pass must not go on now, or nothing."""
        if self.value is None:
            return f"{self.name} cannot be read ({self.why})"
        return f"{self.name} is {self.value:.6g}{self.unit}, over {self.limit:g}{self.unit}" if self.value > self.limit else ""


Signal = Callable[[], Reading]


def signals(ledger: Ledger, name: str, settings: Backfill) -> list[Signal]:
    """The signals that *settings* ask for; at full speed only the replicas that the plan names."""
    found: list[Signal] = [Replica(ledger, name, where, settings.max_replica_lag_s).read for where in settings.replicas]
    if settings.mode == "full_speed":
        return found
    session = ledger.session
    if settings.max_threads_running:
        found.append(lambda: _read("number of running threads", settings.max_threads_running, "",
                                   lambda: _status(session, "Threads_running")))
    if settings.max_history_length:
        found.append(lambda: _read("history list length", settings.max_history_length, "", lambda: _history(session)))
    if settings.max_redo_percent:
        found.append(lambda: _read("redo log in use", settings.max_redo_percent, " %", lambda: _redo(session)))
    if settings.max_commit_ms:
        found.append(Commits(session, settings.max_commit_ms).read)
    return found


def _read(name: str, limit: float, unit: str, look: Callable[[], float]) -> Reading:
    try:
        return Reading(name, look(), limit, unit)
    except (StatementFailed, IndexError, TypeError, ZeroDivisionError) as error:
        why = error.reason if isinstance(error, StatementFailed) else "the server does not show it"
        return Reading(name, None, limit, unit, why)


def _status(session: Session, name: str) -> float:
    return float(session.one(f"SHOW GLOBAL STATUS LIKE '{name}'")[1])


def _history(session: Session) -> float:
    return float(session.value("SELECT `COUNT` FROM information_schema.INNODB_METRICS WHERE NAME = 'trx_rseg_history_len'"))


def _redo(session: Session) -> float:
    """How much of the redo log is not checkpointed yet: near its end the server makes every writer wait."""
    age = _status(session, "Innodb_redo_log_current_lsn") - _status(session, "Innodb_redo_log_checkpoint_lsn")
    return 100 * age / _status(session, "Innodb_redo_log_capacity_resized")


class Commits:
    """How long COMMIT takes for accounts other than ours, on average since the last look; where it is not recorded there is no signal."""

    def __init__(self, session: Session, limit_ms: float) -> None:
        self.session, self.limit_ms = session, limit_ms
        self._before: tuple[int, int] | None = None

    def read(self) -> Reading:
        try:
            count, picoseconds = self.session.one(
                "SELECT IFNULL(SUM(COUNT_STAR), 0), IFNULL(SUM(SUM_TIMER_WAIT), 0) FROM "
                "performance_schema.events_statements_summary_by_user_by_event_name "
                "WHERE EVENT_NAME = 'statement/sql/commit' AND USER <> SUBSTRING_INDEX(USER(), '@', 1)")
        except StatementFailed:
            return Reading("commit of the application", 0, self.limit_ms, " ms")
        before, self._before = self._before, (int(count), int(picoseconds))
        more = self._before[0] - before[0] if before else 0
        took = (self._before[1] - before[1]) / 1e9 / more if before and more > 0 else 0.0
        return Reading("commit of the application", took, self.limit_ms, " ms")


class Replica:
    """
    How far a replica is behind, by the ledger's own heartbeat there: it tells of appliers that stand still and report nothing.

    *where* names an environment variable that holds the replica's URL: no credentials in a plan.
    """

    def __init__(self, ledger: Ledger, name: str, where: str, limit_s: float) -> None:
        self.ledger, self.name, self.where, self.limit_s = ledger, name, where, limit_s
        self._session: Session | None = None
        self._asked_s = waits.now_s()
        self._asking: threading.Thread | None = None
        self._answer: tuple[datetime | None, str] = (None, "")

    def read(self) -> Reading:
        """
        Ask, and wait a moment for the answer; one that does not come is one that is behind since it was asked last with success.

        A replica that hangs holds up nobody: neither a stop nor the heartbeat waits for it.
        """
        what = f"lag of replica {self.where}"
        if not (self._asking and self._asking.is_alive()):
            self._asking = threading.Thread(target=self._ask, daemon=True)
            self._asking.start()
        self._asking.join(PATIENCE_S)
        beat, trouble = self._answer
        if trouble:
            return Reading(what, None, self.limit_s, " s", trouble)
        if beat is None:  # the first heartbeat is on its way, or will never come
            return Reading(what, waits.now_s() - self._asked_s, self.limit_s, " s")
        behind = self.ledger.session.value(
            f"SELECT TIMESTAMPDIFF(MICROSECOND, {VALUE}, at) / 1e6 FROM {self.ledger.table('pace')} WHERE table_schema = {VALUE} "
            f"AND table_name = {VALUE} AND plan_id = {VALUE} AND `pass` = {VALUE}", beat, *self.ledger.key, self.name)
        return Reading(what, max(0.0, float(behind or 0)), self.limit_s, " s")

    def _ask(self) -> None:
        try:
            self._answer = (self._beat(), "")
        except (RolloutError, OSError) as error:
            self.close()
            self._answer = (None, masking.mask(getattr(error, "reason", str(error))))

    def _beat(self) -> datetime | None:
        if self._session is None:
            url = os.environ.get(self.where)
            if not url:
                raise StatementFailed(self.where, f"the environment variable {self.where} is not set")
            self._session = Session(target_of(url), read_timeout_s=5)
        found: datetime | None = self._session.value(
            f"SELECT at FROM {self.ledger.table('pace')} WHERE table_schema = {VALUE} AND table_name = {VALUE} AND plan_id = {VALUE} "
            f"AND `pass` = {VALUE}", *self.ledger.key, self.name)
        return found

    def close(self) -> None:
        """Safe to repeat; the next look connects anew."""
        session, self._session = self._session, None
        if session:
            session.close()
