"""
One rollout per table, said by name in the Prefect UI: a deployed run looks for another one of the same table before it begins.

A courtesy. What keeps two rollouts apart is the lock in MySQL (:mod:`steps.ownership`), whoever started them; Prefect only knows how to
call the other one. So a flow run that Prefect takes for running is in the way only while somebody holds that lock: one that was killed
without a word stops nobody. Prefect's own concurrency limits are not used: they end a flow in the middle of its work once a lease
cannot be renewed because the API is away, and let the next one in while a run waits at a gate.
"""

from __future__ import annotations

import contextvars
import threading

import structlog

from flows import api, cockpit
from flows.lives import flow_run_of
from steps import approvals
from steps.approvals import CLOSED, REJECTED, WAITING
from steps.errors import Busy
from steps.mysql import VALUE
from steps.ownership import lock_name
from steps.rollout import Rollout

cockpit.prepare()

from prefect.client.schemas.filters import (  # noqa: E402  # only after the settings above
    FlowRunFilter,
    FlowRunFilterState,
    FlowRunFilterStateType,
    FlowRunFilterTags,
)
from prefect.client.schemas.objects import FlowRun, StateType  # noqa: E402
from prefect.client.schemas.sorting import FlowRunSort  # noqa: E402
from prefect.context import FlowRunContext  # noqa: E402

TAG = "mysql-rollout"
"""Of every run of ours, whoever began it: what a list of runs is narrowed to."""
FORWARD, BACK, LOOK = "forward", "back", "look"
WITHIN_S = 15.0
MOST = 20
log: structlog.stdlib.BoundLogger = structlog.get_logger("rollout")


def tags_of(rollout: Rollout) -> list[str]:
    """What a run is found by: its plan, its table, and the server that this stands on, whatever its address."""
    return [f"plan:{rollout.plan.id}", f"table:{rollout.schema}.{rollout.table}", f"server:{rollout.session.server_uuid[:8]}"]


def look(rollout: Rollout, *, forward: bool) -> None:
    """
    Tag this flow run with its table, and look whether another one of the same table is at work or, *forward*, waits at a gate.

    Only a run that belongs to a deployment is refused. An API that does not answer within :data:`WITHIN_S` costs that look alone. Safe to
    repeat: the same flow run, resumed, is not another one.

    Raises:
        Busy: another flow run holds the table, or waits for an answer before it goes on; names it. Nothing was done.
    """
    context = FlowRunContext.get()
    mine = context.flow_run if context else None
    if mine is None:
        return
    others = _others(rollout, mine, FORWARD if forward else BACK)
    if not mine.deployment_id or not others:
        return
    waiting = [other for other in others if other.state and other.state.is_paused()]
    for other in waiting:
        if forward and FORWARD in other.tags and still_asks(rollout, str(other.id)):
            raise Busy(f"table {rollout.table}", f"is in the rollout of flow run {_called(other)}, which waits for an answer",
                       "answer that one or cancel it; this run did nothing")
    working = [other for other in others if other not in waiting]
    if working and rollout.session.value(f"SELECT IS_USED_LOCK({VALUE})", lock_name(rollout.schema, rollout.table)) is not None:
        raise Busy(f"table {rollout.table}", f"is held by flow run {_called(_holder(rollout, working))}",
                   "wait for that one to end, or cancel it; this run did nothing")


def still_asks(rollout: Rollout, flow_run: str) -> bool:
    """
    Whether a suspended run is in the way: not where what it asked was withdrawn, rejected or has expired, for it ends once it is resumed;
    nor where somebody else has begun the phase that it asked for.
    """
    asked = approvals.asked_by(rollout.ledger, flow_run)
    if not asked:
        return True
    rejected = any(gate.state == REJECTED and flow_run not in gate.told for gate in asked)
    passed = asked[-1].state == WAITING and approvals.begun(rollout, asked[-1].phase)
    return not (rejected or passed or asked[-1].state in CLOSED)


def tag(rollout: Rollout, direction: str) -> None:
    """Tag this flow run with its table, as :func:`look` does, and look at no other."""
    context = FlowRunContext.get()
    if context and context.flow_run:
        _others(rollout, context.flow_run, direction)


def _holder(rollout: Rollout, working: list[FlowRun]) -> FlowRun:
    """Which of those that Prefect takes for running has the table: the ledger's latest one, else the one begun last."""
    known = [str(flow_run_of(run)) for run in rollout.ledger.runs()[-1:]]
    return next((run for run in working if str(run.id) in known), working[0])


def _called(run: FlowRun) -> str:
    return f"'{run.name}' ({run.id})"


def _others(rollout: Rollout, mine: FlowRun, direction: str) -> list[FlowRun]:
    """Flow runs of the same table that are at work or wait, the latest first; none where the API does not say in time."""
    found: list[FlowRun] = []
    trouble = [f"no answer within {WITHIN_S:g} s"]

    def ask() -> None:
        try:
            found.extend(_asked(rollout, mine, direction))
            trouble.clear()
        except Exception as error:  # noqa: BLE001  # whatever the cockpit's trouble is, the lock in MySQL decides
            trouble[:] = [type(error).__name__]

    context = contextvars.copy_context()
    thread = threading.Thread(target=lambda: context.run(ask), daemon=True)
    thread.start()
    thread.join(WITHIN_S)
    if trouble:
        log.warning("Prefect was not asked for other runs of the table", reason=trouble[0])
        return []
    return found


def _asked(rollout: Rollout, mine: FlowRun, direction: str) -> list[FlowRun]:
    tags = tags_of(rollout)
    active = FlowRunFilter(
        tags=FlowRunFilterTags(all_=tags[1:]),
        state=FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.RUNNING, StateType.CANCELLING, StateType.PAUSED])))
    with api.client(WITHIN_S) as client:
        wanted = sorted({*mine.tags, TAG, *tags, direction})
        client.update_flow_run(mine.id, tags=wanted)
        found = client.read_flow_runs(flow_run_filter=active, sort=FlowRunSort.START_TIME_DESC, limit=MOST)
    return [run for run in found if run.id != mine.id and LOOK not in run.tags]
