"""A database with live applications on it, and a rollout that goes through its phases and back under them, labelled by phase."""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import ClassVar, Self

from flows import actions
from flows.conductor import PlainConductor
from flows.demo.traffic import Fleet, Report, WrongRow
from flows.demo.traffic.process import NO_LABEL, URL_NAME
from flows.demo.traffic.session import Session
from flows.params import RollbackRequest, RunRequest
from steps.rollout import Rollout
from steps.step import Step
from steps.target import Target, target_of
from tests.applications import rolling, service

PLAN, BY, REASON = "ai_analysis_job", "tester", "traffic through every phase"
GENERATIONS = ("v2", "v1", "v0")


class Labelled(PlainConductor):
    """Counts the traffic under the phase that is being carried out."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage

    def phase(self, name: str, steps: list[Step], rollout: Rollout) -> None:
        self.stage.label(name)
        super().phase(name, steps, rollout)


class Stage:
    """
    Everything on the seeded database *url*; processes leave their files in *folder*. Leaving the context ends all of them.

    Rollout and rollback are carried out in this process; deploys are commands, as in earnest.
    """

    module = "tests.applications.rolling"
    driven_by: ClassVar[tuple[str, ...]] = ("roles",)
    pace: ClassVar[float] = 1
    pace_ms = 3 * 1000 / rolling.RATE_PER_S  # what a gap is without any stall, now and then
    commands: ClassVar = {
        "deploy.command": "v1", "deploy.rollback_command": "v0", "cleanup.deploy": "v2", "cleanup.rollback_deploy": "v1-again"}

    def __init__(self, url: str, folder: Path) -> None:
        self.url, self.folder = url, folder
        self.database: Target = target_of(url)
        self.fleet = Fleet(url, folder / rolling.TRAFFIC)
        self.labels = [NO_LABEL]
        self.soaked: list[str] = []
        (folder / rolling.OWNER).write_text(str(os.getpid()))
        (folder / rolling.DRIVEN_BY).write_text(json.dumps({"by": self.driven_by, "pace": self.pace}))

    def __enter__(self) -> Self:
        os.environ[URL_NAME] = self.url
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        os.environ.pop(URL_NAME, None)

    def start(self, generation: str) -> None:
        """Put *generation* out, healthy and under traffic."""
        rolling.come(self.url, self.folder, generation)

    def label(self, label: str) -> None:
        """From the next request on, count under *label*; `labels` has all of them in order."""
        self.labels += [] if label in self.labels else [label]
        self.fleet.label(label)

    def soak(self, label: str, seconds: float) -> None:
        """Let the traffic run for a while under *label*."""
        self.label(label)
        self.soaked.append(label)
        time.sleep(seconds)

    def forward(self, *settings: str, accept: Sequence[str] = (), conductor: Labelled | None = None, **what: object) -> actions.Result:
        """`rollout run`; *what* as :class:`RunRequest` has it."""
        request = RunRequest.model_validate({"plan": PLAN, "by": BY, "reason": REASON, "settings": self._settings(*settings),
                                             "accept": [*accept], **what})
        self.label("pre-checks")
        with actions.desk(request, self.database) as rollout:
            return actions.run(rollout, request, conductor or Labelled(self))

    def back(self, *settings: str, accept: Sequence[str] = (), **what: object) -> actions.Result:
        """`rollout rollback`; *what* as :class:`RollbackRequest` has it."""
        request = RollbackRequest.model_validate({"plan": PLAN, "by": BY, "reason": REASON, "settings": self._settings(*settings),
                                                  "accept": [*accept], **what})
        with actions.desk(request, self.database) as rollout:
            return actions.rollback(rollout, request, Labelled(self))

    def rows(self, sql: str) -> list[tuple[object, ...]]:
        """The answer to *sql* in the stage's database, on a connection of its own."""
        with closing(Session(self.url, "test")) as session:
            return [tuple(row.values()) for row in session.rows(sql)]

    def switch(self) -> tuple[str, str]:
        """The settings by which shadow_write turns V1's own shadow write on, and its way back turns it off."""
        return (f"shadow_write.enable_command={self._rolling('shadow-on')}", f"shadow_write.disable_command={self._rolling('shadow-off')}")

    def ended(self, *, old_side_only: bool = False) -> tuple[Report, list[WrongRow]]:
        """End all traffic, and hold everything against what was acknowledged."""
        self.end()
        return self.fleet.report(), self.fleet.final_check(old_side_only=old_side_only)

    def end(self) -> None:
        """End all clients and all instances. Safe to repeat."""
        for generation in GENERATIONS:
            rolling.go(self.url, self.folder, generation)

    def _rolling(self, command: str) -> str:
        words = (sys.executable, "-m", self.module, command, str(self.folder))
        return f"cd {shlex.quote(str(service.ROOT))} && {shlex.join(words)}"

    def _settings(self, *more: str) -> list[str]:
        given = [f"{key}={self._rolling(command)}" for key, command in self.commands.items()]
        return [*given, "deploy.deadline_s=120", "cleanup.min_age_s=0", "cleanup.observe_s=3", *more]


class HabitStage(Stage):
    """The same, with clients that have habits (:mod:`tests.applications.habits`), each of which is alone with its gaps."""

    driven_by = ("habits",)
    pace_ms = 1.6 * 1000 * rolling.DRIVERS["habits"].clients / rolling.DRIVERS["habits"].rate_per_s  # a client's longest wait of its own


class EverybodysStage(Stage):
    """The same, with clients of both kinds, each at half its pace."""

    driven_by = ("roles", "habits")
    pace = 0.5
