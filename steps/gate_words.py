"""One gate as people and documents are told of it."""

from __future__ import annotations

from typing import Any

from steps.approvals import APPROVAL, APPROVED, OPENED, REJECTED, TOLD, UNDECIDED, UNREADY, WAITING, Gate
from steps.phase import Phase

PASSED = "passed"


def calls(phase: Phase, needs: str, plan: str, *, unready: bool) -> list[str]:
    """What answers a gate from a shell, the yes first, for *plan* as a shell takes it; *unready*: although conditions are not met."""
    if needs != APPROVAL:
        return [f"rollout resume {plan} --by NAME --reason WHY", f"rollout reject {plan} {phase.value} --by NAME --reason WHY"]
    accept = f" --accept {UNREADY}" if unready else ""
    return [f"rollout approve {plan} {phase.value} --by NAME --reason WHY{accept}",
            f"rollout reject {plan} {phase.value} --by NAME --reason WHY"]


def told(gate: Gate, plan: str) -> dict[str, Any]:
    """One gate as `rollout status` and `rollout report` tell it, with calls for *plan* as a shell takes it; field names are stable."""
    state = REJECTED if gate.state == TOLD else gate.state
    return {"phase": gate.phase.value, "gate": gate.id, "state": state, "needs": gate.needs, "since": gate.since,
            "asked_by": gate.askers, "asked_why": gate.detail.get("why"), "reasons": gate.detail.get("reasons", []),
            "opens_at": gate.detail.get("opens_at"), "until": gate.until.shown if gate.state in (WAITING, APPROVED) else None,
            "unmet": gate.answer.get("unmet") or gate.detail.get("unmet", []),
            "answered_by": gate.answer.get("by") if gate.state != WAITING else None,
            "answered_why": gate.answer.get("why") if gate.state != WAITING else None,
            "answered_at": gate.answered_at if gate.state != WAITING else None,
            "refused": gate.refused,
            "calls": calls(gate.phase, gate.needs, plan, unready=bool(gate.detail.get("unready"))) if gate.state == WAITING else []}


def all_told(gates: list[Gate], begun: set[Phase], plan: str) -> list[dict[str, Any]]:
    """*gates* as a report tells them: one that still waited as its phase was gone through otherwise does not look as if it waited now."""
    found = []
    for gate in gates:
        row = told(gate, plan)
        later = any(other.phase is gate.phase and other.state == OPENED and other.number > gate.number for other in gates)
        if gate.state in UNDECIDED and (later or gate.phase in begun):
            row |= {"state": PASSED, "until": None, "calls": []}
        found.append(row)
    return found


def in_words(gate: dict[str, Any]) -> str:
    """One line for what :func:`told` tells."""
    asked = f"asked by {', '.join(dict.fromkeys(gate['asked_by']))}"
    if gate["state"] == WAITING:
        opens = f"; opens {gate['opens_at']}" if gate["opens_at"] else ""
        return f"waits for {'an approval' if gate['needs'] == APPROVAL else 'its time'}, {asked}{opens}; until {gate['until']}"
    why = f": {gate['answered_why']}" if gate["answered_why"] else ""
    by = f" by {gate['answered_by']}" if gate["answered_by"] and (why or gate["needs"] == APPROVAL) else ""
    if gate["state"] == PASSED:
        return f"passed otherwise, {asked}; the phase has begun without it"
    if gate["state"] == OPENED:
        return f"{'approved' + by + why if why else 'open'}, {asked}; the phase has begun"
    return f"{gate['state']}{by}{why}, {asked}"
