"""
The one place where steps become Prefect tasks: names, caching, tags and artifacts. Ledger first, Prefect second.

No retries here: the engine looks before it acts, and waits by itself. Every task has NO_CACHE and no persisted result.
A dead Prefect API never stops database work: what cannot be told within a few seconds is left to the ledger.
"""

from __future__ import annotations

import contextvars
import re
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import structlog
from prefect import allow_failure, task
from prefect.artifacts import create_markdown_artifact
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State

from flows.progress_artifact import ProgressArtifact
from flows.report import phase_markdown
from steps.ledger import Event
from steps.masking import mask
from steps.rollout import Rollout
from steps.step import Step

T = TypeVar("T")
TELL_WITHIN_S = 5.0
LONGEST_ARTIFACT = 50_000
log: structlog.stdlib.BoundLogger = structlog.get_logger("rollout")


class PrefectConductor:
    """Each phase is a task, chained to the one before; its steps are tasks nested inside. Call only inside a flow run."""

    def __init__(self) -> None:
        self._before: State[Any] | None = None
        self._cockpit_is_up = True

    def phase(self, name: str, steps: list[Step], rollout: Rollout) -> None:
        """One task per phase, with an artifact that tells what was done; errors come out as they are."""
        events: list[Event] = []

        def body() -> None:
            rollout.listeners.append(events.append)
            told, rollout.told = rollout.told, ProgressArtifact(f"{rollout.plan.id}-{name}", rollout.told)
            try:
                for step in steps:
                    self._step(step)
            finally:
                rollout.listeners.remove(events.append)
                rollout.told = told
                self._tell(f"{rollout.plan.id}-{name}", phase_markdown(name, rollout, events))

        self._chained(name, body)

    def task(self, name: str, run: Callable[[], T]) -> T:
        found: list[T] = []
        self._chained(name, lambda: found.append(run()))
        return found[0]

    def _chained(self, name: str, body: Callable[[], None]) -> None:
        """Run *body* as a task that waits for the one before, so that the run graph shows the chain."""
        error: list[BaseException] = []

        def guarded() -> None:
            try:
                body()
            except BaseException as caught:
                error.append(caught)
                raise

        made = task(name=name, task_run_name=lambda: name, cache_policy=NO_CACHE, persist_result=False, retries=0)(guarded)
        # A failed phase is followed by its way back, which must run all the same.
        self._before = made(wait_for=[allow_failure(self._before)] if self._before else [], return_state=True)
        if error:
            raise error[0]
        if not self._before.is_completed():
            raise RuntimeError(f"Prefect ended task {name} as {self._before.name}: {self._before.message}")

    def _step(self, step: Step) -> None:
        made = task(name=step.name, task_run_name=lambda: step.name, cache_policy=NO_CACHE, persist_result=False,
                    retries=0)(lambda: step.run().value)
        outcome = made()
        log.info("step ended", step=step.name, outcome=outcome)

    def _tell(self, key: str, markdown: str) -> None:
        """Leave an artifact, best effort: a dead API may cost a few seconds once, never the rollout."""
        if not self._cockpit_is_up:
            return
        context = contextvars.copy_context()
        told = threading.Event()

        def tell() -> None:
            try:
                create_markdown_artifact(mask(markdown)[:LONGEST_ARTIFACT], key=re.sub(r"[^a-z0-9]+", "-", key.lower()).strip("-"))
                told.set()
            except Exception as error:  # noqa: BLE001  # whatever the cockpit's trouble is, it is not the database's
                log.warning("Prefect could not be told", reason=type(error).__name__)

        thread = threading.Thread(target=lambda: context.run(tell), daemon=True)
        thread.start()
        thread.join(TELL_WITHIN_S)
        self._cockpit_is_up = told.is_set()
