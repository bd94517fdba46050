"""
What `[gates]` of a plan asked for at each run, so that whoever takes something out of it in the file is seen: by the next approver, on
the gate's page, and in the audit trail. `--set` that does so is refused (:meth:`steps.plan_gates.Gates.loosened_by`).
"""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from steps.checks import Finding
from steps.plan import Plan
from steps.plan_gates import Gates
from steps.rollout import Rollout

KEY = "gates"
"""Among a run's options on the ledger."""


def asked(plan: Plan) -> dict[str, Any]:
    """As a run's options keep it."""
    return plan.gates.model_dump(mode="json", by_alias=True)


def loosened(rollout: Rollout) -> list[Finding]:
    """A warning where the plan asks for less than at the last run whose rules are on record. Only reads."""
    last = next((run for run in reversed(rollout.ledger.runs()) if KEY in (run["options"] or {})), None)
    if last is None:
        return []
    try:
        before = Gates.model_validate(last["options"][KEY])
    except ValidationError:  # another tool's version knew other keys
        return []
    lost = before.loosened_by(rollout.plan.gates)
    if not lost:
        return []
    what = f"asks for less than at the {last['verb']} of {last['started_at']} by {last['actor']}: {', '.join(lost)}"
    return [Finding(KEY, "warn", f"plan {rollout.plan.id}, [gates]", what, "whoever approves should know who changed the plan, and why")]
