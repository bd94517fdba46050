"""
Who calls the steps. The runbook says what comes after what; a conductor says where it shows.

:class:`PlainConductor` just calls them; :class:`flows.tasks.PrefectConductor` makes each phase and step a Prefect task.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol, TypeVar

from steps import cancellation
from steps.checks import Finding
from steps.phase import Outcome, Phase
from steps.rollout import Rollout
from steps.step import Step

T = TypeVar("T")


class PhaseModule(Protocol):
    """What every phase's module in `steps/` offers."""

    PHASE: Phase

    def is_done(self, rollout: Rollout) -> bool: ...

    def steps(self, rollout: Rollout) -> list[Step]: ...


class Conductor(Protocol):
    """Calls a phase's steps in order; the first error ends it. Before each step is an edge, where a cancelled run stops."""

    flow_run: str | None
    """Prefect's name for this run, where it has one; into the ledger, so that nothing is told twice."""

    def phase(self, name: str, steps: list[Step], rollout: Rollout) -> None:
        """Carry out *steps* as one phase (or one way back) called *name*."""

    def task(self, name: str, run: Callable[[], T]) -> T:
        """Carry out one thing beside the phases, such as the pre-checks."""

    def shown(self, rollout: Rollout, verb: str) -> AbstractContextManager[None]:
        """Around all that *verb* does: at its end, however that is, people see what came of it and what comes next."""

    def planned(self, rollout: Rollout, phases: Sequence[Phase], findings: Sequence[Finding], *, back: bool = False) -> None:
        """Show what is about to happen, before the first change: *phases* in their order, and what the checks found."""


class PlainConductor:
    """Calls every step directly; needs no Prefect."""

    flow_run: str | None = None

    def phase(self, name: str, steps: list[Step], rollout: Rollout) -> None:
        rollout.say("phase begins", phase=name)
        for step in steps:
            cancellation.edge()
            outcome: Outcome = step.run()
            rollout.say("step ended", phase=name, step=step.name, outcome=outcome.value)

    def task(self, name: str, run: Callable[[], T]) -> T:  # noqa: ARG002  # the name is for conductors that show it
        return run()

    def shown(self, rollout: Rollout, verb: str) -> AbstractContextManager[None]:  # noqa: ARG002  # the same
        return nullcontext()

    def planned(self, rollout: Rollout, phases: Sequence[Phase], findings: Sequence[Finding], *, back: bool = False) -> None:
        pass
