"""`rollout approve`, `rollout reject` and `rollout resume`: what opens a gate from a shell, and what goes on behind it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Annotated, Any

import typer

from flows import actions, again
from flows.cli.ending import Ending, ending
from flows.cli.options import Accept, Because, By, DatabaseUrl, Json, NoPrefect, PlanName, Settings, Yes, whoami
from flows.cli.performing import Ask, perform, progress_told, say
from flows.lives import flow_run_of
from flows.params import Request, RunRequest, Through
from steps import approvals, approving, cleanup_conditions, gate_words
from steps.approvals import APPROVAL, APPROVED, LATE, RESUMED, TIME, WAITING, Gate
from steps.errors import Refused
from steps.rollout import Rollout
from steps.target import Target, target_of

Gated = Annotated[Through, typer.Argument(help="The phase whose gate waits.")]


def approve(plan: PlanName, phase: Gated, reason: Because, by: By = "", database_url: DatabaseUrl = None, settings: Settings = None,
            accept: Accept = None, as_json: Json = False) -> None:
    """
    Say that PHASE may begin. Into the ledger; then a suspended run in Prefect goes on. Once more changes nothing.

    It counts for what was asked: this plan, from this stair, with these settings, until gates.expires_s is over.
    """
    with ending(as_json=as_json) as end:
        request = Request(plan=plan, by=by or whoami(), reason=reason, settings=settings or [], accept=accept or [])
        _answer(request, target_of(database_url), phase, end, yes=True)


def reject(plan: PlanName, phase: Gated, reason: Because, by: By = "", database_url: DatabaseUrl = None, settings: Settings = None,
           as_json: Json = False) -> None:
    """Say that PHASE may not begin; also takes back a yes that was not used yet. The next run by anybody asks anew."""
    with ending(as_json=as_json) as end:
        request = Request(plan=plan, by=by or whoami(), reason=reason, settings=settings or [])
        _answer(request, target_of(database_url), phase, end, yes=False)


def resume(plan: PlanName, reason: Because, by: By = "", database_url: DatabaseUrl = None, yes: Yes = False,
           no_prefect: NoPrefect = False, as_json: Json = False) -> None:
    """
    Go on with what waits: the suspended run in Prefect, else the last run's request here, with its recorded options.

    A gate that waits for an approval is not opened by it.
    """
    with ending(as_json=as_json) as end:
        asked = Request(plan=plan, by=by or whoami(), reason=reason)
        database, ask = target_of(database_url), Ask(end, quiet=as_json)
        with actions.desk(asked, database) as desk:
            if _goes_on(desk, asked, end):
                return
            request = again.request(desk, plan, asked.by, asked.reason)
        with actions.desk(request, database, ask.confirm if sys.stdin.isatty() else None, progress_told(end)) as desk:
            if isinstance(request, RunRequest) and actions.nothing_to_run(desk, request):
                say(end, actions.nothing_done(desk))
                return
            if not yes:
                ask.before_starting(f"go on with the last run on {database.where}")
        perform(request, database, end, ask, prefect=not no_prefect)


def _answer(request: Request, database: Target, phase: Through, end: Ending, *, yes: bool) -> None:
    with actions.desk(request, database) as desk, _told(desk):
        _catch_up(desk)
        said = approving.answer(desk, phase.phase, request.by, request.reason, approve=yes, unmet=cleanup_conditions.unmet,
                                accepted=desk.accepted)
        asked = approvals.by_id(desk.ledger)
        gate = gate_words.told(said.gate, desk.plan.called)
    end.document |= {"outcome": said.outcome, "said": said.said, "gate": gate}
    end.say(said.said)
    decided = said.gate.state == APPROVED
    late = {"decision": "reject", "approver": request.by, "reason": request.reason}  # the gate's answer is another's, and counts
    told = late if said.outcome == LATE else _input(said.gate, approve=decided)

    def answer(key: str) -> dict[str, Any] | None:
        """A yes is one to its own gate; a no ends who asked there, wherever it waits meanwhile (:func:`flows.hearing.heard`)."""
        if key not in asked or (yes and key != said.gate.id):
            return None
        if asked[key].needs == TIME:
            return {"reason": request.reason}
        return told if key == said.gate.id else late

    goes_on = bool(said.gate.flow_runs) and (decided or not yes) and _tell(end, said.gate.flow_runs, answer)
    if decided and not goes_on:
        end.say(f"run the same command again, or `rollout resume {desk.plan.called} --reason WHY`")


def _catch_up(desk: Rollout) -> None:
    """What somebody has answered in Prefect already comes first."""
    if any(gate.flow_runs for gate in approvals.undecided(desk)):
        from flows import hearing  # noqa: PLC0415  # importing Prefect takes seconds

        hearing.catch_up(desk)


def _told(desk: Rollout) -> AbstractContextManager[None]:
    """What is decided is an event in Prefect's stream, too, where an API is configured and answers."""
    from flows import api, events  # noqa: PLC0415  # importing Prefect takes seconds

    return events.telling(desk) if api.address() and not api.why_not() else nullcontext()


