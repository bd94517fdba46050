"""The options that commands share, each said once."""

from __future__ import annotations

import getpass
import os
from typing import Annotated

import typer

PlanName = Annotated[str, typer.Argument(metavar="PLAN", help="A plan folder, a plan file, or a shipped plan's name.")]
DatabaseUrl = Annotated[str | None, typer.Option("--database-url", help="mysql://USER:PASSWORD@HOST:PORT/DATABASE; better in "
                                                 "ROLLOUT_DATABASE_URL, since arguments can be seen by others.")]
Settings = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE",
                                                    help="Set a plan value by dotted key; keys of the plan table bare.")]
Accept = Annotated[list[str] | None, typer.Option("--accept", metavar="KEY", help="Acknowledge a finding by its key. Recorded.")]
EndBlockers = Annotated[bool, typer.Option("--end-blockers", help="End sessions that keep the table from a gap for longer than "
                                           "end_blockers_after_s (10 s). Each is recorded; heavy ones are spared.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask before starting. Does not confirm a manual deploy.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on stdout and nothing else there.")]
By = Annotated[str, typer.Option("--by", help="Who does this; recorded. The user's name by default.")]
Reason = Annotated[str, typer.Option("--reason", help="Why; recorded.")]
Because = Annotated[str, typer.Option("--reason", help="Why; recorded.", show_default=False)]
DeployedBy = Annotated[str | None, typer.Option("--deployed-by", metavar="NAME", help="Who confirms that a manual deploy, or its "
                                                "rollback, is done.")]
NoPrefect = Annotated[bool, typer.Option("--no-prefect", help="Do without Prefect; the audit trail is in the ledger all the same.")]
NO_REASON = "none given"


def whoami() -> str:
    """The user's name, or `unknown` where the system has none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return os.environ.get("USER", "unknown")
