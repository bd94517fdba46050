"""Whether Prefect's API can be told anything now. Asked once, for a few seconds, before a run begins with it."""

from __future__ import annotations

from flows import cockpit

cockpit.prepare()

from prefect.client.orchestration import SyncPrefectClient, get_client  # noqa: E402  # only after the settings above
from prefect.settings import PREFECT_API_URL, PREFECT_CLIENT_MAX_RETRIES, temporary_settings  # noqa: E402

ASK_WITHIN_S = 3.0


class CockpitTrouble(Exception):
    """Prefect would not do what it was asked; no fault of the database's or of ours."""


def address() -> str | None:
    """The configured API; None where there is none, and Prefect starts its own local default at need."""
    found = PREFECT_API_URL.value()
    return str(found) if found else None


def why_not() -> str | None:
    """Why the configured API cannot be told anything now, or None. One request of at most :data:`ASK_WITHIN_S`."""
    if not address():
        return None
    with temporary_settings({PREFECT_CLIENT_MAX_RETRIES: 0}), client(ASK_WITHIN_S) as asked:
        trouble = asked.api_healthcheck()
    return told(trouble) if trouble else None


def client(timeout_s: float) -> SyncPrefectClient:
    """A client whose requests last no longer than *timeout_s* each."""
    return get_client(httpx_settings={"timeout": timeout_s}, sync_client=True)


def told(trouble: BaseException) -> str:
    """*trouble* with the API in a few words, without the page that a proxy may have sent."""
    return (str(trouble).strip() or type(trouble).__name__).splitlines()[0][:200]
