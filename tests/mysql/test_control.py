"""A stop is for the run at work: one that came when it had ended is not for the next."""

from __future__ import annotations

from collections.abc import Callable

from steps import control
from steps.rollout import Rollout, owned


def test_a_stop_that_came_after_the_last_run_does_not_stop_the_next(rollouts: Callable[..., Rollout]) -> None:
    rollout = rollouts()
    rollout.ledger.create()
    control.ask(rollout.ledger, control.STOP, "ann", "late")

    with owned(rollout, "run", {}):
        assert control.wish(rollout.ledger).wanted == control.RUN
