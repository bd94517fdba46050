"""
Before a phase begins: change windows, soak, approval. Only the beginning is gated; a phase that has begun goes on, and no way back waits.

The ledger has what a gate waits for on record before anybody is told. Times are over when the server's clock and this machine's say so.
"""

from __future__ import annotations

from dataclasses import dataclass

from steps import approvals, approving, binding, cleanup_conditions, clocks, expiry, gate_conditions, gate_times, gate_words
from steps.approvals import APPROVAL, APPROVED, EXPIRED, HIMSELF, NOT_COUNTED, OPENED, REJECTED, TIME, WAITING, WITHDRAWN, Gate
from steps.clocks import Moment
from steps.errors import ApprovalMissing, GateClosed, Refused, Rejected
from steps.gate_times import Wait
from steps.phase import STANDS, Phase
from steps.rollout import Rollout

ACCEPT = HIMSELF
"""The accept key, and the word on a terminal, by which the person who runs cleanup approves it himself."""


@dataclass(frozen=True)
class _Seen:
    """What there is to know before *phase* begins, at one moment: *besides* are unmet conditions that time alone does not end."""

    now: Moment
    known: list[Gate]
    waits: list[Wait]
    unmet: list[str]
    besides: list[str]
    gate: Gate | None
    void: list[str]


def begin(rollout: Rollout, phase: Phase) -> None:
    """
    Let *phase* begin, or say everything that it still waits for. Nothing is asked where the plan asks for nothing. A gate that was passed
    counts once more, under the same conditions, until the phase has changed something.

    Raises:
        ApprovalMissing: a person has to approve, whatever else there is.
        GateClosed: the time has not come.
        Rejected: somebody has said no while the person who runs this was asked.
    """
    plan = rollout.plan.gates
    needed = plan.needs_approval(phase)
    if not (needed or plan.windows_of(phase) or gate_times.soaks(rollout, phase)) or _goes_on(rollout, phase):
        return
    typed: bool | None = None
    before: dict[str, str] = {}
    while True:
        with approvals.alone(rollout):
            seen = _see(rollout, phase, needed=needed)
            if typed is not None:
                _refuse_rejected(phase, seen.known, before)
            himself = _by_himself(rollout, phase, seen, typed=bool(typed)) if needed and seen.gate is None else None
            missing = needed and seen.gate is None and himself is None
            if not (seen.waits or missing):
                _open(rollout, phase, seen, himself, needed=needed)
                return
            if typed is not None or not (missing and _may_type(rollout, phase, seen)):
                raise _closed(rollout, phase, seen, missing=missing)
        before = {gate.id: gate.state for gate in seen.known}
        typed = bool(rollout.person.confirm and rollout.person.confirm(what_goes(rollout)))


def _see(rollout: Rollout, phase: Phase, *, needed: bool) -> _Seen:
    known, now = approvals.read(rollout.ledger), clocks.now(rollout.session)
    waits = gate_times.of(rollout, phase, now)
    unmet = _unmet(rollout, phase) if needed else []
    besides = gate_conditions.besides(waits, unmet)
    gate, void = _valid(rollout, phase, known, now, besides) if needed else (None, [])
    return _Seen(now, known, waits, unmet, besides, gate, void)


def _open(rollout: Rollout, phase: Phase, seen: _Seen, himself: str | None, *, needed: bool) -> None:
    used = seen.gate.id if seen.gate else _approve_himself(rollout, phase, himself, seen) if himself else approvals.new_id()
    approvals.record(rollout, phase, OPENED, gate=used, by=rollout.person.actor, approved=needed)


def _refuse_rejected(phase: Phase, known: list[Gate], before: dict[str, str]) -> None:
    """
    Raises:
        Rejected: a question of *phase* was rejected since it was as *before*.
    """
    for gate in known:
        if gate.phase is phase and gate.state == REJECTED and before.get(gate.id) != REJECTED:
            raise Rejected(phase.value, f"was rejected by {gate.answer['by']} meanwhile: {gate.answer['why']}", "the next run asks anew")


def approved(rollout: Rollout, phase: Phase) -> bool:
    """Whether *phase* was let begin by an approval, and has not been left since."""
    gate = _opened(approvals.read(rollout.ledger), phase)
    return bool(gate and gate.answer.get("approved") and not approvals.went_back_since(rollout, gate.number))


def what_goes(rollout: Rollout) -> str:
    """What somebody who approves cleanup says yes to."""
    return f"columns {', '.join(rollout.plan.removed_columns)} of {rollout.table} may go; no release before V2 can run afterwards"


