"""Whether a worker could work now: the database lets it in, Prefect's API answers. Asks each once; needs no Prefect."""

from __future__ import annotations

import base64
import os
import ssl

from flows import login
from flows.login import AUTH, KEY
from steps.errors import RolloutError
from steps.mysql import Session
from steps.target import Target

API = "PREFECT_API_URL"
AUTHORITY, UNLOOKED = "PREFECT_API_SSL_CERT_FILE", "PREFECT_API_TLS_INSECURE_SKIP_VERIFY"
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
    Why Prefect's API at *address* does not work for us now, or None. One request of at most :data:`WITHIN_S`; redirects are not followed,
    since it bears our login.

    It counts the flows, for which Prefect needs its own database and takes us for somebody it knows; its health route needs neither.
    """
    import httpx  # noqa: PLC0415  # every command is started with this module beside it

    if not address.startswith(("http://", "https://")):
        return f"{API} is no http address"
    try:
        answer = httpx.post(f"{address.rstrip('/')}/flows/count", json={}, headers=_who(), timeout=WITHIN_S, verify=_authority())
        if answer.status_code == httpx.codes.UNAUTHORIZED:
            return f"it does not let us in: correct {AUTH}"
        if not answer.is_success:
            return f"it answers with {answer.status_code}"
        return None if type(answer.json()) is int else "it answers, but not as Prefect does"
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
        return str(error) or type(error).__name__


def _authority() -> ssl.SSLContext | bool:
    """Whom Prefect's own client would believe, by its settings."""
    if os.environ.get(UNLOOKED, "").lower() in ("1", "true", "yes", "on"):
        return False
    authority = os.environ.get(AUTHORITY)
    return ssl.create_default_context(cafile=authority) if authority else True


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
