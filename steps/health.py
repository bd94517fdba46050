"""
How the server bears a pass (cases C65, C107). What cannot be read counts as unhealthy, never as zero.

Each signal is one small read. A limit of 0 in the plan means: do without this signal. Rights: none for running threads and redo, PROCESS
for the history list, SELECT on performance_schema for the application's commits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from steps.errors import StatementFailed
from steps.ledger import Ledger
from steps.mysql import Session
from steps.plan import Backfill


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


def signals(ledger: Ledger, settings: Backfill) -> list[Signal]:
    """The signals of the server itself that *settings* ask for; none at full speed. Those of replicas are :mod:`steps.replicas`."""
    found: list[Signal] = []
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
