"""`python -m flows.demo.traffic`: one generation's clients, for a deploy command or for :class:`Fleet`."""

import argparse
import os
from collections.abc import Mapping
from pathlib import Path

from flows.demo.traffic.generations import GENERATIONS
from flows.demo.traffic.process import URL_NAME, Cast, Settings, run


def main(casts: Mapping[str, Cast] | None = None) -> None:
    """Read the arguments and run until told to end; *casts*, by generation, say who plays, else `--clients` take the roles in turn."""
    parser = argparse.ArgumentParser(prog="python -m flows.demo.traffic", description=__doc__)
    add = parser.add_argument
    add("--generation", choices=[*GENERATIONS], required=True)
    add("--clients", type=int, default=6)
    add("--rate", type=float, default=40, help="requests per second, of all clients together")
    add("--url-env", default=URL_NAME, help="name of the environment variable that holds the database URL")
    add("--report", type=Path, required=True, metavar="FOLDER/v0-NAME.report", help="JSON lines; its journal is beside")
    add("--control", type=Path, required=True, help="holds the phase label; CONTROL.stop.GENERATION ends the run")
    add("--health-file", type=Path, help="touched once every client has had a success")
    add("--seconds", type=float, default=900, help="ends by itself after so long")
    add("--watch-pid", type=int, default=os.getppid(), help="ends when this process is gone; 0 for none")
    add("--application", metavar="URL", help="ask the application there, instead of the database")
    add("--stack", default="", help="what that application is made of, for the report")
    given = parser.parse_args()
    url = os.environ.get(given.url_env)
    if not url:
        parser.error(f"{given.url_env} is not set")
    settings = Settings(
        url, given.generation, given.report, given.control, given.health_file, max(1, given.clients),
        max(0.1, given.rate), given.seconds, given.watch_pid, given.application, given.stack,
    )  # fmt: skip
    run(settings, casts[given.generation] if casts else None)


if __name__ == "__main__":
    main()
