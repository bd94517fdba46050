"""
What `[gates]` of a plan asked for at each run, so that whoever takes something out of it in the file is seen: by the next approver, on
the gate's page, and in the audit trail. `--set` that does so is refused (:meth:`steps.plan_gates.Gates.loosened_by`).
"""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from steps import approvals
from steps.approvals import OPENED
from steps.checks import Finding
from steps.ledger import Ledger
from steps.plan import Plan
from steps.plan_gates import Gates
from steps.rollout import Rollout

KEY, RUN = "gates", "run"
"""Among a run's options on the ledger."""


def asked(plan: Plan) -> dict[str, Any]:
    """As a run's options keep it."""
    return plan.gates.model_dump(mode="json", by_alias=True)


def loosened(rollout: Rollout) -> list[Finding]:
    """
    A warning where the plan asks for less than it did at a run since a gate was passed last, so that the next approver reads it, whoever
    runs or goes back meanwhile. Only reads.
    """
    lost: dict[str, None] = {}
    last: dict[str, Any] = {}
    for run in _since_the_last_gate(rollout.ledger):
        found = _lost(run["options"][KEY], rollout.plan.gates)
        lost, last = lost | dict.fromkeys(found), run if found else last
    if not lost:
        return []
    what = f"asks for less than at the run of {last['started_at']} by {last['actor']}: {', '.join(lost)}"
    return [Finding(KEY, "warn", f"plan {rollout.plan.id}, [gates]", what, "whoever approves should know who changed the plan, and why")]


def _since_the_last_gate(ledger: Ledger) -> list[dict[str, Any]]:
    """Runs forward from the one on that passed a gate last, with the file's own rules on record; all where none was passed."""
    runs = [run for run in ledger.runs() if run["verb"] == RUN and KEY in (run["options"] or {})
            and not any(str(item).startswith(f"{KEY}.") for item in run["options"].get("settings") or [])]
    passed = [run_id for _, run_id, _, _, outcome, _ in approvals.rows(ledger) if outcome == OPENED]
    first = next((at for at, run in enumerate(runs) if passed and run["run_id"] == passed[-1]), 0)
    return runs[first:]


def _lost(before: object, now: Gates) -> list[str]:
    try:
        return Gates.model_validate(before).loosened_by(now)
    except ValidationError:  # another tool's version knew other keys
        return []
