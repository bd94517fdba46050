"""`rollout rehearse`: the staircase, triggers and canary on a clone, up and down."""

from __future__ import annotations

from rich.table import Table

from flows import actions
from flows.cli.ending import ending
from flows.cli.options import NO_REASON, DatabaseUrl, Json, PlanName, Settings, whoami
from flows.params import Request
from steps.target import target_of


def rehearse(plan: PlanName, database_url: DatabaseUrl = None, settings: Settings = None, as_json: Json = False) -> None:
    """Climb and descend the staircase on an empty clone with the triggers and their canary; the live table is not touched."""
    with ending(as_json=as_json) as end:
        request = Request(plan=plan, by=whoami(), reason=NO_REASON, settings=settings or [])
        with actions.desk(request, target_of(database_url)) as desk:
            actions.refuse_unfit(desk)
            rehearsed = desk.rehearsed()
        end.document |= {"stairs": [{"step": stair.name, "up": stair.up.algorithm, "down": stair.down.algorithm,
                                     "after_first_pass": stair.after_first_pass} for stair in rehearsed.ladder.stairs],
                         "notes": list(rehearsed.notes)}
        if as_json:
            return
        table = Table("step", "up", "way back")
        for stair in rehearsed.ladder.stairs:
            table.add_row(stair.name, stair.up.algorithm, stair.down.algorithm)
        end.console.print(table)
        for note in rehearsed.notes:
            end.say(note)
        end.say("every step goes up and comes back, each landing exactly one stair lower")
