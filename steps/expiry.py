"""
Questions and approvals whose time has run out, told by whoever looks next, and not only by the next run.

Beside :mod:`steps.gates`, which says the same when somebody asks again.
"""

from __future__ import annotations

from steps import approvals
from steps.approvals import APPROVAL, APPROVED, EXPIRED, OPENED, WITHDRAWN, Gate
from steps.rollout import Rollout


def what(gate: Gate) -> str:
    """The question or the approval, as a sentence begins with it."""
    approved = gate.state in (APPROVED, OPENED)
    return f"the approval by {gate.answer['by']} of {gate.answered_at}" if approved else f"the question of {gate.since}"


def words(gate: Gate) -> str:
    """Why *gate* counts no longer, once its time is over."""
    became = "used" if gate.state in (APPROVED, OPENED) else "answered" if gate.needs == APPROVAL else "taken up"
    return f"{what(gate)} was not {became} by {gate.until.shown}"


def settle(rollout: Rollout) -> list[str]:
    """Put on record, once, what has expired; returns it in words. Opens and shuts nothing: it counted no longer before. Takes no lock."""
    told = []
    for gate in approvals.overdue(rollout):
        told.append(f"gate of {gate.phase.value}: {words(gate)}")
        on_record(rollout, gate, EXPIRED, words(gate))
    return told


def withdraw_all(rollout: Rollout) -> None:
    """Put on record that what waits or was approved counts no longer, since the person at hand takes something of the rollout back."""
    for gate in approvals.alive(rollout):
        on_record(rollout, gate, WITHDRAWN, f"{what(gate)} was withdrawn: {rollout.person.actor} took the rollout back: "
                  f"{rollout.person.reason}")


def on_record(rollout: Rollout, gate: Gate, outcome: str, why: str) -> None:
    """*outcome* of *gate*, in the audit trail where it was asked."""
    here, rollout.ledger.run_id = rollout.ledger.run_id, gate.run_id
    try:
        approvals.record(rollout, gate.phase, outcome, gate=gate.id, why=why)
    finally:
        rollout.ledger.run_id = here
