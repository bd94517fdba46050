"""`rollout backfill`: pause, resume, limit or stop a pass over rows while it works, from any machine."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from flows import actions
from flows.cli.ending import ending
from flows.cli.options import NO_REASON, By, DatabaseUrl, Json, PlanName, Reason, Settings, whoami
from flows.params import Request
from steps import control
from steps.errors import Refused, WrongUsage
from steps.ledger import Event
from steps.mysql import VALUE
from steps.ownership import lock_name
from steps.phase import Phase
from steps.rollout import Rollout
from steps.target import target_of


class Wanted(StrEnum):
    """What a pass at work can be asked."""

    PAUSE = "pause"
    RESUME = "resume"
    LIMIT = "limit"
    STOP = "stop"


def backfill(plan: PlanName, wanted: Annotated[Wanted, typer.Argument(help="What the pass should do.")],
             rows_per_s: Annotated[int | None, typer.Argument(
                 min=0, max=1_000_000_000, help="With limit: most rows a second; 0 for the plan's own, if it has one.")] = None,
             database_url: DatabaseUrl = None, settings: Settings = None, by: By = "", reason: Reason = NO_REASON,
             as_json: Json = False) -> None:
    """
    Pause, resume, limit or stop the pass over rows of PLAN, effective within a second. Needs no lock and no Prefect.

    A pause and a limit stay until they are taken back; a stop takes a pause with it and ends the run that works now, at its next chunk,
    with exit 4, and the same run goes on later.
    """
    with ending(as_json=as_json) as end:
        if (rows_per_s is None) == (wanted is Wanted.LIMIT):
            raise WrongUsage(f"backfill {wanted.value}", "limit needs a number of rows, the others take none", "see --help")
        request = Request(plan=plan, by=by or whoami(), reason=reason, settings=settings or [])
        with actions.desk(request, target_of(database_url)) as desk:
            _ask(desk, wanted, rows_per_s)
            now = control.wish(desk.ledger)
        limit = now.rows_per_s or desk.plan.backfill.rows_per_s
        end.document |= {"outcome": "done", "wanted": now.wanted, "rows_per_s": limit}
        end.say(f"asked to {now.wanted}, " + (f"at most {limit} rows/s" if limit else "without a limit"))


def _on_record(desk: Rollout, wanted: Wanted, rows_per_s: int | None) -> None:
    """Who steered, when and why goes into the audit trail of the latest run, whose passes it is for."""
    desk.ledger.run_id = next((run["run_id"] for run in reversed(desk.ledger.runs())), desk.ledger.run_id)
    running = (phase for phase, row in desk.ledger.phases().items() if row["state"] == "running")
    said = {"by": desk.person.actor, "why": desk.person.reason} | ({} if rows_per_s is None else {"rows per s": rows_per_s or "no limit"})
    desk.ledger.record(Event(next(running, Phase.PRE_DEPLOY).value, "pass, steered", f"asked to {wanted.value}", detail=said))


def _ask(desk: Rollout, wanted: Wanted, rows_per_s: int | None) -> None:
    if desk.ledger.plan() is None:
        raise Refused(f"plan {desk.plan.id}", "was never begun on this table", "nothing to steer; see `rollout status`")
    if wanted is Wanted.STOP and desk.session.value(f"SELECT IS_USED_LOCK({VALUE})", lock_name(desk.schema, desk.table)) is None:
        raise Refused(f"plan {desk.plan.id}", "nobody works on it, so there is nothing to stop",
                      "a pause would keep the next run's passes waiting")
    desk.ledger.create()  # a ledger that an older tool made has no place for it yet
    who, why = desk.person.actor, desk.person.reason
    _on_record(desk, wanted, rows_per_s)
    if wanted is Wanted.LIMIT:
        control.limit(desk.ledger, rows_per_s or None)
    else:
        control.ask(desk.ledger, control.RUN if wanted is Wanted.RESUME else wanted.value, who, why)
