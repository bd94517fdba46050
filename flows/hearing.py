"""
What was said to a run while it was suspended: heard as it comes back, before it does anything, and put on record whatever stands meanwhile.

Its gate may be passed, void or gone from the plan by then, so that nothing else would ask for the answer: a no must end it all the same.
"""

from __future__ import annotations

from typing import Any, NoReturn
from uuid import UUID

from flows import api, cockpit, visits
from flows.gate_forms import KEYS, Approval, Decision, form_of, keys_of
from steps import approvals, approving, cleanup_conditions, meanwhile
from steps.approvals import APPROVAL, APPROVED, LATE, NOT_COUNTED, REJECTED, RESUMED, TOLD, UNREADY, WAITING, WITHDRAWN, Gate
from steps.errors import Refused, Rejected
from steps.ledger import Event
from steps.phase import Phase
from steps.rollout import Rollout

cockpit.prepare()

from prefect.input import filter_flow_run_input  # noqa: E402  # only after the settings above

MOST = 50
IN_PREFECT = "a person in Prefect"


def heard(rollout: Rollout, flow_run: str | None, *, forward: bool) -> None:
    """
    What was said to this run while it was suspended, before it does anything: into the ledger, whatever stands there meanwhile.

    Raises:
        Rejected: somebody said no, here or from a shell; once, so that a retry asks anew.
        Refused: what it stood on was taken back meanwhile.
    """
    asked = [gate for gate in approvals.asked_by(rollout.ledger, str(flow_run)) if flow_run not in gate.told]
    if asked:
        _take(rollout, asked[-1], flow_run)
    for gate in asked:
        if gate.state in (REJECTED, TOLD):
            _end(rollout, gate, flow_run, f"was rejected by {gate.answer['by']}: {gate.answer['why']}", "the next run asks anew")
        late = next((said for number, said in gate.noes if number > gate.asked_by[str(flow_run)]), None)
        if late:
            _end(rollout, gate, flow_run, f"was rejected by {late}", _take_back(rollout))
    if flow_run and forward:
        try:
            meanwhile.refuse_taken_back(rollout, flow_run)
        except Refused:
            _late_words(rollout)
            raise
    if asked and forward and asked[-1].state == WITHDRAWN:
        raise Refused("this run", f"has asked what counts no longer: {asked[-1].answer['why']}",
                      "begin a new run if it is to go forward again; nothing was done")


def catch_up(rollout: Rollout) -> None:
    """
    Put on record what was answered in Prefect's forms and that no run has heard yet, since none of them has come back: so that it counts
    for whoever answers or begins next. Who may not answer is left to the run that asked. Best effort; raises nothing.
    """
    waiting = [gate for gate in approvals.alive(rollout) if gate.needs == APPROVAL and gate.flow_runs]
    if not waiting or not api.address() or api.why_not():
        return
    here = rollout.ledger.run_id
    for gate, flow_run in [(one, flow_run) for one in waiting for flow_run in one.flow_runs]:
        try:
            answer: Any = form_of(gate.phase, gate.needs).load(keys_of(gate.id), flow_run_id=UUID(flow_run))
            if not _on_record(rollout, gate, answer):
                approving.answer(rollout, gate.phase, answer.approver, answer.reason, approve=answer.decision is not Decision.REJECT,
                                 unmet=cleanup_conditions.unmet, accepted=_accepted(answer), gate_id=gate.id)
        except Exception:  # noqa: BLE001, S112  # there is none, Prefect does not say it, or it may not count
            continue
        finally:
            rollout.ledger.run_id = here


def _accepted(answer: Approval) -> frozenset[str]:
    """What the asker accepts is not the approver's."""
    return frozenset({UNREADY} if getattr(answer, "although_unready", False) else ())


