"""Triggers under our names with a body that is not ours, on a table whose ledger knows nothing of this plan (case C73)."""

from __future__ import annotations

from steps import catalogue, sync
from steps.checks.finding import Finding, Look
from steps.errors import Refused
from steps.ledger import Ledger

NAME = "sync-leftovers"
ACCEPT = "replace-sync"


def run(look: Look) -> list[Finding]:
    """With a ledger the rollout itself compares and replaces; the same body is adopted and is no finding."""
    names = sync.trigger_names(look.plan.id)
    standing = [t for t in catalogue.triggers(look.session, look.schema, look.table) if t.name in names]
    ledger = Ledger(look.session, look.schema, look.table, look.plan.id, look.plan.plan.ledger_schema)
    if not standing or ledger.plan():
        return []
    ours = _ours(look)
    return [Finding(
        NAME, "refuse", f"trigger {trigger.name}",
        f"stands on {look.table} with another body than this plan's, and no ledger tells of a run of {look.plan.id} "
        "that made it",
        f"look at it with SHOW CREATE TRIGGER, then drop it, or let the rollout replace it with --accept {ACCEPT}",
        ACCEPT)
        for trigger in standing if trigger.name not in ours]


def _ours(look: Look) -> set[str]:
    """Names of our triggers that stand with the body this plan gives them; none while a column of a pair is missing."""
    try:
        wanted = sync.sync_triggers(look.plan.id, sync.pairs(look.session, look.plan, look.schema))
    except Refused:
        return set()
    return {trigger.name for trigger in wanted
            if sync.state(look.session, look.schema, look.table, (trigger,)) is sync.SyncState.ON}
