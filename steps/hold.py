"""
One LOCK TABLES … WRITE hold for everything that needs an exclusive metadata lock, fired in a gap the server finds (F24).

A request for an exclusive metadata lock makes MySQL kill any transaction that has read the table and now wants to write it.
So the request is sent in one packet behind a guard that fails while any session holds a lock on the table, and a watchdog
ends it after a few milliseconds should somebody have slipped in between.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import structlog

from steps import waits
from steps.errors import LockTimeout, LockWaited, NoGap, StatementFailed
from steps.mysql import VALUE, Session, Waits, literal, quote
from steps.target import Target
from steps.watchdog import Watchdog

GUARD_FAILED = 1242
SLIP_S = 0.004
MARGIN_MS = 100
PLAIN_TRIES = 8
TELL_EVERY_S = 5.0
OLD_SNAPSHOT_S = 2
TRX_CACHE_S = 0.3  # InnoDB shows transactions from a cache that it does not renew while it is asked more often than each 0.1 s
LONGEST_SNAPSHOT_WAIT_S = 10.0
log: structlog.stdlib.BoundLogger = structlog.get_logger("rollout")


@dataclass(frozen=True)
class Limits:
    """How long clients may be stalled, and how long to look for a gap. `plain` fires without a guard (accepted, or no P_S)."""

    max_stall_ms: int
    gap_wait_s: float
    plain: bool = False

    @property
    def patience_s(self) -> float:
        """How long one of our statements may stand in a metadata-lock queue."""
        return max(0.05, (self.max_stall_ms - MARGIN_MS) / 1000)


def holders(session: Session, tables: list[tuple[str, str]]) -> list[str]:
    """Who holds a metadata lock on any of *tables* now: connection, user, host, seconds, never statement texts."""
    names = " OR ".join(f"(m.OBJECT_SCHEMA = {VALUE} AND m.OBJECT_NAME = {VALUE})" for _ in tables)
    try:
        rows = session.query(
            "SELECT t.PROCESSLIST_ID, t.PROCESSLIST_USER, t.PROCESSLIST_HOST, t.PROCESSLIST_COMMAND, t.PROCESSLIST_TIME, "
            "MIN(CONVERT_TZ(x.trx_started, 'SYSTEM', '+00:00')), m.OBJECT_NAME FROM performance_schema.metadata_locks m "
            "JOIN performance_schema.threads t ON t.THREAD_ID = m.OWNER_THREAD_ID "
            "LEFT JOIN information_schema.INNODB_TRX x ON x.trx_mysql_thread_id = t.PROCESSLIST_ID "
            f"WHERE m.OBJECT_TYPE = 'TABLE' AND m.LOCK_STATUS = 'GRANTED' AND t.PROCESSLIST_ID <> CONNECTION_ID() AND ({names}) "
            "GROUP BY 1, 2, 3, 4, 5, 7 ORDER BY MIN(x.trx_started) IS NULL, MIN(x.trx_started), 5 DESC LIMIT 10",
            *(part for table in tables for part in table))
    except StatementFailed:
        return []
    return [f"{table} is held by connection {number} ({user}@{host}, {str(command).lower()} for {seconds or 0} s"
            + (f", transaction open since {started} UTC)" if started else ")")
            for number, user, host, command, seconds, started, table in rows]


def wait_for_old_snapshots(session: Session, longest_s: float) -> int:
    """
    Wait until no transaction older than a moment is open, at most *longest_s*; return how many are left (F25, case C07).

    A transaction whose snapshot is older than the change gets 1412 at its first touch of the table, and has to be repeated.
    Without the right to see transactions nothing can be waited for.
    """
    began = waits.now_s()
    while True:
        try:
            old = int(session.value("SELECT COUNT(*) FROM information_schema.INNODB_TRX WHERE trx_mysql_thread_id <> CONNECTION_ID() "
                                    f"AND trx_started < SYSDATE() - INTERVAL {OLD_SNAPSHOT_S} SECOND"))
        except StatementFailed:
            return 0
        if not old or waits.now_s() - began >= longest_s:
            return old
        waits.sleep_s(TRX_CACHE_S)


def _guard(tables: list[tuple[str, str]]) -> str:
    """A scalar subquery that fails with 1242 while anybody but us holds a metadata lock on one of *tables*."""
    names = " OR ".join(f"(OBJECT_SCHEMA = {literal(schema)} AND OBJECT_NAME = {literal(table)})" for schema, table in tables)
    return ("SET @rollout_gap = (SELECT 1 UNION ALL (SELECT 1 FROM performance_schema.metadata_locks WHERE OBJECT_TYPE = 'TABLE' "
            f"AND OWNER_THREAD_ID <> PS_CURRENT_THREAD_ID() AND ({names}) LIMIT 1))")


class Gap:
    """Fires one statement at a moment when nobody holds the tables."""

    def __init__(self, session: Session, watchdog: Watchdog, limits: Limits, tables: list[tuple[str, str]]) -> None:
        self.session, self.watchdog, self.limits, self.tables = session, watchdog, limits, tables

    def fire(self, statement: str, *, is_long: bool = False, before_try: Callable[[], None] = lambda: None) -> float:
        """
        Send *statement* in a gap; return the seconds waited for it. *is_long* statements (index builds) are only watched
        while they wait for a lock, since they work on between.

        Raises:
            NoGap: none came within `gap_wait_s`; names the holders.
            LockWaited: fired plainly (no guard) and the table stayed held.
            StatementFailed: the statement itself failed.
        """
        began = waits.now_s()
        if self.limits.plain:
            self._fire_plainly(statement, is_long=is_long, before_try=before_try)
            return waits.now_s() - began
        slips, told_s = 0, began
        while True:
            before_try()
            try:
                self._try_once(statement, is_long=is_long)
            except LockTimeout:
                slips += 1
            except StatementFailed as error:
                if error.errno != GUARD_FAILED:
                    raise
            else:
                return waits.now_s() - began
            if waits.now_s() - began >= self.limits.gap_wait_s:
                raise NoGap(f"table {self.tables[0][1]}", f"was never free within {self.limits.gap_wait_s:g} s"
                            + "".join(f"; {line}" for line in holders(self.watchdog.session, self.tables)),
                            "nothing was changed by this step; run the same command at a quieter time, end the holder, or fire "
                            "plainly with --accept no-gap")
            if waits.now_s() - told_s >= TELL_EVERY_S:
                told_s = waits.now_s()
                log.info("waiting for a gap", table=self.tables[0][1], seconds=round(told_s - began),
                         holders=holders(self.watchdog.session, self.tables))
            # A try that reached the lock queue may cost somebody's transaction, so those are far apart; guards cost nothing.
            waits.sleep_s(random.uniform(0.005, 0.03) if not slips else random.uniform(0.02, 0.1 * min(slips, 10)))  # noqa: S311

    def _try_once(self, statement: str, *, is_long: bool) -> None:
        patience = self.watchdog.while_waiting if is_long else self.watchdog.after
        seconds = self.limits.patience_s if is_long else SLIP_S
        self.session.packet(_guard(self.tables), statement, lambda: patience(self.session.connection_id, seconds))

    def _fire_plainly(self, statement: str, *, is_long: bool, before_try: Callable[[], None]) -> None:
        def attempt() -> None:
            before_try()
            with self.watchdog.while_waiting(self.session.connection_id, self.limits.patience_s):
                self.session.verbatim(statement)

        try:
            waits.retry(attempt, tries=PLAIN_TRIES if not is_long else 3, first_wait_s=1, longest_wait_s=15)
        except LockTimeout as error:
            held = "; ".join(holders(self.watchdog.session, self.tables)) or "unknown holder"
            raise LockWaited(f"table {self.tables[0][1]}", f"stayed held ({error.errno}): {held}",
                             "nothing was changed by this step; end that session, or run the same command later") from None


@contextmanager
def hold(target: Target, watchdog: Watchdog, limits: Limits, tables: list[tuple[str, str]],
         related: list[tuple[str, str]], before_try: Callable[[], None]) -> Iterator[tuple[Session, float]]:
    """
    Yield a session that holds *tables* with LOCK TABLES … WRITE, and the seconds it waited for the gap.

    *related* are foreign-key parents and children, which MySQL locks along with the table. Everything inside must be short:
    every client waits. Our own statements inside are bounded by the watchdog of the caller. The locks go with the session.
    """
    names = ", ".join(f"{quote(schema)}.{quote(table)} WRITE" for schema, table in tables)
    with Session(target, multi=True, waits=Waits(lock_wait_timeout_s=max(1, limits.max_stall_ms // 1000))) as session:
        session.run("SET SESSION foreign_key_checks = 1")
        gap = Gap(session, watchdog, limits, [*tables, *related])
        old = wait_for_old_snapshots(watchdog.session, min(limits.gap_wait_s, LONGEST_SNAPSHOT_WAIT_S))
        if old:
            log.info("old snapshots are left; their transactions may get 1412 once and must be repeated", table=tables[0][1],
                     transactions=old)
        waited_s = gap.fire(f"LOCK TABLES {names}", before_try=before_try)
        try:
            yield session, waited_s
        finally:
            session.close()  # releases the locks even when the session is in an unknown state
