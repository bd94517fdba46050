"""`rollout run`: forward."""

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
from flows.cli.performing import Ask, perform, progress_told, say
from flows.params import RunRequest, Through
from steps.target import target_of


def run(plan: PlanName, database_url: DatabaseUrl = None,
        first: Annotated[Through | None, typer.Option("--from", help="First phase; those before it must be done.")] = None,
        through: Annotated[Through, typer.Option("--through", help="Last phase of this run.")] = Through.SHADOW_WRITE,
        settings: Settings = None, accept: Accept = None, yes: Yes = False, by: By = "", reason: Reason = NO_REASON,
        deployed_by: DeployedBy = None, end_blockers: EndBlockers = False,
        no_prefect: NoPrefect = False, as_json: Json = False) -> None:
    """Take the table and its application forward, from where they stand."""
    with ending(as_json=as_json) as end:
        request = RunRequest(plan=plan, by=by or whoami(), reason=reason, settings=settings or [], accept=accept or [],
                             deployed_by=deployed_by, end_blockers=end_blockers, first=first, through=through, database="command line")
        database = target_of(database_url)
        ask = Ask(end, quiet=as_json)
        with actions.desk(request, database, ask.confirm if sys.stdin.isatty() else None, progress_told(end)) as desk:
            if actions.nothing_to_run(desk, request):
                say(end, actions.nothing_done(desk))
                return
            actions.refuse_unfit(desk)  # needs no Prefect either
            if not yes:
                ask.before_starting(f"run {request.plan} through {through.value} on {database.where}")
        perform(request, database, end, ask, prefect=not no_prefect)
