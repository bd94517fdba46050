"""
Errors that say something about the server, not about the statement: what each means for the run, and what to do (C24, C26, C83, C84).

None of them is tried again at once; the same command continues when the cause is gone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from steps.errors import ConnectionLost, LockTimeout, RolloutError, StatementFailed, Stopped, Unreachable
from steps.mysql import Session


@dataclass(frozen=True)
class Trouble:
    """What an error number means; *variable* is told with its value, since it is the one to look at."""

    means: str
    remedy: str
    variable: str = ""


DISK = Trouble("the disk or the temporary folder is full; the server rolled the statement back",
               "make room as large as the table with its indexes, on the data disk and in tmpdir", "tmpdir")
LOG = Trouble("the server cannot write its binary log", "make room on the disk of the binary log, and read the server's error log")
TOO_MANY = Trouble("the server takes no further connection", "close idle connections or raise the limit", "max_connections")
READ_ONLY = Trouble("the server is read-only now: a failover, or a managed server whose disk is full",
                    "look whether this address still names the primary, and whether its disk is full")
NO_SPACE = "No space left on device"
TROUBLES = {
    3: DISK, 28: DISK, 1021: DISK, 1026: DISK, 1114: DISK, 1598: LOG, 1878: DISK, 3675: DISK,
    1799: Trouble("clients wrote more during the build than the server keeps for it; the server rolled the statement back",
                  "run again at a quieter time, or have it raised for as long as this takes", "innodb_online_alter_log_max_size"),
    1040: TOO_MANY, 1203: TOO_MANY,
    1226: Trouble("the account has used up a limit of its own", "ALTER USER … WITH MAX_USER_CONNECTIONS, or wait for the hour to end",
                  "max_user_connections"),
    1290: READ_ONLY, 1792: READ_ONLY, 1836: READ_ONLY,
}


def explained(error: StatementFailed, session: Session | None = None) -> Stopped | None:
    """*error* as what it means for the run, with the value of the variable that decides; None for errors of the statement's own."""
    trouble = _trouble(error)
    if not trouble:
        return None
    shown = _shown(trouble.variable, session)
    return Stopped(error.subject, f"{error.reason}: {trouble.means}{shown}", f"{trouble.remedy}; then run the same command again")


def interrupted(error: BaseException) -> bool:
    """Whether *error* is the server's or a lock's: nothing has failed for good, and the same command continues."""
    return isinstance(error, Stopped | LockTimeout | ConnectionLost | Unreachable) or (
        isinstance(error, StatementFailed) and _trouble(error) is not None)


def _trouble(error: StatementFailed) -> Trouble | None:
    """By number; a full disk also by what the operating system says, which other numbers carry (1030, 1005)."""
    return TROUBLES.get(error.errno) or (DISK if NO_SPACE in error.reason else None)


def _shown(variable: str, session: Session | None) -> str:
    if not variable or session is None:
        return ""
    try:
        return f" ({variable} is {session.value(f'SELECT @@global.{variable}')})"
    except RolloutError:
        return ""  # the server may be the very thing that is gone


@contextmanager
def stops(table: str) -> Iterator[None]:
    """
    A run that has begun is stopped by the server's troubles, never refused and never a fault of ours.

    Raises:
        Stopped: in place of :class:`Unreachable`, which promises that nothing was touched, and of what :data:`TROUBLES` lists.
    """
    try:
        with explains():
            yield
    except Unreachable as error:
        raise Stopped(f"table {table}", f"{error.subject} let no further session in: {error.reason}",
                      "what was done stands, and the same command continues once the server can be reached") from None


@contextmanager
def explains() -> Iterator[None]:
    """
    Also before a run has begun, while it looks or makes its ledger, a server's trouble is no fault of ours.

    Raises:
        Stopped: in place of what :data:`TROUBLES` lists.
    """
    try:
        yield
    except StatementFailed as error:
        stopped = explained(error)
        if not stopped:
            raise
        raise stopped from None
