"""The only sleep and the only retry, so that tests inject both and the suite never idles."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

import tenacity

from steps import cancellation, tenure
from steps.errors import ConnectionLost, RolloutError

T = TypeVar("T")
SLICE_S = 0.1


def sleep_s(seconds: float) -> None:
    """
    Wait *seconds*, an edge all the while. Everybody waits through this name, looked up at call time.

    Raises:
        Cancelled: the run was asked to stop.
        OwnershipLost: this run's table is not its own any more (:mod:`steps.tenure`).
    """
    until_s = now_s() + seconds
    while True:
        cancellation.edge()
        tenure.edge()
        left_s = until_s - now_s()
        if left_s <= 0:
            return
        time.sleep(min(left_s, SLICE_S))


def now_s() -> float:
    """Seconds on a clock that nobody can step."""
    return time.monotonic()


def clock() -> datetime:
    """The time of this machine in UTC, which somebody may step; only ever held against another clock (:mod:`steps.clocks`)."""
    return datetime.now(UTC)


def retry(action: Callable[[], T], *, tries: int, first_wait_s: float, longest_wait_s: float,
          before_wait: Callable[[RolloutError], None] | None = None) -> T:
    """
    Call *action* until it succeeds, at most *tries* times, with growing jittered pauses (cases C06, C60).

    Only errors that call themselves retryable are tried again, and no lost connection, since a session never reconnects; the last one
    is raised as it came. *before_wait* is told each error that will be tried again.
    """

    def tell(state: tenacity.RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        if before_wait and isinstance(error, RolloutError):
            before_wait(error)

    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_exception(lambda error: isinstance(error, RolloutError) and error.retryable
                                          and not isinstance(error, ConnectionLost)),
        stop=tenacity.stop_after_attempt(tries),
        wait=tenacity.wait_exponential_jitter(multiplier=first_wait_s, max=longest_wait_s, jitter=first_wait_s),
        sleep=lambda seconds: sleep_s(seconds),  # noqa: PLW0108  # looked up at call time
        before_sleep=tell,
        reraise=True,
    )
    return retrying(action)
