"""
What became of a statement whose connection was lost: asked of the server, waited for, looked up; never repeated (design section 2, C84).

MySQL goes on with a statement though its client is gone. So until the server has ended it, the catalogue says only what was before.
"""

from __future__ import annotations

from collections.abc import Callable

from steps import answers, waits
from steps.errors import ConnectionLost, Drifted, OwnershipLost, Refused, RolloutError, StatementFailed, Stopped
from steps.mysql import Session
from steps.rollout import Rollout

TRIES, FIRST_WAIT_S, LONGEST_WAIT_S = 8, 0.25, 5.0
POLL_S, TELL_EVERY_S = 0.25, 5.0


def happened(rollout: Rollout, session: Session, error: StatementFailed, subject: str, done: Callable[[Session], bool]) -> bool:
    """
    After *error* of a statement on *session*: whether its effect is there all the same, as *done* sees it on another session.

    Where the server answered, one look. Where the connection was lost: connects anew with growing pauses, waits until the server no
    longer works on the statement, watched as before, and lets go of what the lost session held. Safe to repeat.

    Raises:
        Stopped: the server could not be asked; nothing is claimed.
        OwnershipLost: another run has the table meanwhile.
    """
    if not isinstance(error, ConnectionLost):
        return _answered(rollout.session, done)
    why = ""
    for attempt in range(TRIES):
        try:
            with session.beside() as beside:
                _wait_for_its_end(rollout, session, beside)
                answers.ended(session, beside)
                return _seen(beside, done)
        except OwnershipLost:
            raise
        except (Refused, StatementFailed) as unanswered:
            why = unanswered.reason
        waits.sleep_s(min(FIRST_WAIT_S * 2 ** attempt, LONGEST_WAIT_S))
    raise Stopped(subject, f"the connection was lost ({error.reason}), and what became of the statement could not be asked: {why}",
                  "run the same command again once the server can be reached; it looks first")


def _answered(session: Session, done: Callable[[Session], bool]) -> bool:
    try:
        return done(session)
    except RolloutError:
        return False  # the server said that it failed, and a statement that failed changed nothing


def _seen(session: Session, done: Callable[[Session], bool]) -> bool:
    """*done*, where a table that stands on no stair is not done; a look that failed is no answer."""
    try:
        return done(session)
    except Drifted:
        return False


def _wait_for_its_end(rollout: Rollout, session: Session, beside: Session) -> None:
    told_s, began_s = float("-inf"), waits.now_s()
    with rollout.watchdog.while_waiting(session.connection_id, rollout.limits.patience_s):
        while answers.works_on(session, beside):
            rollout.check_owner(beside)
            if waits.now_s() - told_s >= TELL_EVERY_S:
                told_s = waits.now_s()
                rollout.say("the connection was lost, the server goes on with the statement; waiting for its end",
                            connection=session.connection_id, seconds=round(waits.now_s() - began_s))
            waits.sleep_s(POLL_S)
