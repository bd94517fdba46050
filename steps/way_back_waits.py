"""A way back that waits for a person before anything is undone: on record, so that whoever looks next does not go forward instead."""

from __future__ import annotations

from typing import Any

from steps.errors import WaitingForPerson
from steps.ledger import Event
from steps.phase import Phase
from steps.rollout import Rollout

STEP, WAITS = "way back", "waits"


def on_record(rollout: Rollout, phase: Phase, waiting: WaitingForPerson) -> None:
    """That *phase* was to be taken back, by whom, and what *waiting* says. No lock; beside the runs, for none has begun."""
    rollout.record(Event(phase.value, STEP, WAITS, detail={"by": rollout.person.actor, "why": rollout.person.reason,
                                                           "reason": waiting.reason, "remedy": waiting.remedy}))


def last(rollout: Rollout) -> dict[str, Any] | None:
    """What the last one waits for; None where a run or a rollback has begun since."""
    event = next((event for event in reversed(rollout.ledger.events()) if event["step"] == STEP), None)
    run = next(iter(reversed(rollout.ledger.runs())), None)
    if event is None or (run and run["started_at"] > event["at"]):
        return None
    return dict(event["detail"])