def _take(rollout: Rollout, gate: Gate, flow_run: str | None) -> None:
    """The form's answer at *gate*, once; none where it was resumed otherwise, or Prefect cannot say now and is asked by the gate itself."""
    try:
        answer: Any = form_of(gate.phase, gate.needs).load(keys_of(gate.id))
    except Exception:  # noqa: BLE001  # there is none, or Prefect does not say it
        return
    rollout.ledger.run_id = gate.run_id
    if gate.needs == APPROVAL and not _on_record(rollout, gate, answer):
        answered(rollout, gate.phase, gate.id, answer, flow_run)
    elif gate.needs != APPROVAL:
        resumed(rollout, gate.phase, gate.id, answer.reason)


def _on_record(rollout: Rollout, gate: Gate, answer: Approval) -> bool:
    """Whether that was heard before, in an earlier life of the run, or was said from a shell, which passes it on."""
    outcomes = {NOT_COUNTED, REJECTED if answer.decision is Decision.REJECT else APPROVED}
    return any(outcome in outcomes and detail["gate"] == gate.id and detail.get("by") == answer.approver
               and str(detail.get("said") or detail.get("why")).startswith(answer.reason)
               for _, _, _, _, outcome, detail in approvals.rows(rollout.ledger))


def _end(rollout: Rollout, gate: Gate, flow_run: str | None, why: str, remedy: str) -> NoReturn:
    rollout.ledger.run_id = gate.run_id
    approvals.record(rollout, gate.phase, TOLD, gate=gate.id, flow_run=flow_run, why=why)
    raise Rejected(f"phase {gate.phase.value}", why, remedy)


def _late_words(rollout: Rollout) -> None:
    """A person's word that something is deployed, to a run that may not go on: on record all the same, for it may be out."""
    known = {(event["detail"] or {}).get("note") for event in rollout.ledger.events() if event["step"] == meanwhile.CONFIRMATION}
    try:
        said: Any = filter_flow_run_input(KEYS, limit=MOST)
    except Exception:  # noqa: BLE001  # Prefect does not say it
        return
    for one in said:
        word = one.decoded_value
        if isinstance(word, dict) and word.get("confirmed_by") and word.get("note") not in known:
            rollout.record(Event(Phase.DEPLOY.value, meanwhile.CONFIRMATION, "too late", detail={
                "by": word["confirmed_by"], "note": word.get("note"), "remedy": "this generation may be out: look, and take it back"}))


def answered(rollout: Rollout, phase: Phase, gate_id: str, answer: Approval, flow_run: str | None = None) -> None:
    """
    Into the ledger; a yes that may not count closes this question, and the next one says why.

    Raises:
        Rejected: a no. This run, which asked, does nothing more.
    """
    rejects = answer.decision is Decision.REJECT
    late = ""
    try:
        said = approving.answer(rollout, phase, answer.approver, answer.reason, approve=not rejects, unmet=cleanup_conditions.unmet,
                                accepted=_accepted(answer), gate_id=gate_id)
        late = said.said if said.outcome == LATE else ""
    except Refused as refused:
        late = f"{refused.subject} {refused.reason}"
        why = f"{answer.reason}; too late: {late}" if rejects else late
        approvals.record(rollout, phase, NOT_COUNTED, gate=gate_id, by=answer.approver, why=why, decision=answer.decision.value,
                         said=answer.reason, flow_run=flow_run)
    if rejects:
        gate = approvals.by_id(rollout.ledger)[gate_id]
        _end(rollout, gate, flow_run, f"was rejected by {answer.approver}: {answer.reason}{f'; too late: {late}' if late else ''}",
             _take_back(rollout) if late else "the next run asks anew")


def _take_back(rollout: Rollout) -> str:
    return f"this run ends here; see what stands with `rollout status {rollout.plan.called}`, and take it back with `rollout rollback`"


def resumed(rollout: Rollout, phase: Phase, gate_id: str, reason: str) -> None:
    gate = approvals.by_id(rollout.ledger).get(gate_id)
    if gate and gate.state == WAITING:
        rollout.ledger.run_id = gate.run_id
        by = visits.WATCH if reason == visits.ITS_TIME else IN_PREFECT
        approvals.record(rollout, phase, RESUMED, gate=gate_id, by=by, why=reason)
