"""
A yes or a no to what waits at a gate: whether it counts, and what is on record of it. Also what does not count is on record.

An answer to what nobody asked, to what was answered or used, or that comes too late, changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from steps import approvals, clocks, gate_conditions, gate_times
from steps.approvals import (
    ALIVE,
    APPROVAL,
    APPROVED,
    LATE,
    NOT_COUNTED,
    OPENED,
    REFUSED,
    REJECTED,
    TIME,
    TOLD,
    UNDECIDED,
    UNREADY,
    WAITING,
    Gate,
    later,
    latest,
    read,
    record,
    same_person,
    until,
)
from steps.clocks import Moment
from steps.errors import Refused
from steps.ledger import Ledger
from steps.phase import Phase
from steps.rollout import Rollout


def refuse_approver(rules: dict[str, Any], askers: list[str], by: str) -> None:
    """
    Raises:
        Refused: *by* is not among the plan's approvers, or asked himself where four eyes are wanted.
    """
    names = rules.get("approvers") or []
    if names and not any(same_person(by, name) for name in names):
        raise Refused(f"approval by {by}", f"does not count: gates.approvers are {', '.join(names)}", "one of them has to approve")
    if rules.get("four_eyes") and any(same_person(by, asker) for asker in askers):
        raise Refused(f"approval by {by}", "does not count: gates.four_eyes wants somebody else than who asked",
                      "somebody else has to approve")


@dataclass(frozen=True)
class Answered:
    """What an answer came to: its *outcome* (`approved`, `rejected`, `too late` or `nothing to do`), and *said* in words."""

    outcome: str
    said: str
    gate: Gate


def answer(rollout: Rollout, phase: Phase, by: str, reason: str, *, approve: bool, unmet: Callable[[Rollout], list[str]],
           accepted: frozenset[str] = frozenset(), gate_id: str | None = None) -> Answered:
    """
    Answer what waits for *phase*, or *gate_id* alone; a no also where it waits for its time and nobody has to approve. The same answer
    again, or one that comes too late to matter, changes nothing and says so; a yes that was not used yet can be taken back. Who was
    refused, and why, is on record where somebody had asked.

    Raises:
        Refused: nobody asked, it was asked too long ago or with another version of the plan, *by* may not, or *unmet* conditions of cleanup
            are left and `cleanup-unready` is not accepted. The gate is as it was.
    """
    with approvals.alone(rollout):
        gate = _asked(read(rollout.ledger), phase, approve=approve or bool(gate_id))
        try:
            return _answered(rollout, phase, gate, by, reason, approve=approve, unmet=unmet, accepted=accepted, gate_id=gate_id)
        except Refused as refused:
            if gate and not gate_id:  # a form's answer closes its question, and who asked in it says so
                rollout.ledger.run_id = gate.run_id
                _once(rollout, gate, REFUSED, by, f"{reason}; refused: {refused.subject} {refused.reason}", approve=approve)
            raise


def _asked(known: list[Gate], phase: Phase, *, approve: bool) -> Gate | None:
    """The last question whether *phase* may begin. A no counts for a run that waits for its time as well."""
    gate, time = latest(known, phase, APPROVAL), latest(known, phase, TIME)
    if approve or time is None or time.state != WAITING:
        return gate
    unused = gate and gate.state in ALIVE and (gate.state != OPENED or gate.number > time.asked_number)
    return gate if unused else time


def _answered(rollout: Rollout, phase: Phase, gate: Gate | None, by: str, reason: str, *, approve: bool,
              unmet: Callable[[Rollout], list[str]], accepted: frozenset[str], gate_id: str | None) -> Answered:
    ledger, now = rollout.ledger, clocks.now(rollout.session)
    again = f"`rollout run {rollout.plan.called}{' --through cleanup' if phase is Phase.CLEANUP else ''}` asks"
    if gate is None:
        raise Refused(f"gate of {phase.value}", _unasked(ledger, phase), f"{again}; nothing was done")
    if gate_id and gate.id != gate_id:
        raise Refused(f"gate of {phase.value}", "was asked anew since", "answer what is asked now; nothing was done")
    ledger.run_id = gate.run_id  # the audit trail shows the answer where it was asked
    void = _void(rollout, gate, now)
    settled = _settled(rollout, gate, by, reason, again, approve=approve, void=bool(void))
    if settled:
        return settled
    if void:
        raise Refused(f"gate of {phase.value}", f"waits no longer: {void}", f"{again} anew; nothing was done")
    if not approve:
        record(rollout, phase, REJECTED, gate=gate.id, by=by, why=reason)
        return Answered(REJECTED, f"{phase.value} is rejected; {again} anew", approvals.by_id(ledger)[gate.id])
    refuse_approver(gate.detail, gate.askers, by)
    if not gate_id:
        _refuse_another_plan(rollout, gate, again)
    missing = gate_conditions.besides(gate_times.of(rollout, phase, now), unmet(rollout)) if phase is Phase.CLEANUP else []
    if missing and UNREADY not in accepted:
        raise Refused("gate of cleanup", f"conditions are not met: {'; '.join(missing)}", f"wait for them, or approve all the same with "
                      f"--accept {UNREADY}; nothing was done")
    ends = until(rollout, later(now, gate.detail.get("opens_at")), gate.detail.get("expires_s"))
    record(rollout, phase, APPROVED, gate=gate.id, by=by, why=reason, **ends, **({"unmet": missing} if missing else {}))
    held = approvals.by_id(ledger)[gate.id]
    return Answered(APPROVED, f"{phase.value} is approved until {held.until.shown}", held)


def _refuse_another_plan(rollout: Rollout, gate: Gate, again: str) -> None:
    """
    Raises:
        Refused: who approves has another version of the plan at hand than whoever asked.
    """
    asked = (gate.detail.get("binding") or {}).get("identity")
    if asked and asked != rollout.plan.identity_hash():
        raise Refused(f"gate of {gate.phase.value}", "was asked with another version of the plan than the one at hand",
                      f"approve it with that one, or {again} anew with this one; nothing was done")


def _unasked(ledger: Ledger, phase: Phase) -> str:
    time = latest(read(ledger), phase, TIME)
    waits = time and time.state == WAITING
    return "waits for its time alone, which nobody has to approve" if waits else "nobody has asked for this phase yet"


def _settled(rollout: Rollout, gate: Gate, by: str, reason: str, again: str, *, approve: bool, void: bool) -> Answered | None:
    """What an answer comes to where another one stands already; None where this one is needed."""
    otherwise = gate.state in UNDECIDED and approvals.begun(rollout, gate.phase)
    used = otherwise or approvals.used(rollout, gate)
    stands = gate.state in (APPROVED, OPENED) and approve and not void
    if not (used or stands or gate.state in (REJECTED, TOLD)):
        return None
    if approve and gate.state in (REJECTED, TOLD):
        raise Refused(f"gate of {gate.phase.value}", f"was rejected: {_by(gate)}", f"{again} anew; nothing was done")
    became = f"is {APPROVED if stands else gate.state} already"
    if used:
        became = "waits no longer: the phase has begun without it" if otherwise else "was approved and used: the phase has begun"
    said = f"gate of {gate.phase.value} {became}{': ' + _by(gate) if _by(gate) else ''}"
    if used and not approve:
        _once(rollout, gate, NOT_COUNTED, by, f"{reason}; too late: {said}", approve=False)
        return Answered(LATE, f"{said}; your no is on record, and takes nothing back", gate)
    return Answered("nothing to do", said, gate)


def _void(rollout: Rollout, gate: Gate, now: Moment) -> str:
    """Why nothing can be answered there any more; empty while it can."""
    if gate.state not in ALIVE and gate.answer.get("why"):
        return f"it is {gate.state}: {gate.answer['why']}"
    if approvals.went_back_since(rollout, gate.asked_number):
        return f"something was taken back since it was asked at {gate.since}"
    if gate.state not in ALIVE or gate.over(now):
        return f"it was asked at {gate.since} and held until {gate.until.shown}{clocks.difference(now)}"
    return ""


def _once(rollout: Rollout, gate: Gate, outcome: str, by: str, why: str, *, approve: bool) -> None:
    """Record an answer that does not count; the same of the same person once."""
    known = [(told.get("by"), told.get("why")) for _, _, _, _, was, told in approvals.rows(rollout.ledger)
             if was == outcome and told["gate"] == gate.id]
    if (by, why) not in known:
        record(rollout, gate.phase, outcome, gate=gate.id, by=by, why=why, decision="approve" if approve else "reject")


def _by(gate: Gate) -> str:
    return f"by {gate.answer['by']} at {gate.answered_at}: {gate.answer.get('why', '')}" if gate.answer.get("by") else ""
