"""`rollout watch`: one look of the parity watch over the weeks of shadow write."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from flows import actions
from flows.cli.ending import Ending, ending
from flows.cli.options import NO_REASON, By, DatabaseUrl, Json, NoPrefect, PlanName, Reason, Settings, whoami
from flows.cli.performing import Ask, perform
from flows.watching import BUDGET_S, NOTHING, WatchRequest, WatchResult
from steps import approvals, parity_watch
from steps.errors import ParityLost
from steps.target import target_of

Budget = Annotated[int, typer.Option("--budget-s", min=1, max=3600, metavar="S",
                                     help="Seconds that this look may take; the next one goes on from there.")]


def watch(plan: PlanName, database_url: DatabaseUrl = None, budget_s: Budget = BUDGET_S, settings: Settings = None, by: By = "",
          reason: Reason = NO_REASON, no_prefect: NoPrefect = False, as_json: Json = False) -> None:
    """
    Look once: every pair in step, triggers and schema as planned, who writes the old side, cleanup's conditions. Changes nothing.

    Suspended runs whose time has come go on, and questions at gates that have expired or were withdrawn are put on record.

    Exit 0 clean or unfinished, 4 when parity is lost or it could not look. Takes no lock and steps aside for any run.
    """
    with ending(as_json=as_json) as end:
        request = WatchRequest(plan=plan, by=by or whoami(), reason=reason, settings=settings or [], budget_s=budget_s,
                               database="command line")
        database = target_of(database_url)
        with actions.desk(request, database) as desk:
            why = parity_watch.nothing_to_watch(desk)
            at_gates = approvals.undecided(desk)
        if why and not at_gates:  # needs no Prefect
            end.document |= WatchResult("watch", NOTHING, why=why).to_json()
            end.say(f"nothing to do: {why}")
            return
        try:
            perform(request, database, end, Ask(end, quiet=as_json), prefect=not no_prefect)
        except ParityLost as lost:
            end.document |= lost.look
            _told(end)
            raise
        _told(end)


def _told(end: Ending) -> None:
    """What was seen, in lines for a person."""
    for line in lines(end.document):
        end.say(line)


def lines(look: dict[str, Any]) -> list[str]:
    """A look as a person reads it."""
    if "rows_examined" not in look:
        return [str(look["why"])] if look.get("why") else []
    found = [f"rows: {look['rows_examined']} looked at, {look['rows_of_round']} in this round, {look['differing']} differ"
             + (", round complete" if look["complete"] else "") + (f"; ended early: {look['held_up']}" if look["held_up"] else "")]
    found.append(f"sync triggers: {look['triggers']}; schema: {'; '.join(look['drift']) or 'as planned'}")
    found += [f"not in the plan: {', '.join(look['strangers'])}"] if look["strangers"] else []
    found += [f"the old side is written: {'; '.join(look['old_writers'])}"] if look["old_writers"] else []
    found += [f"who writes the old side could not be seen: {'; '.join(look['writers_unseen'])}"] if look["writers_unseen"] else []
    found += [f"{phase} was {days:.1f} days ago" for phase, days in look["days_since"].items()]
    unmet = look["conditions_unmet"]
    return found + ([f"cleanup has to wait: {one}" for one in unmet] or ["cleanup's conditions hold"])
