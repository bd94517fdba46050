"""
The flows that look and change nothing: `check`, `plan`, `rehearse`. Each leaves a page, and a state that a list of runs can be read by.

They take no lock and write no ledger; the rehearsal's scratch schema is the only thing that they make, and it goes again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flows import actions, cockpit, descriptions, look_pages, planned
from flows.params import FORM, CheckRequest, LookRequest
from steps import __version__, forecast
from steps.cancellation import Cancelled
from steps.errors import RolloutError
from steps.rollout import Rollout

cockpit.prepare()

from prefect import flow  # noqa: E402  # only after the settings above
from prefect.client.schemas.objects import State  # noqa: E402
from prefect.states import Completed, Failed  # noqa: E402

from flows import one_at_a_time  # noqa: E402
from flows.artifacts import key_of  # noqa: E402
from flows.deployments import cancelled_state, database_of, failed_state  # noqa: E402
from flows.tasks import PrefectConductor  # noqa: E402

Look = Callable[[Rollout], tuple[str, State[Any]]]


def _shown(kind: str, request: LookRequest, look: Look) -> State[Any]:
    """Open the desk, *look*, leave what was seen as a page of that *kind*, and end with its state; an error never looks green."""
    cockpit.log_to()
    conduct = PrefectConductor()
    try:
        with actions.desk(request.asked(), database_of(request.database)) as desk:
            one_at_a_time.tag(desk, one_at_a_time.LOOK)
            page, state = conduct.task(kind, lambda: look(desk))
            conduct.artifacts.page(key_of(desk.plan.id, kind), lambda: (
                page, f"{kind} of table {desk.schema}.{desk.table}, plan {desk.plan.id}"))
    except RolloutError as error:
        return failed_state(error)
    except Cancelled as cancelled:
        return cancelled_state(cancelled)
    return state


@flow(name="check", flow_run_name="check {request.plan} by {request.by}", persist_result=False, version=__version__,
      description=descriptions.CHECK)
def check(request: CheckRequest = FORM) -> State[Any]:
    """All pre-checks, read only: everything that would refuse a run, at once."""
    def look(desk: Rollout) -> tuple[str, State[Any]]:
        found = actions.look_first(desk)
        stopping = [finding for finding in found if finding.stops(desk.accepted)]
        said = "clean" if not found else f"{len(stopping)} refuse, {len(found) - len(stopping)} to know"
        told = f"{said}: {', '.join(sorted({finding.check for finding in stopping or found}))}" if found else said
        page = look_pages.check_page(desk, found)
        if stopping:
            return page, Failed(name="Refused", message=told)
        return page, Completed(name="ToKnow" if found else "Clean", message=told)

    return _shown("check", request, look)


@flow(name="plan", flow_run_name="plan {request.plan} by {request.by}", persist_result=False, version=__version__,
      description=descriptions.PLAN)
def plan(request: LookRequest = FORM) -> State[Any]:
    """What a rollout would do from here: every statement, its algorithm, lock and estimate."""
    def look(desk: Rollout) -> tuple[str, State[Any]]:
        actions.refuse_unfit(desk)
        document = planned.document(desk)
        steps = sum(len(group["steps"]) for group in document["groups"])
        return look_pages.plan_page(desk, document), Completed(
            name="Planned", message=f"{steps} steps to shadow_write, from stair {document['stair']} of {document['stairs']}")

    return _shown("plan", request, look)


@flow(name="rehearse", flow_run_name="rehearse {request.plan} by {request.by}", persist_result=False, version=__version__,
      description=descriptions.REHEARSE)
def rehearse(request: LookRequest = FORM) -> State[Any]:
    """The staircase, triggers, canary and a sample of rows on a clone, up and down; the live table is not touched."""
    def look(desk: Rollout) -> tuple[str, State[Any]]:
        actions.refuse_unfit(desk)
        rehearsed, steps = desk.rehearsed(), forecast.steps(desk)
        return look_pages.rehearsal_page(desk, rehearsed, steps), Completed(
            name="Rehearsed", message=f"{len(steps)} steps go up and come back")

    return _shown("rehearsal", request, look)
