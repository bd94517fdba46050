"""
`python -m flows.cli.automations`: install the automations of `deploy/automations/` on the configured Prefect server. Safe to repeat.

Where ROLLOUT_SLACK_URL or ROLLOUT_WEBHOOK_URL is set, its block is made or renewed first: addresses are neither arguments nor in files.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from flows import cockpit
from flows.cli.ending import ending
from flows.cli.options import Json
from steps.errors import RolloutError, Stopped

REQUEST_WITHIN_S = 10.0


def automations(write: Annotated[Path | None, typer.Option("--write", metavar="FOLDER", help="Write the files, install nothing.")] = None,
                within_s: Annotated[int | None, typer.Option("--within-s", min=45, max=86_400, metavar="S",
                                                             help="How long a run may be silent before it counts as dead.")] = None,
                as_json: Json = False) -> None:
    """Install the automations of deploy/automations on the configured Prefect server. Safe to repeat; what is switched off stays off."""
    with ending(as_json=as_json) as end:
        cockpit.prepare(quiet=True)
        from flows import api  # noqa: PLC0415  # importing Prefect takes seconds
        from flows import automations as files  # noqa: PLC0415

        try:
            made = files.blocks_made(os.environ)
            with api.client(REQUEST_WITHIN_S) as client:
                done = files.written(client, write, within_s) if write else files.install(client, within_s)
        except RolloutError:
            raise
        except Exception as trouble:  # noqa: BLE001  # whatever the cockpit's trouble is, it is told with the remedy
            raise Stopped(f"Prefect API {api.address() or 'of its local default'}", api.told(trouble),
                          "start it, or correct PREFECT_API_URL, then run the same command again") from None
        end.document |= {"outcome": "done", "blocks": made, **vars(done)}
        end.say(f"written to {write}" if write else f"made {len(done.made)}, brought up to date {len(done.renewed)}")
        for name in done.without:
            end.say(f"no block {name}: its notifications are left out")


if __name__ == "__main__":
    typer.run(automations)
