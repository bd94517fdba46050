"""Transactions whose snapshot is older than a change: each gets 1412 at its first touch of the table (F25, case C07)."""

from __future__ import annotations

from dataclasses import dataclass

from steps import waits
from steps.errors import StatementFailed
from steps.mysql import Session

OLD_SNAPSHOT_S = 2
TRX_CACHE_S = 0.3  # InnoDB shows transactions from a cache that it does not renew while it is asked more often than each 0.1 s
LONGEST_WAIT_S = 10.0
OLDER = ("x.trx_mysql_thread_id NOT IN (0, CONNECTION_ID()) AND "
         "x.trx_started < CONVERT_TZ(UTC_TIMESTAMP(), '+00:00', 'SYSTEM') - INTERVAL {seconds} SECOND")
"""Sessions of ours have UTC, what InnoDB tells is the server's own time."""


def wait_until_young(session: Session, longest_s: float) -> int:
    """
    Wait until no transaction older than a moment is open, at most *longest_s*; return how many are left (F25, case C07).

    A transaction whose snapshot is older than the change gets 1412 at its first touch of the table, and has to be repeated.
    Without the right to see transactions nothing can be waited for.
    """
    began = waits.now_s()
    while True:
        try:
            old = int(session.value(f"SELECT COUNT(*) FROM information_schema.INNODB_TRX x WHERE {OLDER.format(seconds=OLD_SNAPSHOT_S)}"))
        except StatementFailed:
            return 0
        if not old or waits.now_s() - began >= longest_s:
            return old
        waits.sleep_s(TRX_CACHE_S)


@dataclass(frozen=True)
class Snapshot:
    """An open transaction of another session, whatever tables it touched; *started* is UTC."""

    number: int
    who: str
    started: str


def older_than(session: Session, seconds: int) -> list[Snapshot]:
    """
    Transactions of other sessions that began more than *seconds* ago, oldest first.

    Raises:
        StatementFailed: transactions may not be seen.
    """
    rows = session.query("SELECT x.trx_mysql_thread_id, p.USER, p.HOST, CONVERT_TZ(x.trx_started, 'SYSTEM', '+00:00') "
                         "FROM information_schema.INNODB_TRX x JOIN information_schema.PROCESSLIST p ON p.ID = x.trx_mysql_thread_id "
                         f"WHERE {OLDER.format(seconds=int(seconds))} ORDER BY 4 LIMIT 100")
    return [Snapshot(int(number), f"{user}@{host}", str(started)) for number, user, host, started in rows]


def history_length(session: Session) -> int:
    """How many old row versions wait for purge; 0 where the server does not say."""
    return int(session.value("SELECT COUNT FROM information_schema.INNODB_METRICS WHERE NAME = 'trx_rseg_history_len'") or 0)
