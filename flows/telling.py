"""
`rollout report --sync`: what Prefect missed is told to its API afterwards. Safe to repeat and to kill: what was told is not told again.

Prefect knows a run by the key that the ledger gave it, or by the flow run that it was. The last thing told of a run is its end, so one
that has the right end was told all. Task runs bear the times of the ledger; a flow run's own times are the server's, so that its
message says when it really was.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

from flows import api, cockpit
from flows.history import TOLD_LATER, Told, told
from flows.lives import flow_run_of
from flows.one_at_a_time import TAG
from steps import waits
from steps.errors import Stopped

cockpit.prepare()

from prefect.client.orchestration import SyncPrefectClient  # noqa: E402  # only after the settings above
from prefect.client.schemas.actions import ArtifactCreate, FlowCreate, FlowRunCreate, StateCreate  # noqa: E402
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId, FlowRunFilterIdempotencyKey  # noqa: E402
from prefect.client.schemas.objects import FlowRun, State, StateDetails, StateType, TaskRun  # noqa: E402

from flows import past  # noqa: E402

REQUEST_WITHIN_S = 10.0
SEEN_WITHIN_S, LOOK_EVERY_S = 15.0, 0.2
EVENTS_A_REQUEST = 100


@dataclass
class Summary:
    """What was told: whole runs, runs of which Prefect knew a part, their events; and what need not or cannot be told yet."""

    api: str
    runs: int = 0
    completed: int = 0
    events: int = 0
    known: int = 0
    at_work: int = 0

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def text(self) -> str:
        parts = [f"{self.runs} runs told", f"{self.completed} told to their end", f"{self.events} events", f"{self.known} known already"]
        return f"Prefect at {self.api}: " + ", ".join(parts + ([f"{self.at_work} still at work"] if self.at_work else []))


def sync(trail: dict[str, Any], *, at_work: bool) -> Summary:
    """
    Tell the configured API every run of *trail* that it does not know to its end; the last one not while somebody is *at_work*.

    Raises:
        Stopped: the API cannot be reached or does not take it; what was told stays told.
    """
    summary = Summary(api.address() or "its local default")
    runs = [run for run in trail["runs"] if not (at_work and run["ended_at"] is None)]
    summary.at_work = len(trail["runs"]) - len(runs)
    busy = {flow_run_of(run) for run in trail["runs"] if run not in runs} - {None}
    runs = _whole([run for run in runs if flow_run_of(run) not in busy])  # a flow run that went on after a gate has no end yet
    try:
        with api.client(REQUEST_WITHIN_S) as client:
            wanted = [told(trail, run) for run in runs]
            known = _known(client, wanted)
            for run in wanted:
                _tell(client, run, known, summary)
    except Exception as trouble:  # noqa: BLE001  # whatever the cockpit's trouble is, it is told with the remedy
        raise Stopped(f"Prefect API {summary.api}", f"{api.told(trouble)}; {summary.runs + summary.completed} runs were told before that",
                      "start it, or correct PREFECT_API_URL, then run the same command again: nothing is told twice") from None
    return summary


def _whole(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A flow run that was suspended at gates is several runs of the ledger: one here, which has the end of the last and did all of it."""
    found: dict[str, dict[str, Any]] = {}
    for run in runs:
        before = found.get(key := flow_run_of(run) or run["run_id"])
        found[key] = run | {"started_at": before["started_at"], "events": [*before["events"], *run["events"]]} if before else run
    return list(found.values())


def _known(client: SyncPrefectClient, runs: list[Told]) -> dict[str, FlowRun]:
    """What the API knows of *runs*, by the ledger's names for them."""
    found: dict[str, FlowRun] = {}
    for start in range(0, len(runs), EVENTS_A_REQUEST):
        some = runs[start:start + EVENTS_A_REQUEST]
        ids = [UUID(run.flow_run) for run in some if run.flow_run]
        by_id = {str(flow_run.id): flow_run for flow_run in _read(client, FlowRunFilter(id=FlowRunFilterId(any_=ids)))} if ids else {}
        keys = FlowRunFilter(idempotency_key=FlowRunFilterIdempotencyKey(any_=[run.run_id for run in some]))
        by_key = {str(flow_run.idempotency_key): flow_run for flow_run in _read(client, keys)}
        for run in some:
            flow_run = by_id.get(run.flow_run or "") or by_key.get(run.run_id)
            if flow_run:
                found[run.run_id] = flow_run
    return found


