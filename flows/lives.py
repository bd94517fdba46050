"""One flow run in all its lives: what it did before it was suspended is its own, too. Prefect-free; the ledger has its name at each run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steps.phase import FORWARD
from steps.rollout import Rollout


def flow_run_of(run: dict[str, Any]) -> str | None:
    """Prefect's name for a run of the ledger, where it had one."""
    return (run["options"] or {}).get("flow_run")


def runs_of(runs: Sequence[dict[str, Any]], run_id: str) -> list[dict[str, Any]]:
    """The run of that id, and what the same flow run did before; empty where the ledger does not know it."""
    mine = next((run for run in runs if run["run_id"] == run_id), None)
    flow_run = flow_run_of(mine) if mine else None
    return [run for run in runs if run is mine or (flow_run and flow_run_of(run) == flow_run)]


def phases_done(rollout: Rollout) -> list[str]:
    """The phases that stand done by the run at hand, in any of its lives, in the runbook's order."""
    mine, recorded = {run["run_id"] for run in runs_of(rollout.ledger.runs(), rollout.ledger.run_id)}, rollout.ledger.phases()
    return [phase.value for phase in FORWARD if phase in recorded and recorded[phase]["state"] == "done"
            and recorded[phase]["run_id"] in mine]
