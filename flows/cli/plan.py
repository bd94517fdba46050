"""`rollout plan`: what would run, with algorithm, lock, estimate and its basis per step, and the way back's."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.table import Column, Table

from flows import actions, planned
from flows.cli.ending import Ending, ending
from flows.cli.options import NO_REASON, DatabaseUrl, Json, PlanName, Settings, whoami
from flows.params import Request
from flows.planned import MEETS, REBUILDS
from flows.prisma import models as models_of
from steps import contract, ddl, plan_loader
from steps.errors import WrongUsage
from steps.target import target_of


def plan(plan: PlanName, database_url: DatabaseUrl = None, settings: Settings = None,
         sql: Annotated[bool, typer.Option("--sql", help="Print every statement.")] = False,
         prisma: Annotated[bool, typer.Option("--prisma", help="Print the Prisma models V1 and V2 of the plan's contract, and nothing "
                                              "else; needs no database.")] = False, as_json: Json = False) -> None:
    """What `rollout run` would do from here: every statement, its algorithm, lock and estimate. Nothing else runs."""
    with ending(as_json=as_json) as end:
        if prisma:
            _print_models(end, plan, settings or [])
            return
        request = Request(plan=plan, by=whoami(), reason=NO_REASON, settings=settings or [])
        with actions.desk(request, target_of(database_url)) as desk:
            actions.refuse_unfit(desk)
            document = planned.document(desk)
        end.document |= document
        if not as_json:
            _show(end, document, with_sql=sql)


def _print_models(end: Ending, name: str, settings: list[str]) -> None:
    """
    Raises:
        WrongUsage: the plan has no contract to make models of.
    """
    loaded = plan_loader.load(name, settings)
    frozen = contract.load(loaded)
    if frozen is None:
        raise WrongUsage("--prisma", f"needs a {contract.FILE} beside the plan, and there is none", "write one, or leave --prisma out")
    models = models_of(frozen, in_place=loaded.plan.renames_in_place)
    end.document["prisma"] = models
    if not end.as_json:
        end.say("\n".join(models.values()))


def _show(end: Ending, document: dict[str, Any], *, with_sql: bool) -> None:
    end.say(f"{document['table']}: stair {document['stair']} of {document['stairs']} "
            f"(pre_deploy ends at {document['pre_deploy_stairs']}), about {document['rows_estimated']} rows")
    table = Table(Column("step", overflow="fold"), Column("algorithm", no_wrap=True), "rebuilds", "others meet", "estimate", "basis",
                  "together with", "way back")
    for number, group in enumerate(document["groups"], 1):
        _add_rows(table, group, f"hold {number}")
    for group in document["cleanup"]:
        _add_rows(table, group, "cleanup, when asked for")
    end.console.print(table)
    first_pass = document["first_pass_estimate"]
    if first_pass:
        end.say(f"first pass: about {first_pass['estimate_ms'] / 1000:,.1f} s ({first_pass['basis']})")
    if with_sql:
        for statement in planned.every_statement(document):
            end.say(f"{statement};\n")


def _add_rows(table: Table, group: dict[str, Any], hold: str) -> None:
    for step in group["steps"]:
        table.add_row(step["step"], planned.algorithm(step), REBUILDS[step["rebuilds"]], planned.met(step),
                      f"{step['estimate_ms']:.0f} ms", step["basis"], hold if group["in_one_hold"] else "alone",
                      f"{step['back']['algorithm']}, {step['back']['estimate_ms']:.0f} ms")
    if group["sync"]:
        table.add_row("sync triggers and canary", "", "", MEETS["metadata"], f"{ddl.SYNC_MS:.0f} ms", "", hold, "")