def _read(client: SyncPrefectClient, wanted: FlowRunFilter) -> list[FlowRun]:
    return client.read_flow_runs(flow_run_filter=wanted, limit=EVENTS_A_REQUEST)


def _tell(client: SyncPrefectClient, run: Told, known: dict[str, FlowRun], summary: Summary) -> None:
    flow_run = known.get(run.run_id)
    page = re.sub(r"[^a-z0-9]+", "-", f"{run.plan}-run-{run.run_id[:8]}".lower()).strip("-")
    if flow_run and _has_its_end(flow_run, run) and not (run.missed and not _has_page(client, flow_run.id, page)):
        summary.known += 1
        return
    made = flow_run or _made(client, run)
    _task_runs(client, run, made.id)
    if not _has_page(client, made.id, page):
        client.create_artifact(ArtifactCreate(key=page, type="markdown", data=run.page, flow_run_id=made.id,
                                              description="what the ledger has of this run, told afterwards"))
    if not _has_its_end(made, run):
        kind, name = run.ending
        client.set_flow_run_state(made.id, State(type=StateType(kind), name=name, message=run.message), force=True)
    summary.events += run.events
    if flow_run and flow_run.idempotency_key != run.run_id:
        summary.completed += 1
    else:
        summary.runs += 1


def _has_its_end(flow_run: FlowRun, run: Told) -> bool:
    """Whether nothing is to be told of its end: Prefect has it, somebody cancelled it there, or it waits or goes on after its gate."""
    state = flow_run.state
    if state is None:
        return False
    goes_on = flow_run.deployment_id is not None and (state.is_scheduled() or state.is_pending() or (run.asked and state.is_running()))
    return state.type.value == run.ending[0] or state.is_paused() or state.is_cancelled() or state.is_cancelling() or goes_on


def _made(client: SyncPrefectClient, run: Told) -> FlowRun:
    """A flow run under the ledger's own key, so that asking again makes no other; scheduled for when it began, which dates it in lists."""
    flow = client.request("POST", "/flows/", json=FlowCreate(name=run.flow).model_dump(mode="json")).json()
    then = StateDetails.model_validate({"scheduled_time": run.began})
    wanted = FlowRunCreate(
        flow_id=flow["id"], name=run.name, parameters=run.parameters, tags=[TAG, TOLD_LATER], idempotency_key=run.run_id,
        state=StateCreate(type=StateType.SCHEDULED, message="told afterwards", state_details=then))
    return FlowRun.model_validate(client.request("POST", "/flow_runs/", json=wanted.model_dump(mode="json", exclude_unset=True)).json())


def _has_page(client: SyncPrefectClient, flow_run: UUID, key: str) -> bool:
    left = client.read_artifacts(flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=[flow_run])))
    return any(artifact.key == key for artifact in left)


def _task_runs(client: SyncPrefectClient, run: Told, flow_run: UUID) -> None:
    """
    Tell the phases that Prefect does not have, with what was done in them, and end those that it still thinks are at work.

    As events of the past, since only these bear their own times; then wait until the server's recorder has them.
    """
    live = [one for one in _task_runs_of(client, flow_run) if TOLD_LATER not in one.tags]
    names = {one.name for one in live}
    known = {done.key for done in run.done if done.parent is None and done.name in names}
    new = [done for done in run.done if done.key not in known and done.parent not in known]
    told_now = [past.done(run, flow_run, done) for done in new]
    told_now += [past.ended(run, flow_run, one) for one in live if not (one.state and one.state.is_final())]
    for start in range(0, len(told_now), EVENTS_A_REQUEST):
        client.request("POST", "/events", json=[json.loads(event.model_dump_json()) for event in told_now[start:start + EVENTS_A_REQUEST]])
    wanted = {past.name_of(run, done.key) for done in new} | {one.id for one in live}
    until_s = waits.now_s() + SEEN_WITHIN_S
    while not wanted <= {one.id for one in _task_runs_of(client, flow_run) if one.state and one.state.is_final()}:
        if waits.now_s() > until_s:
            raise TimeoutError(f"took {len(told_now)} events of a run, but did not record them within {SEEN_WITHIN_S:g} s")
        waits.sleep_s(LOOK_EVERY_S)


def _task_runs_of(client: SyncPrefectClient, flow_run: UUID) -> list[TaskRun]:
    found: list[TaskRun] = []
    while True:
        page = client.read_task_runs(flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=[flow_run])), limit=EVENTS_A_REQUEST,
                                     offset=len(found))
        found += page
        if len(page) < EVENTS_A_REQUEST:
            return found
