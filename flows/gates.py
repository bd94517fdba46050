"""
The typed pause: a run of a deployment that meets a closed gate, or needs a person's word, is suspended, and asks in the Prefect UI.

Everything is released and on record by then; the suspended run has no process and holds nothing. Resumed, its body starts from the
top, meets the same gate, and gets the answer by the gate's id; the ledger decides whether that answer counts. Validation is the
server's: no field that decides has a default, so an empty resume is refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field, StringConstraints

from flows import actions, cockpit, events, soak
from flows.gate_page import page
from flows.params import Request
from steps import approvals, approving, cleanup_conditions, clocks
from steps.approvals import APPROVAL, LATE, NOT_COUNTED, REJECTED, RESUMED, TIME, TOLD, UNREADY, WAITING
from steps.cancellation import Cancelled
from steps.errors import GateClosed, Refused, Rejected, RolloutError, Stopped, WaitingForPerson
from steps.ledger import Event
from steps.passes import Progress
from steps.phase import Phase
from steps.rollout import Rollout
from steps.target import Target

cockpit.prepare()

from prefect.context import FlowRunContext  # noqa: E402  # only after the settings above
from prefect.exceptions import Pause  # noqa: E402
from prefect.flow_runs import suspend_flow_run  # noqa: E402
from prefect.input import RunInput, keyset_from_base_key  # noqa: E402

from flows import asleep, visits  # noqa: E402

Said = Annotated[str, StringConstraints(min_length=1, max_length=500, pattern=r"\S")]
CONFIRMATION = "confirmation"
IN_PREFECT = "a person in Prefect"


class Decision(StrEnum):
    """Whether the phase may begin."""

    APPROVE = "approve"
    REJECT = "reject"


class Approval(RunInput):
    """What a person answers at a gate. Nothing that decides has a default."""

    decision: Decision = Field(description="Whether the phase may begin. Rejected, the run ends, and the next run asks anew.")
    approver: Said = Field(description="Who decides. Recorded in the audit trail.")
    reason: Said = Field(description="Why. Recorded in the audit trail.")


class CleanupApproval(Approval):
    """The same for cleanup, which has conditions of its own."""

    although_unready: bool = Field(default=False, description="Approve although conditions above are not met.")


class Resumption(RunInput):
    """What a person says who looks whether the time has come."""

    reason: Said = Field(description="Why now. Recorded in the audit trail. Too early, the run is suspended again.")


class Confirmation(RunInput):
    """A person's word that something outside is so."""

    confirmed_by: Said = Field(description="Who has seen that it is so. Recorded in the audit trail.")
    note: Said = Field(description="What was seen, or the ticket. Recorded in the audit trail.")


@dataclass(frozen=True)
class Asked:
    """What a suspended run asks, under which key, for how long; and what to do with the answer."""

    key: str
    model: type[RunInput]
    timeout_s: int
    take: Callable[[Rollout, Any], None]


def in_deployment() -> bool:
    """Whether this is the run of a deployment, which alone can be suspended."""
    context = FlowRunContext.get()
    return bool(context and context.flow_run and context.flow_run.deployment_id)


def carried_out(request: Request, database: Target, confirm: Callable[[str], bool | str] | None, told: Callable[[Progress], None],
                flow_run: str | None, action: Callable[[Rollout], actions.Result]) -> actions.Result:
    """
    *action* at a desk of its own; in a deployment as often as there is an answer to go on with.

    Raises: what *action* raises, and
        Rejected: a person has said no, here or from the command line.
        prefect.exceptions.Pause: the run is suspended.
    """
    if not in_deployment():
        with actions.desk(request, database, confirm, told) as rollout, events.telling(rollout):
            return action(rollout)
    words: dict[str, str] = {}
    while True:
        with actions.desk(request, database, lambda what: words.get(what, False), told) as rollout:
            try:
                with events.telling(rollout):
                    _end_rejected(rollout, flow_run)
                    _note_resumed(rollout, flow_run)
                    return action(rollout)
            except (GateClosed, WaitingForPerson) as waiting:
                closed, asked = waiting, _asked(rollout, waiting, words)
        if asked is None:
            raise closed
        answer = _suspended(asked, closed)
        with actions.desk(request, database) as rollout, events.telling(rollout):
            asked.take(rollout, answer)


def _suspended(asked: Asked, closed: Stopped) -> Any:
    """The answer; where there is none yet the process ends here, with nothing held. An API that is away ends the run as in a shell."""
    try:
        return suspend_flow_run(wait_for_input=asked.model, timeout=asked.timeout_s, key=asked.key)
    except Pause:
        asleep.tell()
        raise
    except (RolloutError, Cancelled):
        raise
    except Exception:  # noqa: BLE001  # whatever the cockpit's trouble is, the gate is closed and on record
        raise closed from None


def _asked(rollout: Rollout, closed: Stopped, words: dict[str, str]) -> Asked | None:
    if isinstance(closed, GateClosed):
        return _gate(rollout, closed)
    if isinstance(closed, WaitingForPerson) and closed.question:
        return _question(rollout, closed, words)
    return None


