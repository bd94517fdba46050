"""Sessions that hold the table, its foreign-key relatives, or a lock that stops all DDL (cases C01, C05)."""

from __future__ import annotations

from dataclasses import dataclass

from steps import catalogue
from steps.checks import server
from steps.checks.finding import DENIED, Finding, Look, unavailable
from steps.errors import StatementFailed
from steps.mysql import VALUE, Row

NAME = "blockers"
OLD_S = 10
EXPLICIT = ("SHARED_READ_ONLY", "SHARED_NO_WRITE", "SHARED_NO_READ_WRITE")
AGE = "TIMESTAMPDIFF(SECOND, MIN(x.trx_started), CONVERT_TZ(UTC_TIMESTAMP(), '+00:00', 'SYSTEM'))"
TRX = "LEFT JOIN information_schema.INNODB_TRX x ON x.trx_mysql_thread_id = t.PROCESSLIST_ID "


@dataclass(frozen=True)
class Holder:
    """A session with a granted lock on *table*; *trx_s* is None without a transaction, or where it may not be seen."""

    number: int
    who: str
    command: str
    seconds: int
    trx_s: int | None
    table: str
    explicit: bool

    @property
    def age_s(self) -> int:
        return self.seconds if self.trx_s is None else self.trx_s

    def __str__(self) -> str:
        doing = [f"{self.command.lower()} for {self.seconds} s"]
        doing += [f"transaction open for {self.trx_s} s"] if self.trx_s is not None else []
        doing += ["LOCK TABLES or DDL"] if self.explicit else []
        return f"connection {self.number} ({self.who}, {', '.join(doing)})"


def run(look: Look) -> list[Finding]:
    """
    Holders at this moment; those of a busy table's ordinary traffic, younger than 10 s, are no finding.

    Where metadata locks cannot be seen, `server` or `privileges` refuses and this check says that it could not look.
    """
    try:
        seen = server.sees_metadata_locks(look.session)
        return [*_backups(look), *_holders(look)] if seen else [_blind()]
    except StatementFailed as error:
        if not unavailable(error):
            raise
        return [_blind()]


def _blind() -> Finding:
    return Finding(
        NAME, "warn", "metadata locks",
        "could not look: nobody can say who holds the table",
        "see the finding on metadata_locks",
        could_not_look=True)


def _holders(look: Look) -> list[Finding]:
    """Our own table refuses, a relative warns: the hold waits for it as well, but it may be gone by then."""
    found = [_finding(holder, "refuse" if holder.age_s >= OLD_S else "warn") for holder in _holding(look, own=True)
             if holder.age_s >= OLD_S or holder.explicit]
    return found + [_finding(holder, "warn") for holder in _holding(look, own=False) if holder.age_s >= OLD_S]


def _finding(holder: Holder, severity: str) -> Finding:
    accept = "blockers" if severity == "refuse" else None
    return Finding(
        NAME, severity, f"table {holder.table}",
        f"is held by {holder}, and no step can be done meanwhile",
        f"end that session (KILL {holder.number}) or let it finish"
        + (", or wait for it inside the rollout with --accept blockers" if accept else ""),
        accept)


def _holding(look: Look, *, own: bool) -> list[Holder]:
    tables = [(look.schema, look.table)] if own else catalogue.related_tables(look.session, look.schema, look.table)
    if not tables:
        return []
    try:
        rows = _rows(look, tables, AGE, TRX)
    except StatementFailed as error:
        if error.errno not in DENIED:
            raise
        rows = _rows(look, tables, "NULL", "")  # without PROCESS, which `privileges` warns of: idle time stands for age
    return [Holder(int(number), f"{user}@{host}", str(command), int(seconds or 0), None if trx is None else int(trx), str(table),
                   bool(explicit)) for number, user, host, command, seconds, trx, table, explicit in rows]


def _rows(look: Look, tables: list[tuple[str, str]], age: str, join: str) -> list[Row]:
    named = " OR ".join([f"(m.OBJECT_SCHEMA = {VALUE} AND m.OBJECT_NAME = {VALUE})"] * len(tables))
    return look.session.query(
        f"SELECT t.PROCESSLIST_ID, t.PROCESSLIST_USER, t.PROCESSLIST_HOST, t.PROCESSLIST_COMMAND, t.PROCESSLIST_TIME, {age}, "
        f"m.OBJECT_NAME, MAX(m.LOCK_TYPE IN ({', '.join([VALUE] * len(EXPLICIT))})) FROM performance_schema.metadata_locks m "
        f"JOIN performance_schema.threads t ON t.THREAD_ID = m.OWNER_THREAD_ID {join}"
        "WHERE m.OBJECT_TYPE = 'TABLE' AND m.LOCK_STATUS = 'GRANTED' AND t.PROCESSLIST_ID <> CONNECTION_ID() "
        f"AND ({named}) GROUP BY 1, 2, 3, 4, 5, 7 ORDER BY 7, 1 LIMIT 100",
        *EXPLICIT, *(part for table in tables for part in table))


def _backups(look: Look) -> list[Finding]:
    """LOCK INSTANCE FOR BACKUP and FLUSH TABLES WITH READ LOCK stop ALTER and CREATE TRIGGER on every table (case C05)."""
    rows = look.session.query(
        "SELECT t.PROCESSLIST_ID, t.PROCESSLIST_USER, t.PROCESSLIST_HOST, MIN(m.OBJECT_TYPE) "
        "FROM performance_schema.metadata_locks m JOIN performance_schema.threads t ON t.THREAD_ID = m.OWNER_THREAD_ID "
        "WHERE m.OBJECT_TYPE IN ('BACKUP LOCK', 'GLOBAL') AND m.LOCK_TYPE = 'SHARED' AND m.LOCK_STATUS = 'GRANTED' "
        "AND t.PROCESSLIST_ID <> CONNECTION_ID() GROUP BY 1, 2, 3 ORDER BY 1")
    return [Finding(
        NAME, "refuse", f"server {look.target.where}",
        f"a backup is running: connection {number} ({user}@{host}) holds the "
        f"{'backup lock' if kind == 'BACKUP LOCK' else 'global read lock'}, which stops all DDL",
        "run again after it, or wait for it inside the rollout with --accept blockers",
        "blockers")
        for number, user, host, kind in rows]
