"""Where this server stands among others, and who reads its binary log: replicas, change-data-capture readers (C36, C65, C66, C92)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from steps.checks import words
from steps.checks.finding import Finding, Look, unavailable
from steps.errors import StatementFailed
from steps.mysql import VALUE, Row, Session

NAME = "replication"
CDC, REPLICA = "cdc", "replica"
VARIABLES = ("log_bin", "binlog_format", "binlog_row_metadata", "binlog_row_image", "binlog_expire_logs_seconds",
             "group_replication_single_primary_mode")
SHORTEST_KEPT_S = 3600
FILTERS = ("SHOW BINARY LOG STATUS", "SHOW MASTER STATUS")  # from 8.2 on, and before
SYNTAX = 1064


@dataclass(frozen=True)
class Reader:
    """A session that reads the binary log; *is_replica* is None where its connection attributes cannot be seen."""

    number: int
    who: str
    is_replica: bool | None


def run(look: Look) -> list[Finding]:
    """One look at the server's own source, its variables and the sessions that read its log. Takes no lock."""
    session = look.session
    names = ", ".join([VALUE] * len(VARIABLES))
    has = {str(k): str(v) for k, v in session.query(f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({names})", *VARIABLES)}
    return [*_sources(look), *multi_primary(session, has), *statement_format(has), *_filters(look),
            *consumers(readers(session), has, moves_columns(look))]


def _sources(look: Look) -> list[Finding]:
    """Written to, a replica goes its own way, and its source's next change may break it; it need not be read-only."""
    try:
        rows = look.session.query("SHOW REPLICA STATUS")
    except StatementFailed as error:
        if not unavailable(error):
            raise
        return []  # `privileges` tells that REPLICATION CLIENT is missing
    return [Finding(
        NAME, "refuse", f"server {look.target.where}",
        f"is a replica of {', '.join(f'{row[1]}:{row[3]}' for row in rows)}: what is changed here never reaches its source, and what the "
        "source writes next may no longer fit",
        f"name the source in the database URL; or, where both write on purpose, go on with --accept {REPLICA}",
        REPLICA)] if rows else []


def multi_primary(session: Session, has: Mapping[str, str]) -> list[Finding]:
    """Named locks and LOCK TABLES hold one member only; MySQL itself forbids DDL beside writes on another member (case C92)."""
    if has.get("group_replication_single_primary_mode", "ON").upper() in ("ON", "1"):
        return []
    members = session.value("SELECT COUNT(*) FROM performance_schema.replication_group_members WHERE MEMBER_STATE = 'ONLINE'")
    return [Finding(
        NAME, "refuse", f"group of {members} servers",
        "runs in multi-primary mode: a lock taken on one member holds nobody on the others, so no change here is safe",
        "switch to single-primary mode for the rollout (group_replication_switch_to_single_primary_mode)")] if members else []


def statement_format(has: Mapping[str, str]) -> list[Finding]:
    """Passes run under READ COMMITTED, whose writes the server refuses to log as statements (error 1665)."""
    if has.get("log_bin", "OFF").upper() not in ("ON", "1") or has.get("binlog_format", "ROW").upper() != "STATEMENT":
        return []
    return [Finding(
        NAME, "refuse", "binary log",
        "binlog_format is STATEMENT: every pass would fail with error 1665, after the table was changed",
        "SET GLOBAL binlog_format = ROW (or MIXED)")]


def _filters(look: Look) -> list[Finding]:
    """binlog-do-db and binlog-ignore-db leave out statements by the session's default schema, which is the table's."""
    for statement in FILTERS:
        try:
            rows = look.session.query(statement)
            break
        except StatementFailed as error:
            if error.errno != SYNTAX:
                if not unavailable(error):
                    raise
                return []
    else:
        return []
    only, never = ({name for name in str(part or "").split(",") if name} for part in (rows[0][2], rows[0][3])) if rows else (set(), set())
    if look.schema not in never and (not only or look.schema in only):
        return []
    return [Finding(
        NAME, "warn", f"schema {look.schema}",
        "is left out of the binary log (binlog-do-db or binlog-ignore-db): replicas and backups from it will not get the change",
        "carry the change out on them as well, or log this schema")]


def moves_columns(look: Look) -> bool:
    """Whether the plan puts columns between others or gives one another name, so that readers by position read wrong ones."""
    return bool(look.plan.renames or look.plan.removed_columns) or any(
        words.places_between(sql) for sql in words.steps_sql(look.plan).values())


def readers(session: Session) -> list[Reader]:
    """Every session that reads the binary log; a MySQL replica says so in its connection attributes (measured on 9.7.4)."""
    attribute = ("(SELECT MAX(a.ATTR_VALUE) FROM performance_schema.session_connect_attrs a WHERE a.PROCESSLIST_ID = t.PROCESSLIST_ID "
                 "AND a.ATTR_NAME = '_client_role')")
    for table, prefix in (("performance_schema.threads", "PROCESSLIST_"), ("information_schema.PROCESSLIST", "")):
        for role in (attribute, "NULL") if prefix else ("NULL",):
            try:
                rows: list[Row] = session.query(
                    f"SELECT {prefix}ID, {prefix}USER, {prefix}HOST, {role} FROM {table} t WHERE {prefix}COMMAND LIKE {VALUE} ORDER BY 1",
                    "Binlog Dump%")
            except StatementFailed as error:
                if not unavailable(error):
                    raise
                continue
            if rows or (role != "NULL" and session.value("SELECT @@performance_schema")):
                known = role != "NULL"
                return [Reader(int(number), f"{user}@{host}", said == "binary_log_listener" if known else None)
                        for number, user, host, said in rows]
    return []


def consumers(reading: list[Reader], has: Mapping[str, str], moves: bool) -> list[Finding]:
    """Readers that are no replicas, or may be none, may put values into the wrong columns from the first AFTER or rename on."""
    others = [reader for reader in reading if not reader.is_replica]
    found = []
    if others and moves:
        which = ", ".join(f"connection {reader.number} ({reader.who})" for reader in others[:5])
        metadata, image = has.get("binlog_row_metadata", "MINIMAL"), has.get("binlog_row_image", "FULL")
        by_place = ", so they know columns by place only" if metadata.upper() != "FULL" else ""
        partly = f", binlog_row_image is {image}" if image.upper() != "FULL" else ""
        unknown = "" if all(reader.is_replica is False for reader in others) else " (whether they are replicas could not be seen)"
        found.append(Finding(
            NAME, "refuse", "readers of the binary log",
            f"{len(others)} follow it: {which}{unknown}; the plan adds columns between others and renames some, and "
            f"binlog_row_metadata is {metadata}{by_place}{partly}: a change-data-capture reader may put values into wrong columns",
            f"see that each can follow such a change, then go on with --accept {CDC}; columns added at the end are easier for them",
            CDC))
    kept_s = int(has.get("binlog_expire_logs_seconds", "0"))
    if reading and 0 < kept_s < SHORTEST_KEPT_S:
        found.append(Finding(
            NAME, "warn", "binary log",
            f"is kept for {kept_s} s only (binlog_expire_logs_seconds): a reader that stops for the change may not find its place again",
            "keep it for a day while the rollout runs"))
    return found
