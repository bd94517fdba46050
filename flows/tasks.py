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
from contextlib import suppress
from typing import Any, TypeVar

import structlog
from prefect import allow_failure, states, task
from prefect.artifacts import create_markdown_artifact
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.context import FlowRunContext

from flows.progress_artifact import ProgressArtifact
from flows.report import phase_markdown
from flows.states import UNTOLD
from steps import cancellation
from steps.cancellation import Cancelled
from steps.errors import RolloutError
from steps.ledger import Event
from steps.masking import mask
from steps.rollout import Rollout
from steps.step import Step

T = TypeVar("T")
TELL_WITHIN_S = 5.0
LONGEST_ARTIFACT = 50_000
log: structlog.stdlib.BoundLogger = structlog.get_logger("rollout")


class CockpitTrouble(Exception):
    """Prefect would not let a task run; no fault of the database's or of ours."""


class PrefectConductor:
    """
    Each phase is a task, chained to the one before; its steps are tasks nested inside. Call only inside a flow run.

    `untold` says why an artifact could not be left; after that none is tried any more.
    """

    def __init__(self) -> None:
        self._before: State[Any] | None = None
        self.untold, self._recorded = "", False
        context = FlowRunContext.get()
        self.flow_run = str(context.flow_run.id) if context and context.flow_run else None

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
                self._on_record(name, rollout)

        self._chained(name, body)

    def task(self, name: str, run: Callable[[], T]) -> T:
        found: list[T] = []
        self._chained(name, lambda: found.append(run()))
        return found[0]

    def page(self, key: str, markdown: str) -> None:
        """Leave *markdown* as an artifact under *key*, best effort."""
        self._tell(key, markdown)

    def _chained(self, name: str, body: Callable[[], None]) -> None:
        """Run *body* as a task that waits for the one before, so that the run graph shows the chain."""
        # A failed phase is followed by its way back, which must run all the same.
        self._before = _as_task(name, body, wait_for=[allow_failure(self._before)] if self._before else [])

    def _step(self, step: Step) -> None:
        cancellation.edge()
        outcome: list[str] = []
        _as_task(step.name, lambda: outcome.append(step.run().value))
        log.info("step ended", step=step.name, outcome=outcome[0])

    def _tell(self, key: str, markdown: str) -> None:
        """Leave an artifact, best effort: a dead API may cost a few seconds once, never the rollout."""
        if self.untold:
            return
        context = contextvars.copy_context()
        trouble = [f"no answer within {TELL_WITHIN_S:g} s"]

        def tell() -> None:
            try:
                create_markdown_artifact(mask(markdown)[:LONGEST_ARTIFACT], key=re.sub(r"[^a-z0-9]+", "-", key.lower()).strip("-"))
                trouble.clear()
            except Exception as error:  # noqa: BLE001  # whatever the cockpit's trouble is, it is not the database's
                trouble[:] = [type(error).__name__]

        thread = threading.Thread(target=lambda: context.run(tell), daemon=True)
        thread.start()
        thread.join(TELL_WITHIN_S)
        self.untold = "; ".join(trouble)
        if self.untold:
            log.warning("Prefect could not be told", reason=self.untold)


    def _on_record(self, name: str, rollout: Rollout) -> None:
        """Once: what Prefect missed is told later, by `rollout report --sync`."""
        if self.untold and not self._recorded:
            self._recorded = True
            with suppress(RolloutError):  # what ends the phase matters more
                rollout.record(Event(name.rpartition(" ")[2], "Prefect", UNTOLD, detail={"why": self.untold}))


def _as_task(name: str, body: Callable[[], None], wait_for: list[Any] | None = None) -> State[Any]:
    """
    Run *body* as a task; its errors come out as they are, and one that was cancelled shows as Cancelled, not as crashed.

    Raises:
        CockpitTrouble: Prefect ended the task otherwise.
    """
    raised: list[BaseException] = []

    def guarded() -> State[Any] | None:
        try:
            body()
        except Cancelled as cancelled:
            raised.append(cancelled)
            return states.Cancelled(message=str(cancelled))
        except BaseException as caught:
            raised.append(caught)
            raise
        return None

    made = task(name=name, task_run_name=lambda: name, cache_policy=NO_CACHE, persist_result=False, retries=0)(guarded)
    try:
        state: State[Any] = made(wait_for=wait_for or [], return_state=True)
    except Exception as trouble:
        raise CockpitTrouble(f"Prefect could not run task {name}: {type(trouble).__name__}") from trouble
    if raised:
        raise raised[0]
    if not state.is_completed():
        raise CockpitTrouble(f"Prefect ended task {name} as {state.name}: {state.message}")
    return state
