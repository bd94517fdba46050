"""
Leaving artifacts with Prefect, best effort: a dead API may cost a few seconds once, never the rollout.

The first one that cannot be left is the last one tried; `untold` says why, and `rollout report PLAN --sync` tells it all later.
"""

from __future__ import annotations

import contextvars
import json
import re
import threading
from collections.abc import Callable
from enum import Enum
from typing import Any
from uuid import UUID

import structlog
from prefect.artifacts import create_markdown_artifact, create_table_artifact
from prefect.client.schemas.actions import ArtifactUpdate
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterFlowRunId
from prefect.client.schemas.objects import Artifact
from prefect.context import FlowRunContext

from flows import api
from flows.markdown import words
from steps.masking import mask, masked

TELL_WITHIN_S = 5.0
LONGEST_KEY, MOST = 200, 200
LONGEST_DESCRIPTION = 500
log: structlog.stdlib.BoundLogger = structlog.get_logger("rollout")


def key_of(*parts: str) -> str:
    """A key as Prefect takes it: small letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", "-".join(parts).lower()).strip("-")[:LONGEST_KEY].rstrip("-") or "rollout"


class Again(Enum):
    """What becomes of a key that this flow run has left before: it was suspended then, and goes on now."""

    BESIDE = "one more"
    KEEP = "the first stays"
    RENEW = "the first is brought up to date"


class Artifacts:
    """Of one flow run. *left* has the id of each page by its key, as far as Prefect told it."""

    def __init__(self) -> None:
        self.untold = ""
        self.left: dict[str, UUID] = {}
        self._before: dict[str, UUID] | None = None

    def known(self) -> dict[str, UUID]:
        """What the flow run has left so far, also before it was suspended: that is asked once, and left out where Prefect cannot say."""
        context = FlowRunContext.get()
        if self._before is None and context and context.flow_run and not self.untold:
            self._before = _left_by(context.flow_run.id)
        return (self._before or {}) | self.left

    def page(self, key: str, make: Callable[[], tuple[str, str]], again: Again = Again.BESIDE) -> None:
        """
        A page of Markdown with a line that describes it, as *make* makes them here and now, in the caller's thread.

        Its maker keeps it short (:class:`flows.markdown.Page`). Whatever goes wrong in making it is logged and stops nothing.
        """
        if self.untold:
            return
        try:
            markdown, description = make()
        except Exception as error:  # noqa: BLE001  # the same: what ends the phase matters more than its page
            log.warning("a page could not be made", key=key, reason=type(error).__name__)
            return
        text, line = mask(markdown), _short(description)
        self._leave(key, lambda: create_markdown_artifact(text, key=key, description=line), again,
                    ArtifactUpdate(data=text, description=line))

    def table(self, key: str, rows: list[dict[str, str]], description: str, again: Again = Again.BESIDE) -> None:
        """A table that can be searched in the UI; its columns are those of the first row, its long cells are cut by the UI."""
        shown: Any = masked(rows)
        line = _short(description)
        self._leave(key, lambda: create_table_artifact(shown, key=key, description=line), again,
                    ArtifactUpdate(data=json.dumps(shown), description=line))

    def _leave(self, key: str, create: Callable[[], Any], again: Again, renewed: ArtifactUpdate) -> None:
        if self.untold:
            return
        context = contextvars.copy_context()
        trouble = [f"no answer within {TELL_WITHIN_S:g} s"]

        def tell() -> None:
            try:
                found = None if again is Again.BESIDE else self.known().get(key)
                if found and again is Again.RENEW:
                    with api.client(TELL_WITHIN_S) as client:
                        client.update_artifact(found, renewed)
                found = found or create()
                if isinstance(found, UUID):
                    self.left[key] = found
                trouble.clear()
            except Exception as error:  # noqa: BLE001  # whatever the cockpit's trouble is, it is not the database's
                trouble[:] = [type(error).__name__]

        thread = threading.Thread(target=lambda: context.run(tell), daemon=True)
        thread.start()
        thread.join(TELL_WITHIN_S)
        self.untold = "; ".join(trouble)
        if self.untold:
            log.warning("Prefect could not be told", reason=self.untold)


def _left_by(flow_run: UUID) -> dict[str, UUID]:
    """The latest artifact of that flow run by key; empty where Prefect cannot say within :data:`TELL_WITHIN_S`."""
    mine = ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=[flow_run]))
    try:
        with api.client(TELL_WITHIN_S) as client:
            found: list[Artifact] = client.read_artifacts(artifact_filter=mine, limit=MOST)
    except Exception as trouble:  # noqa: BLE001  # whatever the cockpit's trouble is, links are left out
        log.warning("Prefect did not say what the run has left", reason=api.told(trouble))
        return {}
    return {str(one.key): one.id for one in sorted(found, key=lambda one: str(one.created))}


def _short(description: str) -> str | None:
    """The UI reads it as Markdown too."""
    return words(description, LONGEST_DESCRIPTION) or None
