"""`rollout rollback`: back."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from flows import actions
from flows.cli.ending import ending
from flows.cli.options import (
    NO_REASON,
    Accept,
    By,
    DatabaseUrl,
    DeployedBy,
    EndBlockers,
    Json,
    NoPrefect,
    PlanName,
    Reason,
    Settings,
    Yes,
    whoami,
)
from flows.cli.performing import Ask, perform
from flows.params import RollbackRequest, Target, Through
from steps.target import target_of


def rollback(plan: PlanName,
             phase: Annotated[Through | None, typer.Argument(help="Undo this phase; refused while a later one stands.")] = None,
             database_url: DatabaseUrl = None,
             to: Annotated[Target | None, typer.Option("--to", help="Return to the end of this phase, or to v0.")] = None,
             drop_added: Annotated[bool, typer.Option("--drop-added", help="Also take away added columns, indexes and keys.")] = False,
             settings: Settings = None, accept: Accept = None, yes: Yes = False, by: By = "", reason: Reason = NO_REASON,
             deployed_by: DeployedBy = None, end_blockers: EndBlockers = False,
             no_prefect: NoPrefect = False, as_json: Json = False) -> None:
    """Go back: undo PHASE, or return to the end of a phase or to V0 with --to."""
    with ending(as_json=as_json) as end:
        request = RollbackRequest(plan=plan, by=by or whoami(), reason=reason, settings=settings or [], accept=accept or [],
                                  deployed_by=deployed_by, end_blockers=end_blockers, phase=phase, to=to,
                                  drop_added=drop_added, database="command line")
        database = target_of(database_url)
        ask = Ask(end, quiet=as_json)
        with actions.desk(request, database, ask.confirm if sys.stdin.isatty() else None) as desk:
            phases, anything = actions.what_to_undo(desk, request)
            if not anything:
                result = actions.nothing_to_undo(desk)
                end.document |= result.to_json()
                what = "no phase to be undone stands" if desk.ledger.plan() else "nothing of this plan stands"
                for line in result.did or [f"nothing to do: {what} on {desk.table}"]:
                    end.say(line)
                return
            if not yes:
                ask.before_starting(f"roll back {', '.join(p.value for p in phases)} on {database.where}")
        perform(request, database, end, ask, prefect=not no_prefect)
