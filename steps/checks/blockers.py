"""Who is in the way of an exclusive metadata lock now: holders, waiters, backups, DDL, prepared XA, old snapshots (C01, C05, C07)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from steps import catalogue, holders, snapshots
from steps.checks import server
from steps.checks.finding import DENIED, Finding, Look, unavailable
from steps.errors import StatementFailed
from steps.holders import Holder

NAME = "blockers"
KEY = "blockers"
OLD_S = 10
OLD_SNAPSHOT_S = 60
LONG_HISTORY = 1_000_000
MANY = 100


def run(look: Look) -> list[Finding]:
    """
    What is there at this moment; the ordinary traffic of a busy table, younger than 10 s, is no finding.

    Where metadata locks cannot be seen, `server` or `privileges` refuses and this check says that it could not look.
    """
    try:
        if not server.sees_metadata_locks(look.session):
            return [_blind()]
        related = catalogue.related_tables(look.session, look.schema, look.table)
        seen = holders.look(look.session, [(look.schema, look.table), *related], limit=MANY)
    except StatementFailed as error:
        if not unavailable(error):
            raise
        return [_blind()]
    judged = [finding for holder in seen for finding in _judged(holder, look)]
    return [*judged, *_prepared(look, seen), *_old_snapshots(look, {holder.number for holder in seen if holder.number})]


def locked_out(look: Look) -> Finding:
    """What is told, alone, when a check had to wait for the table longer than it may: somebody has locked it even for readers."""
    held = "; ".join(holders.named(look.session, [(look.schema, look.table)])) or "by whom could not be seen"
    return Finding(
        NAME, "refuse", f"table {look.table}",
        f"could not look: it is locked even for readers: {held}",
        "end that session or let it finish, then run again",
        could_not_look=True)


def _blind() -> Finding:
    return Finding(
        NAME, "warn", "metadata locks",
        "could not look: nobody can say who holds the table",
        "see the finding on metadata_locks",
        could_not_look=True)


def _judged(holder: Holder, look: Look) -> Iterator[Finding]:
    """Our own table refuses, a relative warns: the hold waits for it as well, but it may be gone by then."""
    if holder.number is None:
        return  # told by what XA RECOVER says
    own = holder.table == look.table
    if holder.stops_all_ddl:
        kind = "backup lock" if "BACKUP LOCK" in holder.kinds else "global read lock"
        yield Finding(
            NAME, "refuse", f"server {look.target.where}",
            f"a backup is running: {holder.named} holds the {kind}, which stops all DDL",
            "run again after it, or wait for it inside the rollout with --accept blockers",
            KEY)
    elif holder.age_s >= OLD_S:
        yield _finding(holder, "refuse" if own else "warn")
    elif own and (holder.is_explicit or holder.is_ddl):
        yield _finding(holder, "warn")


def _finding(holder: Holder, severity: str) -> Finding:
    accept = KEY if severity == "refuse" else None
    text = str(replace(holder, table="it"))
    return Finding(
        NAME, severity, f"table {holder.table}",
        f"{text.removeprefix('it ')}; no step can be done meanwhile",
        f"end that session (KILL {holder.number}) or let it finish"
        + (", or wait for it inside the rollout with --accept blockers" if accept else ""),
        accept)


def _prepared(look: Look, seen: list[Holder]) -> list[Finding]:
    """
    A prepared XA transaction keeps its metadata locks without a session, and after a restart; no KILL reaches it.

    XA RECOVER does not say which table one touched, so all its ids are named. Those with no lock on our tables are no finding.
    """
    here = sorted({holder.table for holder in seen if holder.number is None}, key=lambda table: table != look.table)
    if not here:
        return []
    refuses, ids = here[0] == look.table, _prepared_ids(look)
    return [Finding(
        NAME, "refuse" if refuses else "warn", f"table {here[0]}",
        "is held by a prepared XA transaction that no session owns, and no step can be done meanwhile"
        + (f"; prepared are {', '.join(ids[:5])}" if ids else ""),
        "let its coordinator end it, or end it by hand with XA COMMIT or XA ROLLBACK"
        + ("" if ids else "; XA RECOVER CONVERT XID names it (needs XA_RECOVER_ADMIN)"),
        KEY if refuses else None)]


def _prepared_ids(look: Look) -> list[str]:
    """Ids as XA COMMIT takes them: gtrid, bqual, formatID."""
    try:
        rows = look.session.query("XA RECOVER CONVERT XID")
    except StatementFailed as error:
        if error.errno not in {*DENIED, 1401}:
            raise
        return []
    found = []
    for form, gtrid_length, _bqual_length, data in rows:
        digits = str(data).removeprefix("0x")
        gtrid, bqual = digits[:2 * int(gtrid_length)], digits[2 * int(gtrid_length):]
        found.append(f"X'{gtrid}',X'{bqual}',{form}")
    return found


def _old_snapshots(look: Look, told: set[int]) -> list[Finding]:
    """Long-open snapshots get 1412 at their first touch of the table (F25), and keep old row versions alive for everybody."""
    try:
        old = [snapshot for snapshot in snapshots.older_than(look.session, OLD_SNAPSHOT_S) if snapshot.number not in told]
        history = snapshots.history_length(look.session)
    except StatementFailed as error:
        if error.errno not in DENIED:
            raise
        return []
    found = [Finding(
        NAME, "warn", f"server {look.target.where}",
        f"transaction open since {old[0].started} UTC on connection {old[0].number} ({old[0].who})"
        + (f" and {len(old) - 1} more older than {OLD_SNAPSHOT_S} s" if len(old) > 1 else "")
        + ": it will get 1412 once if it touches the table after a step",
        "let it end first, or expect that it must be repeated")] if old else []
    if history > LONG_HISTORY:
        found.append(Finding(
            NAME, "warn", f"server {look.target.where}",
            f"purge is behind: history list length is {history}; passes and index builds will be slow",
            "find the oldest transaction, or wait until purge has caught up"))
    return found
