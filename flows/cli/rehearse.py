"""`rollout rehearse`: the staircase, triggers, canary and a sample of rows on a clone, up and down."""

from __future__ import annotations

from flows import actions
from flows.cli.ending import ending
from flows.cli.forecast_table import forecast_table
from flows.cli.options import NO_REASON, DatabaseUrl, Json, PlanName, Settings, whoami
from flows.params import Request
from steps import forecast
from steps.target import target_of


def rehearse(plan: PlanName, database_url: DatabaseUrl = None, settings: Settings = None, as_json: Json = False) -> None:
    """Climb and descend the staircase on a clone with triggers, canary and a sample of rows; the live table is not touched."""
    with ending(as_json=as_json) as end:
        request = Request(plan=plan, by=whoami(), reason=NO_REASON, settings=settings or [])
        with actions.desk(request, target_of(database_url)) as desk:
            actions.refuse_unfit(desk)
            rehearsed = desk.rehearsed()
            steps = forecast.steps(desk)
        end.document |= {"stairs": [{"step": step["step"], "up": step["up"]["algorithm"], "down": step["down"]["algorithm"],
                                     "after_first_pass": step["after_first_pass"]} for step in steps],
                         "steps": steps, "sample": rehearsed.sample.to_json() if rehearsed.sample else None,
                         "slowness": round(rehearsed.slowness, 2), "notes": list(rehearsed.notes)}
        if as_json:
            return
        end.console.print(forecast_table(steps, "as the server took each step on the clone"))
        for note in rehearsed.notes:
            end.say(note)
        if rehearsed.sample:
            sample = rehearsed.sample
            end.say(f"{sample.rows} sampled rows went up and came back; the first pass changed {sample.changed} of them")
        end.say("every step goes up and comes back, each landing exactly one stair lower")
