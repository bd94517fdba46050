"""When a hold is given back: before another move would stall clients, by what moves took so far."""

from __future__ import annotations

import pytest

from steps import waits
from steps.hold_clock import HoldClock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> HoldClock:
    now_s = [100.0]
    monkeypatch.setattr(waits, "now_s", lambda: now_s[0])
    made = HoldClock(1000)
    made.wait = lambda ms: now_s.__setitem__(0, now_s[0] + ms / 1000)  # type: ignore[attr-defined]
    return made


def test_the_first_move_is_always_begun(clock: HoldClock) -> None:
    assert clock.fits(5000)


def test_moves_go_on_while_they_fit_into_seven_tenths_of_the_stall(clock: HoldClock) -> None:
    clock.wait(300)  # type: ignore[attr-defined]
    clock.did(300)

    assert clock.fits(399)
    assert not clock.fits(401)


def test_on_a_server_three_times_slower_than_estimated_estimates_count_three_times(clock: HoldClock) -> None:
    clock.wait(300)  # type: ignore[attr-defined]
    clock.did(100)

    assert clock.fits(133)
    assert not clock.fits(134)


def test_a_fast_server_does_not_shorten_estimates(clock: HoldClock) -> None:
    clock.wait(10)  # type: ignore[attr-defined]
    clock.did(100)

    assert not clock.fits(691)
