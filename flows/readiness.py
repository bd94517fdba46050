"""Whether a worker could work now: the database lets it in, Prefect's API answers. Asks each once; needs no Prefect."""

from __future__ import annotations

import json
import os
import urllib.request

from steps.errors import RolloutError
from steps.mysql import Session
from steps.target import Target

API = "PREFECT_API_URL"
WITHIN_S = 5


def database_trouble(database: Target) -> str | None:
    """Why *database* does not let us in now, or None. One session, opened and closed; at most about ten seconds."""
    try:
        Session(database, read_timeout_s=WITHIN_S).close()
    except RolloutError as error:
        return f"{error.subject}: {error.reason}"
    return None


def api_trouble(address: str) -> str | None:
    """Why Prefect's API at *address* does not answer its health route now, or None. One request of at most :data:`WITHIN_S`."""
    if not address.startswith(("http://", "https://")):
        return f"{API} is no http address"
    try:
        with urllib.request.urlopen(f"{address.rstrip('/')}/health", timeout=WITHIN_S) as answer:  # noqa: S310  # http, as looked at above
            return None if json.load(answer) is True else "it answers, but not as Prefect does"
    except (OSError, ValueError) as error:
        return str(getattr(error, "reason", None) or error)


def api_address() -> str | None:
    """The API that the environment names; a profile's is not looked at."""
    return os.environ.get(API)
