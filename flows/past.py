"""
What the ledger says of the past, as the events that Prefect's own engine would have sent then: only events bear their own times.

Each name is made of the ledger's, so that the same thing told twice is one thing.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid5

from flows import cockpit
from flows.history import CANCELLED, CRASHED, TOLD_LATER, Done, Ending, Told

cockpit.prepare()

from prefect.client.schemas.objects import TaskRun  # noqa: E402  # only after the settings above
from prefect.events.schemas.events import Event  # noqa: E402

NAMES = UUID("6f1f8f3a-6c0e-4c07-9a55-3f2f2b8f7a11")
A_MOMENT = timedelta(milliseconds=1)


def name_of(run: Told, key: str) -> UUID:
    """Of a task run or of one of its states, the same whenever it is asked for."""
    return uuid5(NAMES, f"{run.run_id}/{key}")


def done(run: Told, flow_run: UUID, what: Done) -> Event:
    """The end of a task run that Prefect never heard of: a phase, or what was done in one."""
    inputs = {name: [{"input_type": "task_run", "id": str(name_of(run, key))}]
              for name, key in (("__parents__", what.parent), ("wait_for", what.after)) if key}
    facts = {"name": what.name, "task_key": f"ledger-{what.key}", "dynamic_key": what.key, "tags": [TOLD_LATER], "task_inputs": inputs,
             "run_count": 1, "flow_run_run_count": 1, "start_time": what.began, "end_time": what.ended, "expected_start_time": what.began,
             "total_run_time": (what.ended - what.began).total_seconds()}
    return _state_event(name_of(run, what.key), name_of(run, f"{what.key}/end"), flow_run, what.ending, what.message, what.ended, facts)


def ended(run: Told, flow_run: UUID, one: TaskRun) -> Event:
    """The end of a task run that Prefect saw begin; when it did, as far as anybody knows."""
    by_ledger = next((what.ending for what in run.done if what.name == one.name), run.ending)
    ending = run.ending if run.ending[0] in (CANCELLED, CRASHED) else by_ledger
    at = max(run.ended, one.state.timestamp + A_MOMENT) if one.state else run.ended  # an older state than its last would be passed over
    facts = {"name": one.name, "task_key": one.task_key, "dynamic_key": one.dynamic_key, "tags": one.tags, "end_time": at,
             "run_count": one.run_count}
    return _state_event(one.id, name_of(run, f"{one.id}/end"), flow_run, ending, "by the ledger", at, facts)


def _state_event(task_run: UUID, state: UUID, flow_run: UUID, ending: Ending, message: str, at: datetime,
                 facts: dict[str, Any]) -> Event:
    """What Prefect's own engine sends when a task run changes its state; the state's name makes the same event the same twice."""
    kind, name = ending
    return Event.model_validate({
        "id": state, "occurred": at, "event": f"prefect.task-run.{name}",
        "resource": {"prefect.resource.id": f"prefect.task-run.{task_run}", "prefect.resource.name": facts["name"],
                     "prefect.state-name": name, "prefect.state-type": kind, "prefect.state-message": message,
                     "prefect.state-timestamp": at.isoformat(), "prefect.orchestration": "client"},
        "related": [{"prefect.resource.id": f"prefect.flow-run.{flow_run}", "prefect.resource.role": "flow-run"}],
        "payload": {"intended": {"from": None, "to": kind}, "initial_state": None,
                    "validated_state": {"type": kind, "name": name, "message": message, "state_details": {}, "data": None},
                    "task_run": {key: value.isoformat() if isinstance(value, datetime) else value for key, value in facts.items()}}})