def _opened(known: list[Gate], phase: Phase) -> Gate | None:
    """The gate through which *phase* went last."""
    return next((gate for gate in reversed(known) if gate.phase is phase and gate.state == OPENED), None)


def _goes_on(rollout: Rollout, phase: Phase) -> bool:
    """Whether *phase* has begun, and nothing was taken back since it was let begin."""
    if rollout.ledger.phase_state(phase) in STANDS:
        return True
    gate = _opened(approvals.read(rollout.ledger), phase) if approvals.begun(rollout, phase) else None
    return gate is not None and not approvals.went_back_since(rollout, gate.number)


def _valid(rollout: Rollout, phase: Phase, known: list[Gate], now: Moment, unmet: list[str]) -> tuple[Gate | None, list[str]]:
    """
    The approval that counts now, if there is one; else why the last one is void. What is void goes on record once.

    Conditions that are *unmet* now void one that was given while nothing of the kind, or less of it, was.
    """
    gate = approvals.latest(known, phase, APPROVAL)
    if gate is None or gate.state not in approvals.ALIVE:
        return None, _last_words(gate)
    back = approvals.went_back_since(rollout, gate.number if gate.state == OPENED else gate.asked_number)
    if back and gate.state == OPENED:
        return None, []  # it was used, and what it opened was taken back
    asked, wanted = gate.detail.get("binding") or {}, binding.of(rollout, phase)
    changed = [key for key, value in wanted.items() if asked.get(key) != value] + (["what stands (a phase went back)"] if back else [])
    ceased = gate_conditions.ceased(unmet, gate) if gate.state != WAITING else []
    if not (changed or ceased or gate.over(now)):
        return (gate if gate.state != WAITING else None), []
    if changed:
        why = told = f"{expiry.what(gate)} is void: {', '.join(changed)} changed since"
    elif gate.over(now):
        why = told = expiry.words(gate)
    else:  # the next question says which
        why = f"{expiry.what(gate)} is void, since conditions have ceased to hold"
        told = f"{why}: {'; '.join(ceased)}"
    approvals.record(rollout, phase, EXPIRED, gate=gate.id, why=told)
    gate.state = EXPIRED
    return None, [why]


def _last_words(gate: Gate | None) -> list[str]:
    """What became of the question before, where somebody who asks again has to know it."""
    if gate and gate.state == NOT_COUNTED:
        return [f"the last answer did not count: {gate.answer.get('why')}"]
    return [str(gate.answer.get("why"))] if gate and gate.state in (EXPIRED, WITHDRAWN) else []


def _said_yes(gate: Gate | None) -> list[str]:
    """Whose approval waits with the phase for its time."""
    return [f"approved by {gate.answer['by']} at {gate.answered_at}: {gate.answer.get('why', '')}"] if gate else []


def _by_himself(rollout: Rollout, phase: Phase, seen: _Seen, *, typed: bool) -> str | None:
    """How the person who runs cleanup approves it himself: by accept key, or typed; not where somebody else has to."""
    if not _may_himself(rollout, phase) or (seen.besides and approvals.UNREADY not in rollout.accepted):
        return None
    return f"--accept {ACCEPT}" if ACCEPT in rollout.accepted else "typed" if typed else None


def _may_type(rollout: Rollout, phase: Phase, seen: _Seen) -> bool:
    """Whether there is somebody to ask, and his yes would let it begin now."""
    return bool(rollout.person.confirm) and not seen.waits and _by_himself(rollout, phase, seen, typed=True) is not None


def _may_himself(rollout: Rollout, phase: Phase) -> bool:
    """Whether who runs *phase* may approve it himself: cleanup alone, and only who is an approver."""
    if phase is not Phase.CLEANUP or rollout.plan.gates.four_eyes:
        return False
    try:
        approving.refuse_approver({"approvers": rollout.plan.gates.approvers}, [], rollout.person.actor)
    except Refused:
        return False
    return True


def _unmet(rollout: Rollout, phase: Phase) -> list[str]:
    """Conditions of cleanup that do not hold: whoever says yes to it, says it although they do not."""
    return cleanup_conditions.unmet(rollout) if phase is Phase.CLEANUP else []


def _approve_himself(rollout: Rollout, phase: Phase, how: str, seen: _Seen) -> str:
    more = approvals.until(rollout, seen.now) | ({"unmet": seen.unmet} if seen.unmet else {})
    return approvals.record(rollout, phase, APPROVED, by=rollout.person.actor, why=rollout.person.reason, himself=how, needs=APPROVAL,
                            binding=binding.of(rollout, phase), **more)


