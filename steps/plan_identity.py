"""
One plan on one table: what was fixed at the first run stays, and another plan waits until this one has ended (case C95).

Looks at the ledger only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steps.errors import Refused, WrongUsage

if TYPE_CHECKING:
    from steps.rollout import Rollout


def plan_differences(rollout: Rollout) -> list[str]:
    """In what the plan's identity differs from the one fixed at the first run; keys that an older tool did not record do not count."""
    known, now = rollout.ledger.plan(), rollout.plan.identity()
    return [key for key, value in known["identity"].items() if now.get(key) != value] if known else []


def same_plan(rollout: Rollout) -> None:
    """
    Raises:
        WrongUsage: the plan is another than the one this table began with; names what differs (case C95).
    """
    differing = plan_differences(rollout)
    if differing:
        raise WrongUsage(f"plan {rollout.plan.id}", f"differs in {', '.join(differing)} from the one this table began with",
                         "use the first plan's text and settings; or go back by it, `rollout rollback PLAN --to v0 --drop-added`, and "
                         "start anew")


def refuse_other_plans(rollout: Rollout) -> None:
    """
    Raises:
        Refused: another plan was begun on this table and has not ended; names it.
    """
    others = rollout.ledger.unfinished_plans()
    if others:
        raise Refused(f"table {rollout.table}", f"plan {', '.join(others)} was begun on it and has not ended",
                      f"finish it with `rollout run PLAN --through cleanup`, or take it back with `rollout rollback PLAN --to v0 "
                      f"--drop-added`, where PLAN is the one that calls itself {others[0]}")