def _gate(rollout: Rollout, closed: GateClosed) -> Asked:
    phase, gate_id = Phase(closed.gate["phase"]), str(closed.gate["gate"])
    left = clocks.recorded(closed.gate["until"], None).server - clocks.now(rollout.session).server
    seconds = max(1, int(left.total_seconds()))
    if closed.gate["needs"] != APPROVAL:
        soak.told(rollout)
        text = page(rollout, closed, _who_resumes(rollout, closed.gate))
        return Asked(gate_id, Resumption.with_initial_data(description=text), seconds,
                     lambda desk, answer: _resumed(desk, phase, gate_id, answer.reason))
    visits.schedule(gate_id, clocks.recorded(closed.gate["until"], None).server, clocks.now(rollout.session))  # says that nobody answered
    model, text = CleanupApproval if phase is Phase.CLEANUP else Approval, page(rollout, closed)
    return Asked(gate_id, model.with_initial_data(description=text), seconds, lambda desk, answer: _answered(desk, phase, gate_id, answer))


def _who_resumes(rollout: Rollout, gate: dict[str, Any]) -> str:
    """Who goes on with a run that nobody has to answer; where time alone opens its gate, a visit is scheduled for then."""
    opens = gate["opens_at"]
    return visits.schedule(str(gate["gate"]), datetime.fromisoformat(opens), clocks.now(rollout.session)) if opens else visits.NOBODY


def _answered(rollout: Rollout, phase: Phase, gate_id: str, answer: Approval) -> None:
    """
    Into the ledger; a yes that may not count closes this question, and the next one says why.

    Raises:
        Rejected: a no that came too late for its question. This run, which asked, does nothing more.
    """
    accepted = rollout.accepted | ({UNREADY} if getattr(answer, "although_unready", False) else frozenset())
    rejects = answer.decision is Decision.REJECT
    try:
        said = approving.answer(rollout, phase, answer.approver, answer.reason, approve=not rejects, unmet=cleanup_conditions.unmet,
                                accepted=accepted, gate_id=gate_id)
        if said.outcome != LATE:
            return
        late = said.said
    except Refused as refused:
        late = f"{refused.subject} {refused.reason}"
        why = f"{answer.reason}; too late: {late}" if rejects else late
        approvals.record(rollout, phase, NOT_COUNTED, gate=gate_id, by=answer.approver, why=why, decision=answer.decision.value,
                         said=answer.reason)
    if rejects:
        raise Rejected(f"phase {phase.value}", f"was rejected by {answer.approver}: {answer.reason}; too late: {late}", "this run ends "
                       f"here; see what stands with `rollout status {rollout.plan.called}`, and take it back with `rollout rollback`")


def _note_resumed(rollout: Rollout, flow_run: str | None) -> None:
    """Who resumed this run at a gate of time, and why: where the time has come nothing else asks for that answer any more."""
    for gate in approvals.read(rollout.ledger):
        if gate.state == WAITING and gate.needs == TIME and flow_run in gate.flow_runs:
            with suppress(Exception):  # whatever the cockpit's trouble is, the gate itself asks for the answer once more
                answer: Any = Resumption.load(keyset_from_base_key(f"suspended-{gate.id}"))
                _resumed(rollout, gate.phase, gate.id, answer.reason)


def _resumed(rollout: Rollout, phase: Phase, gate_id: str, reason: str) -> None:
    gate = next((one for one in approvals.read(rollout.ledger) if one.id == gate_id), None)
    if gate:
        rollout.ledger.run_id = gate.run_id
        by = visits.WATCH if reason == visits.ITS_TIME else IN_PREFECT
        approvals.record(rollout, phase, RESUMED, gate=gate_id, by=by, why=reason)


def _question(rollout: Rollout, waiting: WaitingForPerson, words: dict[str, str]) -> Asked:
    """One key for each time that the same thing is asked: a word once given is used once."""
    answered = sum(event["step"] == CONFIRMATION for event in rollout.ledger.events())
    key = hashlib.sha256(f"{answered} {waiting.question}".encode()).hexdigest()[:32]
    text = (f"# {waiting.question[0].upper()}{waiting.question[1:]}: is it so?\n\nTable `{rollout.schema}.{rollout.table}`, plan "
            f"`{rollout.plan.id}`\n\nDo it, look at it, then say so here. The same from a shell: {waiting.remedy}")

    def take(desk: Rollout, answer: Confirmation) -> None:
        desk.ledger.run_id = desk.ledger.runs()[-1]["run_id"]
        desk.record(Event(Phase.DEPLOY.value, CONFIRMATION, "confirmed", detail={
            "by": answer.confirmed_by, "note": answer.note, "question": waiting.question}))
        words[waiting.question] = answer.confirmed_by

    return Asked(key, Confirmation.with_initial_data(description=text), rollout.plan.gates.expires_s, take)


def _end_rejected(rollout: Rollout, flow_run: str | None) -> None:
    """
    Raises:
        Rejected: what this run has asked was rejected; once, so that a retry asks anew.
    """
    for gate in approvals.read(rollout.ledger):
        if gate.state == REJECTED and flow_run in gate.flow_runs:
            rollout.ledger.run_id = gate.run_id
            approvals.record(rollout, gate.phase, TOLD, **{**gate.answer, "gate": gate.id})
            raise Rejected(f"phase {gate.phase.value}", f"was rejected by {gate.answer['by']}: {gate.answer['why']}",
                           "the next run asks anew")
