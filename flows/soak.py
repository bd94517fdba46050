"""How far the soak after phase 5 is: from the ledger and the plan, told as a progress artifact where people look."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta

from flows.progress_artifact import tell_soak
from flows.visible import number
from steps import clocks, parity_looks
from steps.errors import RolloutError
from steps.phase import Phase
from steps.rollout import Rollout


def told(rollout: Rollout) -> float | None:
    """
    Tell how much of the soak is over and what the last look saw; per cent, or None where shadow write does not stand or cannot be read.

    Over is it when `gates.soak.shadow_write` is, and `cleanup.min_age_s` since verify. Safe to repeat; never raises for Prefect's sake.
    """
    with suppress(RolloutError):
        phases = rollout.ledger.phases()
        stands, verified = phases.get(Phase.SHADOW_WRITE), phases.get(Phase.VERIFY)
        if not stands or not verified or stands["state"] != "done" or rollout.cleanup_began():
            return None
        began = datetime.fromisoformat(stands["at"])
        due = max(began + timedelta(seconds=rollout.plan.gates.soak.get(Phase.SHADOW_WRITE, 0)),
                  datetime.fromisoformat(verified["at"]) + timedelta(seconds=rollout.plan.cleanup.min_age_s))
        return tell_soak(rollout.plan.id, began, due, clocks.now(rollout.session).server, _seen(parity_looks.last(rollout)),
                         lost=parity_looks.alarm(rollout) is not None)
    return None


def _seen(look: dict[str, object]) -> str:
    if not look:
        return "nobody has looked yet"
    differing = look.get("differing") or 0
    return f"last look at {look['at']}: {look['outcome']}" + (f", {number(float(str(differing)))} rows differ" if differing else "")
