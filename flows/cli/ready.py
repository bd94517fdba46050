"""`rollout ready`: whether the database and Prefect's API answer; what a container's health check runs."""

from __future__ import annotations

from flows import readiness
from flows.cli.ending import ending
from flows.cli.options import DatabaseUrl, Json
from steps.errors import Stopped, WrongUsage
from steps.target import is_given, target_of


def ready(database_url: DatabaseUrl = None, as_json: Json = False) -> None:
    """
    Ask the database and Prefect's API, each where one is named: exit 0 when they answer, 4 when one does not.

    For a worker's health check. Databases in Secret blocks are not asked: nothing says which.
    """
    with ending(as_json=as_json) as end:
        address = readiness.api_address()
        database = target_of(database_url) if database_url or is_given() else None
        if not (address or database):
            raise WrongUsage("ready", "was given neither a database nor an API", f"set {readiness.API} or ROLLOUT_DATABASE_URL")
        trouble = {}
        if database:
            trouble["database"] = readiness.database_trouble(database)
        if address:
            trouble["prefect"] = readiness.api_trouble(address)
        end.document |= {"trouble": trouble}
        for name, why in trouble.items():
            end.say(f"{name}: {why or 'answers'}")
        silent = [name for name, why in trouble.items() if why]
        if silent:
            raise Stopped(" and ".join(silent), "no answer, or none that lets us work", "start it, or correct its address")
