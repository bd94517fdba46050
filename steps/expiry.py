"""
Questions and approvals whose time has run out, told by whoever looks next, and not only by the next run.

Beside :mod:`steps.gates`, which says the same when somebody asks again. Nothing here decides: what it tells counted no longer before. So
where others are busy with the gates for long (:func:`steps.approvals.alone`), it is left to the next look, and nobody fails of it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from steps import approvals, clocks
from steps.approvals import APPROVAL, APPROVED, CLOSED, EXPIRED, OPENED, UNDECIDED, WITHDRAWN, Gate
from steps.errors import Busy
from steps.rollout import Rollout


def what(gate: Gate) -> str:
    """The question or the approval, as a sentence begins with it."""
    approved = gate.state in (APPROVED, OPENED)
    return f"the approval by {gate.answer['by']} of {gate.answered_at}" if approved else f"the question of {gate.since}"


def words(gate: Gate) -> str:
    """Why *gate* counts no longer, once its time is over."""
    became = "used" if gate.state in (APPROVED, OPENED) else "answered" if gate.needs == APPROVAL else "taken up"
    return f"{what(gate)} was not {became} by {gate.until.shown}"


def closed(rollout: Rollout) -> list[Gate]:
    """The last question of each phase that has not begun, where it counts no longer, with why; what has expired just now among them."""
    now, found = clocks.now(rollout.session), []
    for gate in approvals.last_of_each(rollout):
        if gate.state in UNDECIDED and gate.over(now):
            gate.state, gate.answer = EXPIRED, {"why": words(gate)}
        found += [gate] if gate.state in CLOSED else []
    return found


def settle(rollout: Rollout) -> list[str]:
    """Put on record, once, what has expired; returns it in words."""
    with suppress(Busy), approvals.alone(rollout):
        return [_put(rollout, gate, EXPIRED, words(gate)) for gate in approvals.overdue(rollout)]
    return []


def withdraw(rollout: Rollout, chosen: set[str], because: Callable[[Gate], str]) -> list[str]:
    """Put on record that those of the *chosen* that still wait, or have a yes that was not used, count no longer; returns it in words."""
    with suppress(Busy), approvals.alone(rollout):
        return [_put(rollout, gate, WITHDRAWN, f"{what(gate)} was withdrawn: {because(gate)}")
                for gate in approvals.alive(rollout) if gate.id in chosen]
    return []


def withdraw_all(rollout: Rollout) -> list[str]:
    """The same of all that waits or was approved, since the person at hand takes the rollout back."""
    because = f"{rollout.person.actor} took the rollout back: {rollout.person.reason}"
    return withdraw(rollout, {gate.id for gate in approvals.alive(rollout)}, lambda _: because)


def _put(rollout: Rollout, gate: Gate, outcome: str, why: str) -> str:
    """*outcome* of *gate*, in the audit trail where it was asked; in words."""
    here, rollout.ledger.run_id = rollout.ledger.run_id, gate.run_id
    try:
        approvals.record(rollout, gate.phase, outcome, gate=gate.id, why=why)
    finally:
        rollout.ledger.run_id = here
    return f"gate of {gate.phase.value}: {why}"
