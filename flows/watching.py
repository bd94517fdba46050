"""One look of the parity watch, whoever asks: the command line, a schedule, a test. Prefect-free; a conductor shows it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pydantic import ConfigDict, Field

from flows.actions import Result
from flows.conductor import Conductor
from flows.params import Request
from steps import expiry, parity_watch
from steps.errors import ParityLost, ParityUnseen
from steps.parity_looks import UNSEEN, Look
from steps.phase import Outcome
from steps.plan_identity import same_plan
from steps.rollout import Rollout
from steps.step import Step
from steps.sync import SyncState

NOT_ASKED = ("accept", "end_blockers", "deployed_by")
BUDGET_S = 300
NOTHING = "nothing to do"
MINUTE_S, HOUR_S = 60, 3600


def _without_what_a_look_never_needs(schema: dict[str, Any]) -> None:
    for name in NOT_ASKED:
        schema["properties"].pop(name, None)


class WatchRequest(Request):
    """Look once whether both sides are still in step, and whether cleanup's conditions hold. Changes nothing."""

    model_config = ConfigDict(json_schema_extra=_without_what_a_look_never_needs)

    budget_s: int = Field(default=BUDGET_S, ge=1, le=3600, title="Seconds for this look",
                          description="The next look goes on from where this one ends.")


@dataclass
class WatchResult(Result):
    """How a look ended that found nothing wrong; `look` is empty where there was nothing to watch, and `why` says so."""

    look: dict[str, Any] = field(default_factory=dict)
    why: str = ""

    def to_json(self) -> dict[str, Any]:
        return super().to_json() | self.look | ({"why": self.why} if self.why else {})


def watch(rollout: Rollout, request: WatchRequest, conduct: Conductor) -> WatchResult:
    """
    One look of `request.budget_s` seconds. Owns nothing, takes no lock on the table, safe to repeat and to kill. Questions and approvals
    at gates that have expired meanwhile are put on record first.

    Raises:
        ParityLost: rows disagree, or the triggers or the schema are not as planned; ParityUnseen where it could not look.
        Busy: another look is at work.
    """
    same_plan(rollout)
    expired = expiry.settle(rollout)
    why = parity_watch.nothing_to_watch(rollout)
    if why:
        return WatchResult("watch", "done" if expired else NOTHING, expired, why=why)
    found: list[Look] = []

    def look() -> Outcome:
        found.append(parity_watch.look(rollout, request.budget_s))
        return Outcome.DONE

    conduct.phase("parity watch", [Step("look", look)], rollout)
    refuse_lost(rollout, found[0])
    return WatchResult("watch", found[0].outcome, expired, run_id=rollout.ledger.run_id, look=found[0].to_json())


def refuse_lost(rollout: Rollout, look: Look) -> None:
    """Raises ParityLost or ParityUnseen, as :func:`watch`."""
    if look.lost:
        raise ParityLost(f"table {rollout.schema}.{rollout.table}", "; ".join(look.lost), _remedy(rollout.plan.called, look),
                         look.to_json())
    if look.outcome == UNSEEN:
        raise ParityUnseen(f"table {rollout.schema}.{rollout.table}", f"could not look: {'; '.join(look.could_not_look)}",
                           "remove the cause; the next look goes on from there", look.to_json())


def _remedy(called: str, look: Look) -> str:
    """What a person can do about it: the tool does not decide which side of a row is right."""
    rows = ["say by key which side of these rows is right, and correct them"] if look.differing else []
    mends = look.triggers != SyncState.ON.value or look.drift
    schema = [f"`rollout run {called}` puts the triggers back, or says what stops it (where a run waits in Prefect: resume that one)"] \
        if mends else []
    return "; ".join(["cleanup stays shut", *rows, *schema, f"then `rollout watch {called} --by NAME --reason WHY` looks again"])


def line(look: dict[str, Any]) -> str:
    """The last look, for `rollout status`."""
    age_s = look["age_s"]
    age = f"{age_s} s" if age_s < MINUTE_S else f"{age_s // MINUTE_S} min" if age_s < HOUR_S else f"{age_s / HOUR_S:.1f} h"
    found = f"parity watch: {look['outcome']}, {age} ago by {look['by']}: {look.get('rows_of_round', 0)} rows of this round, "
    found += f"{look['differing']} differ" + (f"; {look['held_up']}" if look.get("held_up") else "")
    return found + (f"; cleanup has to wait: {'; '.join(look['conditions_unmet'])}" if look["conditions_unmet"] else "")
