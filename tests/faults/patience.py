"""A hold that nobody gives back early: what a victim passes then is the same on a machine that is busy with other things."""

from __future__ import annotations

from steps.hold_clock import HoldClock


def install() -> None:
    """In this process's own copy of the tool."""
    HoldClock.fits = lambda *_: True  # type: ignore[method-assign]
