"""`rollout check`: all pre-checks, read only."""

from __future__ import annotations

from flows import actions
from flows.cli.ending import ending
from flows.cli.options import NO_REASON, Accept, DatabaseUrl, Json, PlanName, Settings, whoami
from flows.params import Request
from steps.target import target_of


def check(plan: PlanName, database_url: DatabaseUrl = None, settings: Settings = None, accept: Accept = None,
          as_json: Json = False) -> None:
    """All pre-checks, read only (the rehearsal's scratch schema aside): everything that would refuse a run, at once."""
    with ending(as_json=as_json) as end:
        request = Request(plan=plan, by=whoami(), reason=NO_REASON, settings=settings or [], accept=accept or [])
        with actions.desk(request, target_of(database_url)) as desk:
            found = actions.look_first(desk)
        stopping = [finding for finding in found if finding.stops(request.accept)]
        end.document |= {"findings": [vars(f) for f in found], "refused": len(stopping)}
        for finding in found:
            answer = "could not look" if finding.could_not_look else finding.severity
            end.say(f"{answer} [{finding.check}] {finding.subject}: {finding.what}; {finding.advice}")
        end.say("clean" if not found else f"{len(stopping)} refuse, {len(found) - len(stopping)} to know")
        if stopping:
            end.document["exit_code"] = 3
