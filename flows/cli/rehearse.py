"""`rollout rehearse`: the staircase, triggers and canary on a clone, up and down."""

from __future__ import annotations

from rich.table import Table

from flows import actions
from flows.cli.ending import ending
from flows.cli.options import NO_REASON, DatabaseUrl, Json, PlanName, Settings, whoami
from flows.params import Request
from steps import catalogue, handover
from steps.estimates import estimate_ms
from steps.ladder import Way
from steps.rollout import Rollout
from steps.target import target_of


def rehearse(plan: PlanName, database_url: DatabaseUrl = None, settings: Settings = None, as_json: Json = False) -> None:
    """Climb and descend the staircase on an empty clone with the triggers and their canary; the live table is not touched."""
    with ending(as_json=as_json) as end:
        request = Request(plan=plan, by=whoami(), reason=NO_REASON, settings=settings or [])
        with actions.desk(request, target_of(database_url)) as desk:
            actions.refuse_unfit(desk)
            rehearsed = desk.rehearsed()
            rows = catalogue.estimated_rows(desk.session, desk.schema, desk.table)
            stairs = [{"step": stair.name, "up": _algorithm(desk, stair.up, rows), "down": _algorithm(desk, stair.down, rows),
                       "after_first_pass": stair.after_first_pass} for stair in rehearsed.ladder.stairs]
        end.document |= {"stairs": stairs, "notes": list(rehearsed.notes)}
        if as_json:
            return
        table = Table("step", "up", "way back")
        for stair in stairs:
            table.add_row(str(stair["step"]), str(stair["up"]), str(stair["down"]))
        end.console.print(table)
        for note in rehearsed.notes:
            end.say(note)
        end.say("every step goes up and comes back, each landing exactly one stair lower")


def _algorithm(desk: Rollout, way: Way, rows: int) -> str:
    """How the step would be taken on the live table's *rows* rows."""
    handed_over = handover.is_due(desk, way, estimate_ms(way, rows) * desk.slowness)
    return handover.ALGORITHM if handed_over else way.algorithm
