"""
Phase 3: history on the new side.

By default it was filled before the deploy (F17), and this is the closing pass: both generations are alive, so nobody decides,
and what it finds is a finding, recorded here and judged by verify. With `backfill_from = "backfill"` (the ADR's order) history is
filled here, each row once, only where nobody has written the new side yet (F1, F4).
"""

from __future__ import annotations

from dataclasses import replace

from steps import exact_look, fixes, passes
from steps.phase import Outcome, Phase
from steps.rollout import Rollout
from steps.step import Step

PHASE = Phase.BACKFILL
PASS = "backfill"  # noqa: S105  # a pass over rows
CLOSING = "closing"


def is_done(rollout: Rollout) -> bool:
    return rollout.ledger.phase_state(PHASE) == "done"


def steps(rollout: Rollout) -> list[Step]:
    filling = [Step("fill history", lambda: _fill(rollout))] if rollout.plan.plan.fills_late else []
    return [*filling, Step("closing pass", lambda: _closing_pass(rollout))]


def back(rollout: Rollout) -> list[Step]:
    """Nothing is undone (ADR section 9); the pass simply counts as not made."""
    return [Step("the pass counts as not made", lambda: _not_made(rollout))]


def _fill(rollout: Rollout) -> Outcome:
    if not rollout.plan.filled_columns or (rollout.ledger.passes().get(PASS) or {}).get("finished_at"):
        return Outcome.ALREADY_DONE
    rollout.ledger.set_phase(PHASE, "running")
    walk = rollout.walk()
    walk = replace(walk, decided_by=fixes.untouched_new_side(walk.pairs))
    with rollout.timed(PHASE, "fill history") as facts:
        passes.fill(walk, rollout.ledger, PASS, rollout.told)
        standing = rollout.ledger.passes()[PASS]
        facts |= {"rows": standing["rows_changed"], "examined": standing["rows_examined"]}
    return Outcome.DONE


def _closing_pass(rollout: Rollout) -> Outcome:
    found: dict[str, object] = {}
    with rollout.timed(PHASE, "closing pass") as facts:
        if rollout.plan.filled_columns:
            left = exact_look.looked(rollout.walk(), rollout.ledger, CLOSING, rollout.told)
            found = {"rows examined": left.rows_examined, "rows that differ": left.count, "keys": list(left.keys)}
            facts |= {"rows": left.rows_examined, "differ": left.count, "keys": list(left.keys)}
    rollout.ledger.set_phase(PHASE, "done", found)
    return Outcome.DONE


def _not_made(rollout: Rollout) -> Outcome:
    rollout.ledger.reset_pass(PASS)
    rollout.ledger.set_phase(PHASE, "undone")
    return Outcome.DONE
