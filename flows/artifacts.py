"""
Leaving artifacts with Prefect, best effort: a dead API may cost a few seconds once, never the rollout.

The first one that cannot be left is the last one tried; `untold` says why, and `rollout report PLAN --sync` tells it all later.
"""

from __future__ import annotations

import contextvars
import re
import threading
from collections.abc import Callable
from typing import Any
from uuid import UUID

import structlog
from prefect.artifacts import create_markdown_artifact, create_table_artifact

from flows.markdown import words
from steps.masking import mask, masked

TELL_WITHIN_S = 5.0
LONGEST_KEY = 200
LONGEST_DESCRIPTION = 500
log: structlog.stdlib.BoundLogger = structlog.get_logger("rollout")


def key_of(*parts: str) -> str:
    """A key as Prefect takes it: small letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", "-".join(parts).lower()).strip("-")[:LONGEST_KEY].rstrip("-") or "rollout"


class Artifacts:
    """Of one flow run. *left* has the id of each page by its key, as far as Prefect told it."""

    def __init__(self) -> None:
        self.untold = ""
        self.left: dict[str, UUID] = {}

    def page(self, key: str, make: Callable[[], tuple[str, str]]) -> None:
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
        self._leave(key, lambda: create_markdown_artifact(mask(markdown), key=key, description=_short(description)))

    def table(self, key: str, rows: list[dict[str, str]], description: str) -> None:
        """A table that can be searched in the UI; its columns are those of the first row, its long cells are cut by the UI."""
        shown: Any = masked(rows)
        self._leave(key, lambda: create_table_artifact(shown, key=key, description=_short(description)))

    def _leave(self, key: str, create: Callable[[], Any]) -> None:
        if self.untold:
            return
        context = contextvars.copy_context()
        trouble = [f"no answer within {TELL_WITHIN_S:g} s"]

        def tell() -> None:
            try:
                found = create()
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


def _short(description: str) -> str | None:
    """The UI reads it as Markdown too."""
    return words(description, LONGEST_DESCRIPTION) or None
