"""Whether cleanup's own conditions hold: what the gate shows to whoever is to approve it, and what stops one who is too early."""

from __future__ import annotations

from dataclasses import dataclass

from steps import clocks, parity_events
from steps.clocks import Moment
from steps.phase import Phase
from steps.rollout import Rollout
from steps.sync import SyncState


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


def unmet(rollout: Rollout) -> list[str]:
    """Which of cleanup's conditions do not hold, as far as ledger and catalogue tell at once. No lock."""
    young = too_young(rollout, clocks.now(rollout.session))
    found = [young.reason] if young else []
    lost = parity_events.lost(rollout.ledger)
    if lost:
        found.append(lost)
    if rollout.plan.filled_columns and rollout.sync_state() is not SyncState.ON:
        found.append(f"the sync triggers are {rollout.sync_state().value}")
    return found
