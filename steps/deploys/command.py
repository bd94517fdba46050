"""By command: a shell of its own with a deadline. Whether it did its work, only its exit code and the health question say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from steps.commands import run_command
from steps.deploys.way import Job
from steps.errors import DeployFailed


@dataclass(frozen=True)
class Command:
    """Both directions run *command*; it is told plan, table and generation, and knows itself what stands already."""

    command: str
    name: str = "command"

    def puts_out(self, generation: str) -> bool:  # noqa: ARG002  # a command is for one generation
        return True

    def cannot_take_back(self, generation: str, known: dict[str, Any]) -> None:
        """A command can always be run."""

    def ready(self) -> None:
        """What the command needs, only the command knows."""

    def look(self, generation: str, known: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG002  # nobody to ask
        return known

    def reach(self, known: dict[str, Any]) -> None:
        """Nobody to ask."""

    def put_out(self, job: Job) -> dict[str, Any]:
        what, deadline_s = f"command for {job.generation}", job.deadline.seconds
        code, output = run_command(self.command, deadline_s, {
            "ROLLOUT_PLAN": job.plan_id, "ROLLOUT_TABLE": job.table, "ROLLOUT_GENERATION": job.generation}, job.begins)
        if code is None:
            raise DeployFailed(what, f"ran over its deadline of {deadline_s} s and was ended", "see its output")
        if code != 0:
            raise DeployFailed(what, f"ended with {code}: {output[-300:].strip() or 'no output'}", "correct the cause")
        return {"output": output}

    def take_back(self, job: Job) -> dict[str, Any]:
        return self.put_out(job)
