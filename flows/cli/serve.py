"""`rollout serve`: all flows as Prefect deployments, to be triggered in the UI."""

from __future__ import annotations

from flows import cockpit
from flows.cli.ending import ending
from steps.errors import WrongUsage


def serve() -> None:
    """Serve all flows as Prefect deployments, to be triggered in the UI, until SIGTERM or Ctrl-C."""
    try:
        cockpit.prepare(quiet=True)  # a flow whose console is gone with a killed server would end at its next line
    except WrongUsage:
        with ending(as_json=False):
            raise
    from flows import served  # noqa: PLC0415  # importing Prefect takes seconds

    served.serve()
