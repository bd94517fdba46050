"""The one retry: only what calls itself retryable, with growing pauses, and the last error as it came."""

from __future__ import annotations

import pytest

from steps import waits
from steps.errors import ConnectionLost, LockTimeout, Refused, RolloutError


def failing(times: int, error: RolloutError) -> object:
    left = iter([error] * times)

    def action() -> str:
        for raised in left:
            raise raised
        return "done"

    return action


WAITED = LockTimeout("ALTER", "MySQL error 1205", "", 1205)


def test_what_may_be_tried_again_is_with_growing_pauses(slept: list[float]) -> None:
    told: list[RolloutError] = []

    assert waits.retry(failing(4, WAITED), tries=5, first_wait_s=1, longest_wait_s=5, before_wait=told.append) == "done"  # type: ignore[arg-type]
    assert told == [WAITED] * 4
    assert len(slept) == 4
    assert all(1 <= seconds <= 6 for seconds in slept)
    assert slept[0] < 2.1 < slept[3]


def test_the_last_error_comes_out_as_it_came(slept: list[float]) -> None:
    with pytest.raises(LockTimeout) as raised:
        waits.retry(failing(9, WAITED), tries=3, first_wait_s=1, longest_wait_s=5)  # type: ignore[arg-type]

    assert raised.value is WAITED
    assert len(slept) == 2


@pytest.mark.parametrize("error", [Refused("t", "no"), RolloutError("t", "fault"), ConnectionLost("SELECT 1", "gone", "", 2013)])
def test_anything_else_is_not_tried_again(slept: list[float], error: RolloutError) -> None:
    with pytest.raises(type(error)):
        waits.retry(failing(1, error), tries=3, first_wait_s=1, longest_wait_s=5)  # type: ignore[arg-type]

    assert slept == []
