"""
A visit of the parity watch at the time when a gate opens: a run of its deployment, scheduled beside the run that waits there.

So a run that waits for a change window or a soak goes on by itself, whether the watch's schedule is switched on or not. Best effort: where
there is no such deployment, or no API, it waits for that schedule or for a person, and its gate says so.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import structlog

from flows import api, cockpit
from flows.one_at_a_time import BACK, FORWARD, TAG
from flows.visible import second
from steps.clocks import Moment

cockpit.prepare()

from prefect.client.orchestration import SyncPrefectClient  # noqa: E402  # only after the settings above
from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterName, FlowFilter, FlowFilterName  # noqa: E402
from prefect.client.schemas.responses import DeploymentResponse  # noqa: E402
from prefect.context import FlowRunContext  # noqa: E402
from prefect.states import Scheduled  # noqa: E402

WATCH = "parity_watch"
ITS_TIME = "its time has come"
AFTER_S, AGAIN_AFTER_S = 2, 300
WITHIN_S = 10.0
NOBODY = "it is resumed by `rollout watch`, by a schedule of parity_watch, or by a person here"
log: structlog.stdlib.BoundLogger = structlog.get_logger("rollout")


def schedule(gate_id: str, opens: datetime, now: Moment) -> str:
    """
    Schedule a visit shortly after *opens*, once for the same gate and time; says in words who resumes the run then.

    Of the deployment in the same work pool as this flow run's, with its plan and database. A visit that comes too early, since clocks
    differ, schedules another one after :data:`AGAIN_AFTER_S`. Raises nothing.
    """
    try:
        with api.client(WITHIN_S) as client:
            left = opens - min(now.server, now.tool)
            due = datetime.now(UTC) + (left + timedelta(seconds=AFTER_S) if left > timedelta(0) else timedelta(seconds=AGAIN_AFTER_S))
            if _scheduled(client, f"{gate_id} {opens.isoformat()}", due):
                return f"it goes on by itself at {second(due.isoformat())} (UTC): a visit of {WATCH} is scheduled for then"
    except Exception as trouble:  # noqa: BLE001  # whatever the cockpit's trouble is, the run waits all the same
        log.warning("no visit could be scheduled", gate=gate_id, reason=api.told(trouble))
    return NOBODY


def _scheduled(client: SyncPrefectClient, key: str, due: datetime) -> bool:
    context = FlowRunContext.get()
    mine = context.flow_run if context else None
    if mine is None or mine.deployment_id is None:
        return False
    pool = client.read_deployment(mine.deployment_id).work_pool_name
    found = [one for one in _watches(client) if one.work_pool_name == pool and TAG in one.tags]
    if not found:
        return False
    request = _request(mine.parameters.get("request"))
    if (mine.idempotency_key or "").startswith(key):  # this is the visit itself, too early
        key = f"{key} {mine.id}"
    client.create_flow_run_from_deployment(
        found[0].id, parameters={"request": request}, state=Scheduled(scheduled_time=due), idempotency_key=key,
        name=f"{WATCH} {request['plan']} as a gate's time comes", tags=sorted({*(mine.tags or [])} - {FORWARD, BACK}))
    return True


def _watches(client: SyncPrefectClient) -> list[DeploymentResponse]:
    return client.read_deployments(flow_filter=FlowFilter(name=FlowFilterName(any_=[WATCH])),
                                   deployment_filter=DeploymentFilter(name=DeploymentFilterName(any_=[WATCH])))


def _request(asked: Any) -> dict[str, Any]:
    """The same plan on the same database."""
    known = asked if isinstance(asked, dict) else asked.model_dump(mode="json")
    kept = {name: known[name] for name in ("plan", "database", "settings") if known.get(name)}
    return kept | {"by": "parity watch", "reason": "the time of a gate has come, or of its question"}