def _closed(rollout: Rollout, phase: Phase, seen: _Seen, *, missing: bool) -> GateClosed:
    """What is to be raised; the question is on record by then, once for all who ask the same."""
    waits, now, unmet, notes = seen.waits, seen.now, seen.unmet, [*seen.void, *_said_yes(seen.gate)]
    needs = APPROVAL if missing else TIME
    person, plan = rollout.person, rollout.plan.gates
    opens = gate_times.opens_at(waits)
    gate, bound = approvals.latest(seen.known, phase, needs), binding.of(rollout, phase)
    alive = gate and gate.state == WAITING and not gate.over(now) and not approvals.went_back_since(rollout, gate.asked_number)
    same = gate if gate and alive and gate.detail.get("binding") == bound else None
    unready = seen.besides if missing else []
    reasons = [*([_approval(rollout, phase, same.askers if same else [])] if missing else []), *(wait.reason for wait in waits), *notes,
               *([f"conditions are not met: {'; '.join(unready)}"] if unready else [])]
    detail = {"by": person.actor, "why": person.reason, "flow_run": approvals.flow_run(rollout.ledger), "needs": needs,
              "reasons": reasons, "binding": bound,
              "opens_at": opens.isoformat(timespec="seconds") if opens else None,
              "approvers": list(plan.approvers), "four_eyes": plan.four_eyes, "expires_s": plan.expires_s,
              **approvals.until(rollout, approvals.later(now, opens)),
              **({"unmet": unmet, "unready": unready} if missing and phase is Phase.CLEANUP else {})}
    if same is None:
        gate_id = approvals.record(rollout, phase, WAITING, **detail)
    else:
        gate_id = same.id
        detail |= {key: same.detail[key] for key in ("until", "until_by_tool_clock")}
        known_asker = any(approvals.same_person(person.actor, asker) for asker in same.askers)
        from_a_shell = not detail["flow_run"] and len(same.flow_runs) == len(same.askers)  # else it would go with its flow runs
        if not known_asker or from_a_shell or (detail["flow_run"] and detail["flow_run"] not in same.flow_runs):
            approvals.record(rollout, phase, WAITING, gate=gate_id, by=person.actor, why=person.reason, flow_run=detail["flow_run"])
    call = gate_words.calls(phase, needs, rollout.plan.called, unready=bool(unready))[0]
    told = {"gate": gate_id, "phase": phase.value, "reasons": reasons, "needs": needs, "opens_at": detail["opens_at"],
            "until": detail["until"], "unmet": detail.get("unmet", []), "call": call}
    subject = phase.value if phase is Phase.CLEANUP else f"phase {phase.value}"
    remedy = _remedy(rollout, phase, waits, call, missing=missing, unready=bool(unready))
    return (ApprovalMissing if missing else GateClosed)(subject, "; ".join(reasons), remedy, told)


def _remedy(rollout: Rollout, phase: Phase, waits: list[Wait], call: str, *, missing: bool, unready: bool) -> str:
    again = "then run the same command again"
    if missing:
        keys = [*([] if ACCEPT in rollout.accepted else [ACCEPT]), *([approvals.UNREADY] if unready else [])]
        himself = f"add {' '.join(f'--accept {key}' for key in keys)}, or " if keys and _may_himself(rollout, phase) else ""
        return f"{himself}`{call}` (or reject) answers it; {again}"
    opens = gate_times.opens_at(waits)
    return f"run the same command after {opens.isoformat(timespec='seconds')}" if opens else f"remove the cause, {again}"


def _approval(rollout: Rollout, phase: Phase, askers: list[str]) -> str:
    plan, asking = rollout.plan.gates, list(askers)
    if not any(approvals.same_person(rollout.person.actor, asker) for asker in asking):
        asking.append(rollout.person.actor)
    who = f"one of {', '.join(plan.approvers)}" if plan.approvers else "a person"
    if plan.four_eyes and plan.approvers and all(any(approvals.same_person(one, asker) for asker in asking) for one in plan.approvers):
        all_of_them = ", ".join(plan.approvers)
        return (f"nobody may approve that {phase.value} begins: gates.four_eyes wants somebody else than who asked, and all of "
                f"gates.approvers ({all_of_them}) have asked; reject it, and let somebody else ask")
    other = f" other than {', '.join(dict.fromkeys(asking))}" if plan.four_eyes else ""
    if phase is Phase.CLEANUP:
        return f"{who}{other} has to confirm that {what_goes(rollout)}"
    return f"{who}{other} has to approve that {phase.value} begins"
