"""
The one place where steps become Prefect tasks: names, caching, tags and artifacts. Ledger first, Prefect second.

No retries here: the engine looks before it acts, and waits by itself. Every task has NO_CACHE and no persisted result.
A dead Prefect API never stops database work: what cannot be told within a few seconds is left to the ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import structlog
from prefect import allow_failure, states, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.context import FlowRunContext, TagsContext

from flows import phase_facts, run_pages
from flows.artifacts import Again, Artifacts, key_of
from flows.events import phase_told
from flows.progress_artifact import ProgressArtifact
from flows.states import UNTOLD
from steps import cancellation
from steps.cancellation import Cancelled
from steps.checks import Finding
from steps.errors import FindingsRefused, RolloutError, WaitingForPerson
from steps.ledger import Event
from steps.phase import Phase
from steps.rollout import Rollout
from steps.step import Step

T = TypeVar("T")
NAMES = [phase_facts.phase_name(phase, direction) for phase in Phase for direction in ("forward", "back")]
log: structlog.stdlib.BoundLogger = structlog.get_logger("rollout")


class PrefectConductor:
    """
    Each phase is a task, chained to the one before; its steps are tasks nested inside. Call only inside a flow run.

    `untold` says why an artifact could not be left, or a task not made; after that none is tried any more. Where Prefect lets no task run,
    the same is done without one.
    """

    def __init__(self) -> None:
        self._before: State[Any] | None = None
        self._makes_tasks = True
        self.artifacts, self._recorded = Artifacts(), False
        self._failed = ""
        context = FlowRunContext.get()
        self.flow_run = str(context.flow_run.id) if context and context.flow_run else None

    @property
    def untold(self) -> str:
        return self.artifacts.untold

    @untold.setter
    def untold(self, why: str) -> None:
        self.artifacts.untold = why

    def phase(self, name: str, steps: list[Step], rollout: Rollout) -> None:
        """One task per phase, with an artifact that tells what was done; errors come out as they are."""
        heard: list[Event] = []
        because = self._failed if name.startswith(run_pages.BACK) else ""

        def body() -> None:
            rollout.listeners.append(heard.append)
            told, rollout.told = rollout.told, ProgressArtifact(f"{rollout.plan.id}-{name}", rollout.told)
            error = ""
            try:
                for step in steps:
                    self._step(step)
            except BaseException as caught:
                error = str(caught) or type(caught).__name__
                if isinstance(caught, WaitingForPerson):
                    error = f"{phase_facts.WAITS}: {error}"
                else:
                    self._failed = self._failed or f"{name}: {error}"
                raise
            finally:
                rollout.listeners.remove(heard.append)
                rollout.told = told
                self.artifacts.page(key_of(rollout.plan.id, name), lambda: run_pages.of_phase(name, rollout, heard, error, because))
                self._on_record(name, rollout)

        with phase_told(name, rollout):
            self._chained(name, body)

    def task(self, name: str, run: Callable[[], T]) -> T:
        found: list[T] = []
        self._chained(name, lambda: found.append(run()))
        return found[0]

    def _chained(self, name: str, body: Callable[[], None]) -> None:
        """Run *body* as a task that waits for the one before, so that the run graph shows the chain."""
        # A failed phase is followed by its way back, which must run all the same.
        self._before = self._as_task(name, body, wait_for=[allow_failure(self._before)] if self._before else [])

    def _step(self, step: Step) -> None:
        cancellation.edge()
        outcome: list[str] = []
        self._as_task(step.name, lambda: outcome.append(step.run().value))
        log.info("step ended", step=step.name, outcome=outcome[0])

    @contextmanager
    def shown(self, rollout: Rollout, verb: str) -> Iterator[None]:
        """At the end a `summary` page; where findings refused the run, they as a table."""
        code, ending = 0, "done"
        try:
            yield
        except BaseException as error:
            code, ending = getattr(error, "exit_code", 1), str(error) or type(error).__name__
            if isinstance(error, FindingsRefused):
                self._findings(rollout, run_pages.of_findings(error.findings, rollout.accepted))
            raise
        finally:
            left = self.artifacts.known()
            links = {name: f"../artifact/{found}" for name in NAMES if (found := left.get(key_of(rollout.plan.id, name)))}
            self.artifacts.page(key_of(rollout.plan.id, "summary"), lambda: run_pages.of_run(rollout, verb, code, ending, links),
                                Again.RENEW)

    def planned(self, rollout: Rollout, phases: Sequence[Phase], findings: Sequence[Finding], *, back: bool = False) -> None:
        """A `plan` page with all that will happen, and the findings as a table that can be searched."""
        rows = run_pages.of_findings(findings, rollout.accepted)
        self.artifacts.page(key_of(rollout.plan.id, "plan"), lambda: run_pages.of_plan(rollout, phases, rows, back=back),
                            Again.KEEP)
        self._findings(rollout, rows)

    def _findings(self, rollout: Rollout, rows: list[dict[str, str]]) -> None:
        if rows:
            told = f"{len(rows)} findings of the checks before this run. Table {rollout.schema}.{rollout.table}"
            self.artifacts.table(key_of(rollout.plan.id, "findings"), rows, told, Again.RENEW)

    def _on_record(self, name: str, rollout: Rollout) -> None:
        """Once: what Prefect missed is told later, by `rollout report --sync`."""
        if self.untold and not self._recorded:
            self._recorded = True
            with suppress(RolloutError):  # what ends the phase matters more
                rollout.record(Event(name.rpartition(" ")[2], "Prefect", UNTOLD, detail={"why": self.untold}))

    def _as_task(self, name: str, body: Callable[[], None], wait_for: list[Any] | None = None) -> State[Any] | None:
        """
        Run *body*, once, as a task; its errors come out as they are, and one that was cancelled shows as Cancelled, not as crashed.

        Where Prefect ends the task before *body* has begun, *body* is run all the same; whatever Prefect makes of it then or afterwards
        is told as `untold`.
        """
        raised: list[BaseException] = []
        began: list[bool] = []

        def guarded() -> State[Any] | None:
            began.append(True)
            return _heeded(body, raised)

        state: State[Any] | None = None
        if self._makes_tasks:
            made = task(name=name, task_run_name=lambda: name, cache_policy=NO_CACHE, persist_result=False, retries=0)(guarded)
            try:
                with TagsContext(current_tags=set()):  # for one with tags Prefect asks its API for a slot, and ends it where that is away
                    state = made(wait_for=wait_for or [], return_state=True)
            except Exception as trouble:  # noqa: BLE001  # whatever the cockpit's trouble is, it is not the database's
                self._fell_out(f"could not run task {name}: {type(trouble).__name__}")
            else:
                if not raised and not state.is_completed():
                    self._fell_out(f"ended task {name} as {state.name}: {state.message}")
        if raised:
            raise raised[0]
        if not began:
            body()
        return state

    def _fell_out(self, why: str) -> None:
        self._makes_tasks, self.untold = False, f"Prefect {why}"
        log.warning("goes on without Prefect's tasks", reason=self.untold)


def _heeded(body: Callable[[], None], raised: list[BaseException]) -> State[Any] | None:
    """Run *body*; what it raises is kept, and shows as what it is: somebody's wish to stop, a wait for a person, or a failure."""
    try:
        body()
    except Cancelled as cancelled:
        raised.append(cancelled)
        return states.Cancelled(message=str(cancelled))
    except WaitingForPerson as waiting:
        raised.append(waiting)
        return states.Cancelled(name="Waiting", message=str(waiting))  # no failure, and not done
    except BaseException as caught:
        raised.append(caught)
        raise
    return None
