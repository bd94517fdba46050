"""
The last sign of life of a run that is suspended: a beat sent after the suspension, by the process that is about to end, is answered by it.

Without it, who watches over beats (`deploy/automations/died.yaml`) would wait for the next one, and take the run that sleeps for dead.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import structlog

from flows import api, cockpit

cockpit.prepare()

from prefect.context import FlowRunContext  # noqa: E402  # only after the settings above

EVENT = "mysql-rollout.asleep"
WITHIN_S = 5.0
log: structlog.stdlib.BoundLogger = structlog.get_logger("rollout")


def tell() -> None:
    """Tell it of the flow run at hand. Best effort: raises nothing, and takes :data:`WITHIN_S` at most."""
    context = FlowRunContext.get()
    mine = context.flow_run if context else None
    if mine is None:
        return
    try:
        with api.client(WITHIN_S) as client:
            flow = client.read_flow(mine.flow_id)
            tags = client.read_flow_run(mine.id).tags
            client.request("POST", "/events", json=[event(str(mine.id), mine.name, str(flow.id), flow.name, tags)])
    except Exception as trouble:  # noqa: BLE001  # whatever the cockpit's trouble is, the run is suspended all the same
        log.warning("Prefect could not be told that a run sleeps", reason=api.told(trouble))


def event(flow_run: str, name: str, flow_id: str, flow: str, tags: list[str]) -> dict[str, Any]:
    """A sign of life as a beat is one: of the flow run, with flow and tags as related resources."""
    related = [{"prefect.resource.id": f"prefect.flow.{flow_id}", "prefect.resource.role": "flow", "prefect.resource.name": flow}]
    related += [{"prefect.resource.id": f"prefect.tag.{tag}", "prefect.resource.role": "tag"} for tag in tags]
    return {"id": str(uuid4()), "occurred": datetime.now(UTC).isoformat(), "event": EVENT, "related": related, "payload": {},
            "resource": {"prefect.resource.id": f"prefect.flow-run.{flow_run}", "prefect.resource.name": name}}
