"""
By Compose: an override file of ours names the images, and `up --wait` replaces one service after the other.

The override stays beside the project's files, so that whoever runs Compose there later, with `-f` for it too, gets the same images.
"""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path
from typing import Any

from steps.commands import Begins, run_program
from steps.deploys.images import ByImages
from steps.deploys.way import Job
from steps.errors import DeployFailed, Stopped
from steps.plan_deploy import Compose as Section

LOOK_S = 60
WELL = ("", "healthy")
LOGS = "see its containers' logs"
ONE_OFF = "com.docker.compose.oneoff=True"


class Compose(ByImages):
    """`known` is the image of each service before, by service; None where it was the new one already."""

    name = "compose"

    def __init__(self, plan: Section) -> None:
        super().__init__(plan.service)
        self.plan = plan
        self._override = Path(plan.folder) / plan.override

    def ready(self) -> None:
        missing = [file for file in self.plan.files if not (Path(self.plan.folder) / file).is_file()]
        if missing:
            raise Stopped(f"compose in {self.plan.folder}", f"{', '.join(missing)} is not there", "correct deploy.compose.folder and files")
        program = shlex.split(self.plan.program)[0]
        if not shutil.which(program):
            raise Stopped("compose", f"{program} is not on the PATH", "install it, or set deploy.compose.program")

    def look(self, generation: str, known: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, wanted in self.wanted(generation).items():
            images = {str(container.get("Image")) for container in self._containers(name)}
            if not images and known.get(name) is None:
                raise Stopped(f"service {name}", "has no container, so there is nothing to replace or to go back to",
                              "start it first, or correct deploy.compose")
            old = sorted(images - {wanted})
            found[name] = old[0] if old else None
        return {**found, **known}

    def reach(self, known: dict[str, Any]) -> None:
        for name in known:
            self._containers(name)

    def put_out(self, job: Job) -> dict[str, Any]:
        return self._go_to(job, self.wanted(job.generation))

    def take_back(self, job: Job) -> dict[str, Any]:
        return self._go_to(job, {name: image for name, image in self.before(job.generation, job.known).items() if image is not None})

    def _go_to(self, job: Job, images: dict[str, str]) -> dict[str, Any]:
        self._write(images)
        changed = []
        for name, image in images.items():
            if self._stands(name, image):
                continue
            changed.append(name)
            self._up(name, image, job)
            if not self._stands(name, image):
                raise DeployFailed(f"service {name}", f"is not running well with {image} after `up --wait`: {self._told(name)}", LOGS)
        return {"images": images, "changed": changed}

    def _up(self, name: str, image: str, job: Job) -> None:
        left_s = job.deadline.left_s
        code, output = self._compose(["up", "-d", "--no-deps", "--wait", "--wait-timeout", str(max(1, int(left_s))), name],
                                     max(0.1, left_s), job.begins)
        if code is None:
            raise DeployFailed(f"service {name}", f"did not come with {image} within {job.deadline.seconds:g} s", LOGS)
        if code:
            raise DeployFailed(f"service {name}", f"up with {image} ended with {code}: {output[-300:].strip() or 'no output'}", LOGS)

    def _stands(self, name: str, image: str) -> bool:
        """Whether every container of the service has the image and is running, and healthy where it says."""
        containers = self._containers(name)
        return bool(containers) and all(c.get("Image") == image and c.get("State") == "running" and c.get("Health", "") in WELL
                                        for c in containers)

    def _told(self, name: str) -> str:
        return ", ".join(sorted({f"{c.get('Image')} {c.get('State')} {c.get('Health', '')}".strip() for c in self._containers(name)})) \
            or "no container"

    def _containers(self, name: str) -> list[dict[str, Any]]:
        """
        The containers of one service, stopped ones too; those of `compose run`, a migration's say, are none of it.

        Raises:
            Stopped: Compose could not be asked.
        """
        code, output = self._compose(["ps", "--all", "--format", "json", name], LOOK_S)
        if code != 0:
            raise Stopped(f"service {name}", f"`{self.plan.program} ps` ended with {code}: {output[-300:].strip() or 'no output'}",
                          "see that Compose and its engine can be used, then run the same command again")
        try:
            whole = output.strip()
            found = json.loads(whole) if whole.startswith("[") else [json.loads(line) for line in whole.splitlines() if line.strip()]
            return [dict(container) for container in found if ONE_OFF not in str(container.get("Labels", ""))]
        except (ValueError, TypeError):
            raise Stopped(f"service {name}", f"`{self.plan.program} ps --format json` gave no JSON", "use Compose 2.20 or newer") from None

    def _compose(self, words: list[str], deadline_s: float, begins: Begins | None = None) -> tuple[int | None, str]:
        files = [*self.plan.files, *([self.plan.override] if self._override.exists() else [])]
        project = ["-p", self.plan.project] if self.plan.project else []
        command = [*shlex.split(self.plan.program), *project, *(word for file in files for word in ("-f", file)), *words]
        try:
            return run_program(command, deadline_s, {}, folder=self.plan.folder, begins=begins)
        except OSError as error:
            raise Stopped("compose", f"{self.plan.program} cannot be started: {error.strerror}",
                          "install it, or set deploy.compose.program and folder") from None

    def _write(self, images: dict[str, str]) -> None:
        """The override with *images*, whole or not at all; services of an earlier generation keep theirs."""
        try:
            earlier = json.loads(self._override.read_text())["services"] if self._override.exists() else {}
            text = json.dumps({"services": {**earlier, **{name: {"image": image} for name, image in images.items()}}}, indent=2)
            beside = self._override.with_name(self._override.name + ".new")
            beside.write_text(text + "\n")
            beside.replace(self._override)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise Stopped(str(self._override), f"cannot be written: {type(error).__name__}", "make it writable, or remove what is no file "
                          "of ours") from None
