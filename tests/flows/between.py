"""Conductors that do something between phases and steps, as the world outside does while a rollout runs."""

from __future__ import annotations

from collections.abc import Callable

from flows.conductor import PlainConductor
from steps.rollout import Rollout
from steps.step import Step

LABELS = {"pre_deploy": "1. pre_deploy", "deploy": "2. deploy", "backfill": "3. backfill", "verify": "4. verify",
          "shadow_write": "5. shadow_write"}


class After(PlainConductor):
    """Does *then* once, after the phase called *name* has ended."""

    def __init__(self, name: str, then: Callable[[], object]) -> None:
        self.name, self.then = LABELS.get(name, name), then

    def phase(self, name: str, steps: list[Step], rollout: Rollout) -> None:
        super().phase(name, steps, rollout)
        if name == self.name:
            self.then()


class AfterEachStep(PlainConductor):
    """Calls *then* with the phase's and the step's name after every single step, and before a phase's first."""

    def __init__(self, then: Callable[[str, str], object]) -> None:
        self.then = then

    def phase(self, name: str, steps: list[Step], rollout: Rollout) -> None:
        self.then(name, "before")
        for step in steps:
            super().phase(name, [step], rollout)
            self.then(name, step.name)
