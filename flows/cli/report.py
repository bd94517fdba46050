"""`rollout report`: the audit trail."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from flows import actions, cockpit, standing
from flows import report as reports
from flows.cli.ending import Ending, ending
from flows.cli.options import NO_REASON, DatabaseUrl, Json, PlanName, Settings, whoami
from flows.params import Request
from steps.errors import WrongUsage
from steps.masking import mask
from steps.rollout import Rollout
from steps.target import target_of


def report(plan: PlanName, database_url: DatabaseUrl = None, settings: Settings = None,
           html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write one self-contained HTML file.")] = None,
           sync: Annotated[bool, typer.Option("--sync", help="Tell the configured Prefect API every run that it missed.")] = False,
           as_json: Json = False) -> None:
    """Who ran which SQL on which table when, how long it took, how many rows, how it ended."""
    with ending(as_json=as_json) as end:
        request = Request(plan=plan, by=whoami(), reason=NO_REASON, settings=settings or [])
        with actions.desk(request, target_of(database_url)) as desk:
            trail = reports.whole(desk)
            end.document |= trail
            if html:
                _write(html, desk, trail)
                end.say(f"written to {html}")
            if sync:
                _sync(desk, trail, end)
        if not as_json and not html and not sync:
            end.say(reports.text(trail) if trail["runs"] else "nothing is on record")


def _write(file: Path, desk: Rollout, trail: dict[str, Any]) -> None:
    """
    Raises:
        WrongUsage: the file cannot be written.
    """
    from flows import report_page  # noqa: PLC0415  # Jinja is for this alone, and every command would wait for it

    try:
        file.write_text(mask(report_page.page(trail, desk)), encoding="utf-8")
    except OSError as error:
        raise WrongUsage(f"--html {file}", f"cannot be written: {error.strerror}", "name another file") from None


def _sync(desk: Rollout, trail: dict[str, Any], end: Ending) -> None:
    """Raises Stopped when the API cannot be told; what it heard before that is not told again."""
    cockpit.prepare(quiet=True)
    from flows import telling  # noqa: PLC0415  # importing Prefect takes seconds

    owner = standing.owner(desk)
    summary = telling.sync(trail, at_work=bool(owner and owner["alive"] and owner["plan"] == desk.plan.id))
    end.document["prefect"] = summary.to_json()
    end.say(summary.text())
