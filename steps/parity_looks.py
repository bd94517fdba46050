"""
What one look of the parity watch saw, and the looks on record.

An event of the ledger each, with what was seen as its detail; they belong to the run whose soak they watch, the latest one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from steps import clocks
from steps.exact_look import WATCH
from steps.mysql import VALUE
from steps.phase import Phase
from steps.rollout import Rollout
from steps.sync import SyncState

CLEAN, FOUND, UNFINISHED, UNSEEN = "clean", "found", "unfinished", "could not look"
CONDITIONS, MET, UNMET = "conditions", "met", "not met"
AFTERWARDS = (WATCH, CONDITIONS)
"""Steps of events that belong to the run whose soak is watched, and come long after its end."""
FOR_THE_NEXT = "counters"


@dataclass
class Look:
    """
    What one look saw. `rows_examined` are this look's, `rows_of_round` those of the round so far; `differing` rows disagree now, by the
    keys of the first few. `complete`: the round ended with this look. `held_up` says why it did not, `could_not_look` what was not seen.
    """

    rows_examined: int = 0
    rows_of_round: int = 0
    complete: bool = False
    held_up: str = ""
    differing: int = 0
    by_pair: dict[str, int] = field(default_factory=dict)
    keys: list[str] = field(default_factory=list)
    triggers: str = SyncState.ON.value
    drift: list[str] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)
    could_not_look: list[str] = field(default_factory=list)
    old_writers: list[str] = field(default_factory=list)
    writers_unseen: list[str] = field(default_factory=list)
    days_since: dict[str, float] = field(default_factory=dict)
    conditions_unmet: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def outcome(self) -> str:
        if self.lost:
            return FOUND
        return UNSEEN if self.could_not_look else CLEAN if self.complete else UNFINISHED

    @property
    def lost(self) -> list[str]:
        """What is wrong, each in a few words; empty while both sides are in step."""
        pairs = ", ".join(f"{pair}: {count}" for pair, count in self.by_pair.items())
        found = [f"{self.differing} rows disagree ({pairs}; keys: {', '.join(self.keys)})"] if self.differing else []
        found += [f"sync triggers: {self.triggers}"] if self.triggers != SyncState.ON.value else []
        return found + self.drift

    def to_json(self) -> dict[str, Any]:
        return {"outcome": self.outcome, **vars(self)}


def looks(rollout: Rollout, *, step: str = WATCH, condition: str = "TRUE", most: int = 1) -> list[dict[str, Any]]:
    """The last *most* recorded looks since shadow write was done last: detail with `at`, `outcome` and `run_id`; oldest first. One read."""
    ledger = rollout.ledger
    rows = ledger.read(
        f"SELECT e.at, e.outcome, e.run_id, e.detail FROM {ledger.table('event')} e JOIN {ledger.table('phase')} p "
        f"USING (table_schema, table_name, plan_id) WHERE table_schema = {VALUE} AND table_name = {VALUE} AND plan_id = {VALUE} "
        f"AND p.phase = {VALUE} AND e.at >= p.at AND e.step = {VALUE} AND {condition} ORDER BY e.id DESC LIMIT {int(most)}",
        *ledger.key, Phase.SHADOW_WRITE.value, step)
    return [{**json.loads(detail), "at": at.isoformat(timespec="milliseconds") + "Z", "outcome": str(outcome), "run_id": str(run)}
            for at, outcome, run, detail in reversed(rows)]


def last(rollout: Rollout) -> dict[str, Any]:
    """The last look; empty where there is none."""
    found = looks(rollout)
    return found[-1] if found else {}


def _decided(rollout: Rollout) -> dict[str, Any]:
    """The last look that found something wrong, or every row in step; empty where there is none. What others only began says neither."""
    found = looks(rollout, condition=f"e.outcome IN ('{FOUND}', '{CLEAN}')")
    return found[-1] if found else {}


def differed(rollout: Rollout) -> dict[str, Any]:
    """The last look that found rows that differ; empty where every row was in step since. One that could not read them says neither."""
    found = looks(rollout, condition=f"(e.outcome = '{CLEAN}' OR JSON_EXTRACT(e.detail, '$.differing') > 0)")
    return found[-1] if found and found[-1]["outcome"] != CLEAN else {}


def alarm(rollout: Rollout) -> str | None:
    """In words what was found wrong last, until a look at every row finds nothing, or cleanup begins. Keys are left to the look."""
    look = {} if rollout.cleanup_began() else _decided(rollout)
    if look.get("outcome") != FOUND:
        return None
    differing, triggers = differed(rollout).get("differing"), look.get("triggers", SyncState.ON.value)
    found = [f"{differing} rows that differ"] if differing else []
    found += [f"sync triggers {triggers}"] if triggers != SyncState.ON.value else []
    found += ["a schema that drifted"] if look.get("drift") else []
    return f"the parity watch of {look['at']} found {', '.join(found)}, and none was clean since"


def every_row_at(rollout: Rollout) -> str:
    """When a round over every row ended clean last (UTC); that of shadow write itself is the first. Empty before it."""
    found = looks(rollout, condition=f"JSON_EXTRACT(e.detail, '$.complete') = TRUE AND e.outcome = '{CLEAN}'")
    return str(found[-1]["at"] if found else rollout.ledger.phases().get(Phase.SHADOW_WRITE, {}).get("at", ""))


def conditions_held(rollout: Rollout) -> bool:
    """Whether the record says that cleanup's conditions hold; it is written where that changes."""
    found = looks(rollout, step=CONDITIONS)
    return bool(found and found[-1]["outcome"] == MET)


def last_look(rollout: Rollout) -> dict[str, Any] | None:
    """The last look with its age in seconds, without what only the next look needs; None where there is none."""
    found = last(rollout)
    if not found:
        return None
    age_s = (clocks.now(rollout.session).server - clocks.recorded(found["at"], None).server).total_seconds()
    return {name: value for name, value in found.items() if name != FOR_THE_NEXT} | {"age_s": round(age_s)}
