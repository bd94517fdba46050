"""
Who holds a metadata lock on given tables, who waits for one, and who holds a lock that stops all DDL (cases C01, C05; F24).

The one look that messages, pre-checks, the guarded fire and `--end-blockers` share. It takes no lock of its own and never shows a
statement's text, only its digest. Without the right to see transactions idle time stands for age, without the one to see statements
there is no digest; without the right to see metadata locks nobody is seen, which the checks `server` and `privileges` tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from steps.errors import StatementFailed
from steps.mysql import VALUE, Row, Session, literal

Table = tuple[str, str]
DENIED = {1044, 1142, 1143, 1227}
EXPLICIT = frozenset({"SHARED_READ_ONLY", "SHARED_NO_WRITE", "SHARED_NO_READ_WRITE"})
DDL = frozenset({"SHARED_UPGRADABLE", "EXCLUSIVE"})
USER_THREAD = "thread/sql/one_connection"
LOOKS, PAUSE_S = 60, 0.001
AGE = "TIMESTAMPDIFF(SECOND, x.trx_started, CONVERT_TZ(UTC_TIMESTAMP(), '+00:00', 'SYSTEM'))"
STARTED = "CONVERT_TZ(x.trx_started, 'SYSTEM', '+00:00')"
TRX = ("LEFT JOIN information_schema.INNODB_TRX x ON x.trx_mysql_thread_id = t.PROCESSLIST_ID AND x.trx_mysql_thread_id > 0 ",
       f"MIN({STARTED}), MIN({AGE}), MAX(x.trx_weight)")
NO_TRX = ("", "NULL, NULL, NULL")
DIGEST = ("(SELECT e.DIGEST FROM performance_schema.events_statements_current e WHERE e.THREAD_ID = m.OWNER_THREAD_ID "
          "AND e.DIGEST IS NOT NULL ORDER BY e.EVENT_ID LIMIT 1)")
LOOKS_TO_TRY = ((TRX, DIGEST), (TRX, "NULL"), (NO_TRX, DIGEST), (NO_TRX, "NULL"))  # from all that a right may hide to the least


@dataclass(frozen=True)
class Holder:
    """
    One session with locks on one table; *number* is None for a prepared XA transaction that no session owns.

    *waits* says that it holds nothing there yet; *trx_s* and *weight* (rows changed and locked) are None without a transaction,
    or where it may not be seen; *digest* is the hash of its latest statement.
    """

    number: int | None
    who: str
    command: str
    seconds: int
    table: str
    kinds: frozenset[str]
    waits: bool
    is_user: bool = True
    started: str | None = None
    trx_s: int | None = None
    weight: int | None = None
    digest: str | None = None

    @property
    def age_s(self) -> int:
        """Seconds since its transaction began, else since its command did."""
        return self.seconds if self.trx_s is None else self.trx_s

    @property
    def is_explicit(self) -> bool:
        return bool(self.kinds & EXPLICIT)

    @property
    def is_ddl(self) -> bool:
        return bool(self.kinds & DDL)

    @property
    def stops_all_ddl(self) -> bool:
        """Whether it holds the backup lock or the global read lock."""
        return not self.table

    @property
    def named(self) -> str:
        return f"connection {self.number} ({self.who})" if self.number else "a prepared XA transaction that no session owns"

    def __str__(self) -> str:
        if self.number is None:
            return f"{self.table} is held by {self.named}"
        doing = [f"{self.command.lower()} for {self.seconds} s"]
        doing += [f"transaction open since {self.started} UTC"] if self.started else []
        doing += [f"{self.weight} rows changed or locked"] if self.weight else []
        doing += ["LOCK TABLES"] if self.is_explicit else ["DDL"] if self.is_ddl else []
        doing += [f"last statement {self.digest[:16]}"] if self.digest else []
        what = "waited for by" if self.waits else "held by"
        subject = self.table or f"the server's {'backup lock' if 'BACKUP LOCK' in self.kinds else 'global read lock'}"
        return f"{subject} is {what} connection {self.number} ({self.who}, {', '.join(doing)})"


def look(session: Session, tables: Sequence[Table], own: Sequence[int] = (), limit: int = 10) -> list[Holder]:
    """
    Holders of and waiters for *tables*, and of locks that stop all DDL: oldest transaction first, those without one last.

    *own* are connections of ours to be left out, beside *session*'s own.

    Raises:
        StatementFailed: metadata locks may not be seen.
    """
    for (join, trx), digest in LOOKS_TO_TRY[:-1]:
        try:
            return [_holder(row) for row in _rows(session, tables, join, trx, digest, own, limit)]
        except StatementFailed as error:
            if error.errno not in DENIED:
                raise
    (join, trx), digest = LOOKS_TO_TRY[-1]
    return [_holder(row) for row in _rows(session, tables, join, trx, digest, own, limit)]


def _rows(session: Session, tables: Sequence[Table], join: str, trx: str, digest: str, own: Sequence[int], limit: int) -> list[Row]:
    mine = f"AND NOT (t.PROCESSLIST_ID <=> {VALUE}) " * len(own)
    names = " OR ".join([f"(m.OBJECT_SCHEMA = {VALUE} AND m.OBJECT_NAME = {VALUE})"] * len(tables)) or "FALSE"
    return session.query(
        "SELECT t.PROCESSLIST_ID, t.PROCESSLIST_USER, t.PROCESSLIST_HOST, t.PROCESSLIST_COMMAND, t.PROCESSLIST_TIME, t.NAME, "
        "IF(m.OBJECT_TYPE = 'TABLE', m.OBJECT_NAME, ''), "
        "GROUP_CONCAT(DISTINCT IF(m.OBJECT_TYPE = 'TABLE', m.LOCK_TYPE, m.OBJECT_TYPE)), MIN(m.LOCK_STATUS = 'PENDING'), "
        f"{trx}, {digest} FROM performance_schema.metadata_locks m "
        f"LEFT JOIN performance_schema.threads t ON t.THREAD_ID = m.OWNER_THREAD_ID {join}"
        "WHERE NOT (m.OWNER_THREAD_ID <=> PS_CURRENT_THREAD_ID()) AND m.LOCK_STATUS IN ('GRANTED', 'PENDING') "
        f"{mine}AND ((m.OBJECT_TYPE = 'TABLE' AND ({names})) "
        "OR (m.OBJECT_TYPE IN ('BACKUP LOCK', 'GLOBAL') AND m.LOCK_TYPE = 'SHARED' AND m.LOCK_STATUS = 'GRANTED')) "
        "GROUP BY m.OWNER_THREAD_ID, 1, 2, 3, 4, 5, 6, 7 ORDER BY 9, 10 IS NULL, 10, 5 DESC, 1 "
        f"LIMIT {int(limit)}", *own, *(part for table in tables for part in table))


def _holder(row: Row) -> Holder:
    number, user, host, command, seconds, thread, table, kinds, waits, started, trx_s, weight, digest = row
    return Holder(None if number is None else int(number), f"{user}@{host}", str(command), int(seconds or 0), str(table),
                  frozenset(str(kinds).split(",")), bool(waits), thread == USER_THREAD, str(started) if started else None,
                  None if trx_s is None else int(trx_s), None if weight is None else int(weight), str(digest) if digest else None)


def named(session: Session, tables: Sequence[Table], own: Sequence[int] = ()) -> list[str]:
    """One line for each of :func:`look`; none where it may not look. For messages of a statement that found no gap."""
    try:
        return [str(holder) for holder in look(session, tables, own)]
    except StatementFailed:
        return []


def guard(tables: Sequence[Table], *, quiet: bool = False) -> str:
    """
    A statement that looks at *tables* on the server, each millisecond for some 60 ms, and ends at the first moment at which nobody
    but us holds or awaits a metadata lock on one of them, nor the backup lock; it fails with 1242 when there was none (F24, case C05).

    Looking on the server finds gaps of a millisecond that a client's looks, one each 5 to 30 ms, miss: beside 32 Prisma-like clients
    at 300 requests/s 40 fires waited 608 ms in the mean with those, 34 ms with these, and no transaction was killed with either. A guard
    that overlooks single statements in autocommit, which 1213 cannot reach, was tried and is worse: our request then stands behind them
    for milliseconds, in which other transactions slip in; 51 tries slipped and 12 transactions were killed in 40 fires.

    A transaction that has begun but not yet read holds nothing and is the next to be killed: it reads while our request is on its way
    and then wants to write. *quiet* waits for those of the tables' schemas as well. Beside 32 Prisma-like clients at 220 requests/s 9
    transactions were killed in 184 fires without it and none in 96 with it; the wait for the gap stayed at 4 ms in the mean. Waiting for
    sessions that are at work on a statement instead does not help: 3 in 96.
    """
    names = " OR ".join(f"(m.OBJECT_SCHEMA = {literal(schema)} AND m.OBJECT_NAME = {literal(table)})" for schema, table in tables)
    held = ("SELECT 1 FROM performance_schema.metadata_locks m WHERE NOT (m.OWNER_THREAD_ID <=> PS_CURRENT_THREAD_ID()) AND "
            f"((m.OBJECT_TYPE = 'TABLE' AND ({names})) OR (m.OBJECT_TYPE IN ('BACKUP LOCK', 'GLOBAL') AND m.LOCK_TYPE = 'SHARED')) "
            "AND looks.n > 0")  # correlated, so that it is evaluated each time
    if quiet:
        schemas = ", ".join(sorted({literal(schema) for schema, _table in tables}))
        held += (" UNION ALL SELECT 1 FROM performance_schema.threads q JOIN performance_schema.events_transactions_current x USING "
                 "(THREAD_ID) WHERE x.STATE = 'ACTIVE' AND x.AUTOCOMMIT = 'NO' AND q.THREAD_ID <> PS_CURRENT_THREAD_ID() AND "
                 f"q.PROCESSLIST_DB IN ({schemas}) AND looks.n > 0")
    looks = f"JSON_TABLE('[{','.join(['1'] * LOOKS)}]', '$[*]' COLUMNS (n FOR ORDINALITY)) AS looks"
    first = f"SELECT looks.n FROM {looks} WHERE NOT EXISTS ({held}) OR SLEEP({PAUSE_S}) LIMIT 1"
    return f"SET @rollout_gap = (SELECT 1 UNION ALL SELECT 1 FROM (SELECT COUNT(*) AS found FROM ({first}) AS gap) AS gaps WHERE found = 0)"
