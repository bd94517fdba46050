"""Whether a worker could work now: the database lets it in, Prefect's API answers. Asks each once; needs no Prefect."""

from __future__ import annotations

import base64
import json
import os
import urllib.error
import urllib.request

from flows import login
from flows.login import AUTH, KEY
from steps.errors import RolloutError
from steps.mysql import Session
from steps.target import Target

API = "PREFECT_API_URL"
UNAUTHORIZED = 401
WITHIN_S = 5


def database_trouble(database: Target) -> str | None:
    """Why *database* does not let us in now, or None. One session, opened and closed; at most about ten seconds."""
    try:
        Session(database, read_timeout_s=WITHIN_S).close()
    except RolloutError as error:
        return f"{error.subject}: {error.reason}"
    return None


def api_trouble(address: str) -> str | None:
    """
    Why Prefect's API at *address* does not work for us now, or None. One request of at most :data:`WITHIN_S`.

    It counts the flows, for which Prefect needs its own database and takes us for somebody it knows; its health route needs neither.
    """
    if not address.startswith(("http://", "https://")):
        return f"{API} is no http address"
    asked = urllib.request.Request(f"{address.rstrip('/')}/flows/count", b"{}", {"Content-Type": "application/json", **_who()})  # noqa: S310  # http, see above
    try:
        with urllib.request.urlopen(asked, timeout=WITHIN_S) as answer:  # noqa: S310  # the same
            return None if type(json.load(answer)) is int else "it answers, but not as Prefect does"
    except urllib.error.HTTPError as error:
        return f"it does not let us in: correct {AUTH}" if error.code == UNAUTHORIZED else f"it answers with {error.code}"
    except (OSError, ValueError) as error:
        return str(getattr(error, "reason", None) or error)


def _who() -> dict[str, str]:
    """The header by which Prefect's own client would be known."""
    login.take()
    if key := os.environ.get(KEY):
        return {"Authorization": f"Bearer {key}"}
    if words := os.environ.get(AUTH):
        return {"Authorization": f"Basic {base64.b64encode(words.encode()).decode()}"}
    return {}


def api_address() -> str | None:
    """The API that the environment names; a profile's is not looked at."""
    return os.environ.get(API)