def _input(gate: Gate, *, approve: bool) -> dict[str, Any]:
    return {"decision": "approve" if approve else "reject", "approver": gate.answer["by"], "reason": gate.answer["why"]}


def _tell(end: Ending, flow_runs: list[str], answer: Callable[[str], dict[str, Any] | None]) -> bool:
    """Whether a suspended run goes on now. What Prefect cannot be told costs a line, not the answer."""
    from flows import suspended  # noqa: PLC0415  # importing Prefect takes seconds

    found = suspended.resume(flow_runs, answer)
    end.document["prefect"] = {"resumed": found.runs, "reason": found.trouble or None}
    if found.runs:
        end.say(f"goes on in Prefect: flow run {', '.join(found.runs)}")
    elif found.trouble:
        end.say(f"Prefect could not be told ({found.trouble}); the ledger has the answer")
    if found.elsewhere:
        end.say(f"waits for something else in Prefect: flow run {', '.join(found.elsewhere)}; it hears the answer once it goes on")
    return bool(found.runs)


def _goes_on(desk: Rollout, asked: Request, end: Ending) -> bool:
    """
    Whether a suspended run in Prefect goes on with it.

    Raises:
        Refused: what waits is an approval, or a person's word, which this is not.
    """
    gate = next(iter(approvals.open_now(desk)), None)
    if gate and gate.state == WAITING and gate.needs == APPROVAL:
        calls = gate_words.told(gate, desk.plan.called)["calls"]
        raise Refused(f"gate of {gate.phase.value}", "waits for an approval, which this is not", f"`{calls[0]}`; nothing was done")
    if gate and gate.flow_runs:
        known = approvals.by_id(desk.ledger)

        def answer(key: str) -> dict[str, Any] | None:
            if key in known and known[key].needs == TIME:
                return {"reason": asked.reason}
            return _input(gate, approve=True) if key == gate.id else None

        if _tell(end, gate.flow_runs, answer):
            if gate.state == WAITING:
                desk.ledger.run_id = gate.run_id
                approvals.record(desk, gate.phase, RESUMED, gate=gate.id, by=asked.by, why=asked.reason)
            end.document |= {"outcome": "done", "gate": gate_words.told(gate, desk.plan.called)}
            return True
    if gate is None:
        _refuse_open_question(desk)
    return False


def _refuse_open_question(desk: Rollout) -> None:
    """A suspended run that waits at no gate waits for somebody's word that something is deployed."""
    last = next(iter(reversed(desk.ledger.runs())), None)
    flow_run = flow_run_of(last) if last else None
    if last is None or not flow_run or last["exit_code"] in (None, 0):
        return
    from flows import suspended  # noqa: PLC0415  # importing Prefect takes seconds

    if suspended.suspended(str(flow_run)):
        raise Refused(f"flow run {flow_run}", f"waits for a person's word: {last['outcome']}", "answer in the Prefect UI, or give "
                      "--deployed-by NAME to a run of your own; nothing was done")
