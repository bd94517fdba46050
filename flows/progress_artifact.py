"""
Progress as Prefect progress artifacts: of a pass, one a phase; of a soak, one a plan. Best effort: a slow API never holds up a chunk.

The UI shows "Progress: N %" and the description under it (3.9.1).
"""

from __future__ import annotations

import contextvars
import math
import threading
from collections.abc import Callable
from datetime import datetime
from uuid import UUID

import structlog
from prefect.artifacts import create_progress_artifact, update_progress_artifact

from flows.artifacts import TELL_WITHIN_S, key_of
from flows.markdown import words
from flows.visible import duration
from steps import passing, waits
from steps.pace import Progress

EVERY_S, NEARLY = 5.0, 99.0
LAST_WITHIN_S = 1.0
log: structlog.stdlib.BoundLogger = structlog.get_logger("rollout")


class _Kept:
    """One artifact, made when it is first told and overwritten after that, each time from a thread; gives up at the first trouble."""

    def __init__(self, key: str) -> None:
        self.key = key
        self._id: UUID | None = None
        self._telling: threading.Thread | None = None
        self._gave_up = False

    @property
    def busy(self) -> bool:
        return self._gave_up or bool(self._telling and self._telling.is_alive())

    def tell(self, percent: float, description: str, wait_s: float = 0.0) -> None:
        """
        Tell it, waiting for that at most *wait_s*; nothing while the last one is still on its way, for which *wait_s* is waited, too.

        *percent* is told to one decimal, and never as more than it is: 100 is what is over.
        """
        if self._telling and wait_s:
            self._telling.join(wait_s)
        if self.busy:
            return
        context = contextvars.copy_context()
        told = math.floor(10 * percent) / 10
        self._telling = threading.Thread(target=lambda: context.run(self._tell, told, words(description, 1000)), daemon=True)
        self._telling.start()
        self._telling.join(wait_s)

    def _tell(self, percent: float, description: str) -> None:
        try:
            if self._id is None:
                found = create_progress_artifact(percent, key=self.key, description=description)
                self._id = found if isinstance(found, UUID) else None
            else:
                update_progress_artifact(self._id, percent, description=description)
        except Exception as error:  # noqa: BLE001  # whatever the cockpit's trouble is, it is not the database's
            self._gave_up = True
            log.warning("Prefect could not be told", reason=type(error).__name__)


class ProgressArtifact:
    """Of a pass: call it with each progress; it tells Prefect now and then."""

    def __init__(self, key: str, then: Callable[[Progress], None]) -> None:
        self.then, self._kept = then, _Kept(key_of(key, "progress"))
        self._told_s = float("-inf")
        self._paused = False

    def __call__(self, progress: Progress) -> None:
        self.then(progress)
        hurry = progress.ended or bool(progress.paused_for) != self._paused
        if not progress.ended and (self._kept.busy or (waits.now_s() - self._told_s < EVERY_S and not hurry)):
            return
        self._told_s, self._paused = waits.now_s(), bool(progress.paused_for)
        percent = 100.0 if progress.ended else min(100.0, 100 * progress.rows_examined / max(1, progress.rows_estimated))
        self._kept.tell(percent, passing.line(progress), LAST_WITHIN_S if progress.ended else 0.0)


def tell_soak(plan: str, began: datetime, due: datetime, now: datetime, parity: str = "", *, lost: bool = False) -> float:
    """
    How much of a soak from *began* to *due* is over by *now*, in per cent, told as the plan's progress artifact `…-soak-progress`.

    For a gate that waits or a parity watch, inside a flow or outside; safe to repeat, each call is the latest version under its key.
    *parity* is what the last look found. All three times by one clock. Takes up to :data:`TELL_WITHIN_S` and never raises.
    """
    whole_s = (due - began).total_seconds()
    percent = 100.0 if whole_s <= 0 else min(100.0, max(0.0, 100 * (now - began).total_seconds() / whole_s))
    percent = min(percent, NEARLY) if lost else percent
    left_s = (due - now).total_seconds()
    left = f"{duration(left_s)} of {duration(whole_s)} left, over at" if left_s > 0 else "over since"
    told = f"soak of {plan}: " + ("not over while parity is lost" if lost else f"{left} {due:%Y-%m-%d %H:%M} UTC")
    _Kept(key_of(plan, "soak-progress")).tell(percent, told + (f"; {parity}" if parity else ""), TELL_WITHIN_S)
    return percent
