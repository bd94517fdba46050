"""A pass's progress as one Prefect progress artifact a phase, best effort: a slow or dead API never holds up a chunk."""

from __future__ import annotations

import contextvars
import re
import threading
from collections.abc import Callable
from uuid import UUID

import structlog
from prefect.artifacts import create_progress_artifact, update_progress_artifact

from steps import passing, waits
from steps.pace import Progress

EVERY_S = 5.0
log: structlog.stdlib.BoundLogger = structlog.get_logger("rollout")


class ProgressArtifact:
    """Call it with each progress; it tells Prefect now and then, from a thread of its own, and gives up at the first trouble."""

    def __init__(self, key: str, then: Callable[[Progress], None]) -> None:
        self.key, self.then = re.sub(r"[^a-z0-9]+", "-", f"{key}-progress".lower()).strip("-"), then
        self._id: UUID | None = None
        self._told_s = float("-inf")
        self._telling: threading.Thread | None = None
        self._gave_up = self._paused = False

    def __call__(self, progress: Progress) -> None:
        self.then(progress)
        hurry = progress.ended or bool(progress.paused_for) != self._paused
        if self._gave_up or (self._telling and self._telling.is_alive()) or (waits.now_s() - self._told_s < EVERY_S and not hurry):
            return
        self._told_s, self._paused = waits.now_s(), bool(progress.paused_for)
        context = contextvars.copy_context()
        self._telling = threading.Thread(target=lambda: context.run(self._tell, progress), daemon=True)
        self._telling.start()

    def _tell(self, progress: Progress) -> None:
        percent = min(100.0, 100 * progress.rows_examined / max(1, progress.rows_estimated))
        try:
            if self._id is None:
                found = create_progress_artifact(percent, key=self.key, description=passing.line(progress))
                self._id = found if isinstance(found, UUID) else None
            else:
                update_progress_artifact(self._id, percent, description=passing.line(progress))
        except Exception as error:  # noqa: BLE001  # whatever the cockpit's trouble is, it is not the database's
            self._gave_up = True
            log.warning("Prefect could not be told", reason=type(error).__name__)
