"""A way back that waits for a person before anything is undone: on record, so that whoever looks next does not go forward instead."""

from __future__ import annotations

import json
from typing import Any

from steps.errors import WaitingForPerson
from steps.ledger import Event
from steps.mysql import VALUE
from steps.phase import Phase
from steps.rollout import Rollout

STEP, WAITS = "way back", "waits"


def on_record(rollout: Rollout, phase: Phase, waiting: WaitingForPerson) -> None:
    """That *phase* was to be taken back, by whom, and what *waiting* says. No lock; beside the runs, for none has begun."""
    rollout.record(Event(phase.value, STEP, WAITS, detail={"by": rollout.person.actor, "why": rollout.person.reason,
                                                           "reason": waiting.reason, "remedy": waiting.remedy}))


def last(rollout: Rollout) -> dict[str, Any] | None:
    """What the last one waits for; None where a run or a rollback has begun since. One small read."""
    ledger = rollout.ledger
    found = ledger.read(
        f"SELECT e.detail FROM {ledger.table('event')} e WHERE e.table_schema = {VALUE} AND e.table_name = {VALUE} AND e.plan_id = {VALUE} "
        f"AND e.step = {VALUE} AND NOT EXISTS (SELECT 1 FROM {ledger.table('run')} r WHERE r.table_schema = e.table_schema AND "
        f"r.table_name = e.table_name AND r.plan_id = e.plan_id AND r.started_at > e.at) ORDER BY e.id DESC LIMIT 1", *ledger.key, STEP)
    return dict(json.loads(str(found[0][0]))) if found else None
