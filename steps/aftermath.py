"""
What became of a statement whose connection was lost: the server may still be at it, and only the catalogue knows in the end (case C84).

Never answered by sending it again, and never from a connection that was lost along with it.
"""

from __future__ import annotations

from collections.abc import Callable

import structlog

from steps import server_trouble, tenure, waits
from steps.errors import ConnectionLost, Drifted, Refused, StatementFailed, Stopped, Unreachable
from steps.mysql import VALUE, Session
from steps.rollout import Rollout
from steps.target import Target

TRIES, FIRST_WAIT_S = 12, 0.25  # a server that was killed is back within half a minute, or somebody has to look at it
LONGEST_WAIT_S = 4.0
AGAIN = "remove the cause, then run the same command again"
TELL_EVERY_S = 30.0
log: structlog.stdlib.BoundLogger = structlog.get_logger("rollout")


def refuse_undone(rollout: Rollout, what: str, failed: Session, error: StatementFailed, look: Callable[[Session], bool]) -> None:
    """
    After *error* on *failed*: return if *look* finds on another connection that the statement did its work all the same.

    Raises:
        Stopped: it did not, or nobody could be asked.
    """
    with tenure.unasked():
        found = happened(rollout.target, failed.connection_id, look) if isinstance(error, ConnectionLost) else _now(rollout.session, look)
    if found:
        return
    server = server_trouble.explained(error, rollout.watchdog.session)
    became = "this step changed nothing and those before it stand"
    if found is None:
        became = "those before it stand; what became of this step could not be looked up, and the next run looks first"
    raise Stopped(what, server.reason if server else error.reason, f"{became}; {server.remedy if server else AGAIN}") from None


def happened(target: Target, connection_id: int, look: Callable[[Session], bool]) -> bool | None:
    """
    Connect anew, wait until *connection_id* is gone from the server, then ask *look*; None when nobody could be asked.

    A statement that works on without its client is waited for as long as it takes: its locks would stop whatever came next.
    """
    for number in range(TRIES):
        try:
            with Session(target) as session:
                _wait_for_its_end(session, connection_id)
                return _now(session, look)
        except (Unreachable, ConnectionLost):
            waits.sleep_s(min(FIRST_WAIT_S * 2**number, LONGEST_WAIT_S))
    return None


def _now(session: Session, look: Callable[[Session], bool]) -> bool | None:
    try:
        return look(session)
    except Drifted:
        return False
    except Refused:
        return None
    except StatementFailed as error:
        if isinstance(error, ConnectionLost):
            raise
        return None


def _wait_for_its_end(session: Session, connection_id: int) -> None:
    """A restarted server counts its connections anew, so a number may be somebody else's by then; only one of our account is waited for."""
    began_s = told_s = waits.now_s()
    while session.value("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = "
                        f"{VALUE} AND ID <> CONNECTION_ID() AND COMMAND IN ('Query', 'Killed') "
                        "AND USER = SUBSTRING_INDEX(USER(), '@', 1)", connection_id):
        if waits.now_s() - told_s >= TELL_EVERY_S:
            told_s = waits.now_s()
            log.info("the server is still at a statement whose connection was lost", connection=connection_id,
                     seconds=round(told_s - began_s))
        waits.sleep_s(FIRST_WAIT_S)
