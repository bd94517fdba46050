"""Whether the generation that went out is well: a command or an address is asked until it says yes."""

from __future__ import annotations

from dataclasses import dataclass

from steps import http_json
from steps.commands import run_command
from steps.deploys.way import Job, wait_until

LONGEST_REQUEST_S = 10.0


@dataclass(frozen=True)
class Health:
    """What is asked; both, where both are given."""

    command: str | None = None
    url: str | None = None

    def questions(self) -> tuple[tuple[str, str], ...]:
        """(kind, text) of each."""
        return tuple((kind, text) for kind, text in (("command", self.command), ("url", self.url)) if text)


def wait_for(kind: str, text: str, job: Job) -> None:
    """
    Ask until the answer is yes: exit code 0, or a status 2xx without any redirect.

    Raises:
        DeployFailed: no yes before the deadline.
    """
    asking = _command if kind == "command" else _url
    wait_until(lambda: asking(text, job), job.deadline, job.every_s, f"health {kind}", "see the application's log",
               "did not say yes")


def _command(command: str, job: Job) -> str | None:
    code, output = run_command(command, max(0.1, job.deadline.left_s), {"ROLLOUT_PLAN": job.plan_id, "ROLLOUT_GENERATION": job.generation})
    return None if code == 0 else output[-300:].strip() or f"exit code {code}"


def _url(url: str, job: Job) -> str | None:
    try:
        answer = http_json.ask("GET", url, timeout_s=max(0.1, min(LONGEST_REQUEST_S, job.deadline.left_s)))
    except http_json.NoAnswer as nothing:
        return str(nothing)
    return None if answer.good else f"answered {answer.status}"
