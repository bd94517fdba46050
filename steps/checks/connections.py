"""Whether the server still has room for all the connections that a run opens, for everybody and for this account (case C83)."""

from __future__ import annotations

import re
from dataclasses import replace

from steps.checks.finding import Finding, Look
from steps.errors import StatementFailed
from steps.mysql import VALUE, Session, sessions_standing
from steps.plan import Plan

NAME = "connections"
MOST = 5
"""The most connections a run needs at a time: worker, ledger, owner lock, watchdog, and one in a hold or two in a rehearsal."""

BESIDE_LANES = 4
"""What a run has open while a pass goes on several connections: worker, ledger, owner lock, watchdog."""

STOPS, FEWER = "and would stop half-way", "for all lanes of its passes, which will be fewer"
HOURLY = re.compile(r"(MAX_(?:QUERIES|UPDATES|CONNECTIONS)_PER_HOUR) ([1-9]\d*)")


def most(plan: Plan) -> int:
    """The most connections a run of *plan* may have at a time, the lanes of its passes among them; with fewer they do with fewer lanes."""
    lanes = plan.backfill.lanes if plan.filled_columns else 1
    return max(MOST, BESIDE_LANES + lanes) if lanes > 1 else MOST


def run(look: Look) -> list[Finding]:
    """Head-room at this moment; what this process has open already is not asked for twice. Takes no lock."""
    standing = sessions_standing()
    needed, lanes = max(0, MOST - standing), max(0, most(look.plan) - standing)
    refused = [*_server(look, needed), *_account(look, needed)]
    fewer = [replace(finding, severity="warn", what=finding.what.replace(STOPS, FEWER)) for finding in
             [*_server(look, lanes), *_account(look, lanes)]] if lanes > needed and not refused else []
    return [*refused, *fewer, *_hourly(look.session)]


def _server(look: Look, wanted: int) -> list[Finding]:
    used = int(look.session.query("SHOW GLOBAL STATUS LIKE 'Threads_connected'")[0][1])
    most = int(look.session.value("SELECT @@global.max_connections"))
    if most - used >= wanted:
        return []
    return [_finding(
        f"server {look.target.where}",
        f"has {used} of {most} connections in use (max_connections); a run needs {wanted} more {STOPS} (error 1040)",
        "close idle connections or raise max_connections, then run again")]


def _account(look: Look, wanted: int) -> list[Finding]:
    """The session's own value is the limit in force: the account's, else the server's; 0 is none."""
    most = int(look.session.value("SELECT @@session.max_user_connections"))
    if not most:
        return []
    user = str(look.session.value("SELECT USER()")).rpartition("@")[0]
    used = int(look.session.value(f"SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = {VALUE}", user))
    if most - used >= wanted:
        return []
    return [_finding(
        f"account {look.session.value('SELECT CURRENT_USER()')}",
        f"has {used} of {most} connections in use (max_user_connections); a run needs {wanted} more {STOPS} "
        "(error 1203 or 1226)",
        f"ALTER USER … WITH MAX_USER_CONNECTIONS {used + wanted}, or give the tool an account of its own")]


def _hourly(session: Session) -> list[Finding]:
    """A run sends hundreds of statements; an hour's limit would end it anywhere."""
    try:
        said = str(session.value("SHOW CREATE USER CURRENT_USER()"))
    except StatementFailed:
        return []  # an account that may not even read about itself has no limits that could be told
    limits = [f"{name} {number}" for name, number in HOURLY.findall(said)]
    if not limits:
        return []
    return [_finding(
        f"account {session.value('SELECT CURRENT_USER()')}",
        f"has {', '.join(limits)}; a run would stop wherever that is used up (error 1226)",
        "give the tool an account without hourly limits")]


def _finding(subject: str, what: str, remedy: str) -> Finding:
    return Finding(NAME, "refuse", subject, what, remedy)
