"""What must be done on the server though our sessions are lost (a restart, a KILL): ours never reconnect, so a new one does it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from steps import cancellation, tenure, waits
from steps.errors import ConnectionLost, RolloutError, Unreachable
from steps.mysql import Session
from steps.target import Target

T = TypeVar("T")
WITHIN_S = 5
PATIENT, FIRST_WAIT_S, LONGEST_WAIT_S = 12, 0.25, 4.0  # a server that was killed is back within half a minute


def over_another(target: Target, act: Callable[[Session], T], *, tries: int = 1) -> T | None:
    """*act* over a new session, tried again *tries* times while nobody answers; None where that came to nothing. Raises nothing of ours."""
    with tenure.unasked():
        for number in range(tries):
            try:
                with Session(target, read_timeout_s=WITHIN_S) as session:
                    return act(session)
            except (Unreachable, ConnectionLost):
                if cancellation.asked():
                    return None
                if number + 1 < tries:
                    waits.sleep_s(min(FIRST_WAIT_S * 2**number, LONGEST_WAIT_S))
            except RolloutError:
                return None
    return None
