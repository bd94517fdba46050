"""
Phase 3: the closing pass. History was filled before the deploy (F17); this proves that nothing is left.

Both generations are alive, so nobody decides: what the pass finds is a finding, recorded here and judged by verify.
"""

from __future__ import annotations

from steps import passes
from steps.phase import Outcome, Phase
from steps.rollout import Rollout
from steps.step import Step

PHASE = Phase.BACKFILL


def is_done(rollout: Rollout) -> bool:
    return rollout.ledger.phase_state(Phase.BACKFILL) == "done"


def steps(rollout: Rollout) -> list[Step]:
    return [Step("closing pass", lambda: _closing_pass(rollout))]


def back(rollout: Rollout) -> list[Step]:
    """Nothing is undone (ADR section 9); the closing pass simply counts as not made."""
    return [Step("closing pass counts as not made", lambda: _not_made(rollout))]


def _closing_pass(rollout: Rollout) -> Outcome:
    found: dict[str, object] = {}
    with rollout.timed(Phase.BACKFILL, "closing pass") as facts:
        if rollout.plan.filled_columns:
            left = passes.disagreements(rollout.walk())
            found = {"rows examined": left.rows_examined, "rows that differ": left.count, "keys": list(left.keys)}
            facts |= {"rows": left.rows_examined, "differ": left.count, "keys": list(left.keys)}
    rollout.ledger.set_phase(Phase.BACKFILL, "done", found)
    return Outcome.DONE


def _not_made(rollout: Rollout) -> Outcome:
    rollout.ledger.set_phase(Phase.BACKFILL, "undone")
    return Outcome.DONE
