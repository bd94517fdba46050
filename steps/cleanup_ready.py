"""Whether verify has passed long enough ago for cleanup to begin."""

from __future__ import annotations

from dataclasses import dataclass

from steps import clocks
from steps.clocks import Moment
from steps.phase import Phase
from steps.rollout import Rollout


@dataclass(frozen=True)
class TooYoung:
    """Verify has passed too short a while ago."""

    reason: str
    due: Moment


def too_young(rollout: Rollout, now: Moment) -> TooYoung | None:
    """Whether `cleanup.min_age_s` since verify is not over by both clocks (case C84)."""
    verified = rollout.ledger.phases().get(Phase.VERIFY)
    if not verified:
        return None
    due = clocks.recorded(verified["at"], verified["detail"].get("by_tool_clock")).plus(rollout.plan.cleanup.min_age_s)
    if due.has_come(now):
        return None
    return TooYoung(f"verify passed at {verified['at']}, less than cleanup.min_age_s = {rollout.plan.cleanup.min_age_s} s ago"
                    + clocks.difference(now), due)
