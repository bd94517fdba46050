"""Whether cleanup may begin, as far as catalogue and ledger know: its conditions, told one by one where they do not hold."""

from __future__ import annotations

from typing import Any

from steps import cleanup_ready, clocks, old_writers
from steps.errors import Refused
from steps.parity_looks import CLEAN, UNSEEN, Look, differed, every_row_at, last
from steps.phase import Phase
from steps.rollout import Rollout

FRESH_S = 86_400
SHOWN_WRITERS = 5


def unmet(rollout: Rollout) -> list[str]:
    """
    Which of cleanup's conditions do not hold now, each as a person reads it; empty when all do, and once cleanup has begun.

    They are: verify and shadow write done, verify as old as `cleanup.min_age_s`, triggers and schema as planned, parity clean at the last
    complete look at every row (phase 5's own counts) not longer than a day ago, no writer of the old side seen. From catalogue and
    ledger alone; takes no lock. That nobody *could* see a writer is for cleanup's own gate, which asks (`cleanup-unseen`).
    """
    return unmet_after(rollout, last(rollout))


def unmet_after(rollout: Rollout, look: dict[str, Any]) -> list[str]:
    """The same where *look* is the last one, which need not be on record yet; empty where there was none."""
    if rollout.cleanup_began():
        return []
    phases = rollout.ledger.phases()
    not_done = [f"{phase.value} is {phases.get(phase, {}).get('state', 'not begun')}" for phase in (Phase.VERIFY, Phase.SHADOW_WRITE)
                if phases.get(phase, {}).get("state") != "done"]
    if not_done:
        return not_done
    now = clocks.now(rollout.session)
    young = cleanup_ready.too_young(rollout, now)
    found = [f"{young.reason}; due {young.due.shown}"] if young else []
    standing = Look()
    see_schema(rollout, standing)
    found += standing.lost + _parity(rollout, look, now)
    here, seen = old_writers.connected(rollout)[0], list(look.get("old_writers") or [])
    writers = here + [one for one in seen if not (here and one.startswith(old_writers.CONNECTED))]
    return found + [f"the old side is still written: {one}" for one in writers[:SHOWN_WRITERS]]


def _parity(rollout: Rollout, look: dict[str, Any], now: clocks.Moment) -> list[str]:
    """What of the looks at rows does not let cleanup begin; the first complete one is phase 5's own."""
    if not rollout.plan.filled_columns:
        return []
    told = look if look.get("outcome") == CLEAN or look.get("differing") else differed(rollout)
    if told.get("differing"):
        keys = ", ".join(told.get("keys", []))
        return [f"parity is lost: {told['differing']} rows disagree" + (f" (keys: {keys})" if keys else "")]
    at = str(look["at"]) if look.get("outcome") == CLEAN else every_row_at(rollout)
    if clocks.recorded(at, None).plus(FRESH_S).has_come(now):
        return [f"every row was last looked at {at}, more than a day ago: `rollout watch {rollout.plan.called}`"]
    if look.get("outcome") == UNSEEN:
        return [f"the last look could not look: {'; '.join(look['could_not_look'])}"]
    return []


def see_schema(rollout: Rollout, found: Look) -> None:
    """Triggers by presence and body, and where the table stands on the ladder."""
    if rollout.plan.filled_columns:
        found.triggers = rollout.sync_state().value
    ladder, live = rollout.ladder(), rollout.live()
    try:
        here = ladder.position(live, rollout.table)
    except Refused as drifted:
        found.drift.append(drifted.reason)
        return
    found.strangers = ladder.strangers(live, here)
    if here != ladder.expanded:
        found.drift.append(f"stands on stair {here} of {ladder.expanded}")
