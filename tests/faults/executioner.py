"""The process that forks victims (:mod:`tests.faults.victim`): one command at a time, killed at a point, stopped at one, or left alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).resolve().parents[2]


class Executioner:
    """
    Ends with its context. *environment* is what the victims have beside this process's own.

    Each command is answered once it has ended, of whatever kind: `ended` is the exit code or the signal, `said` its outcome or error,
    `passed` what it passed by series, `at` where it died or was stopped. `hung`: it had to be killed after its time limit.
    """

    def __init__(self, log: Path, environment: dict[str, str] | None = None) -> None:
        self.log = log
        self._process = subprocess.Popen([sys.executable, "-m", "tests.faults.victim"], cwd=ROOT, stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, text=True, env={**os.environ, **(environment or {})})

    def run(self, command: str, url: str, **more: Any) -> dict[str, Any]:
        """Carry *command* out to its end; with *series* and *at* it dies there."""
        self._say(json.dumps({"command": command, "url": url, "log": str(self.log), **more}))
        return self.heard()

    def started(self, command: str, url: str, **more: Any) -> dict[str, Any]:
        """
        Carry *command* out up to the point number *at* of *series*, where it waits for a word; its answer has `paused` then.

        It also has `pid`, and the tool's `sessions`: connection ids by what they are for, `others` among them. A victim that did not
        come to that point has ended, and its answer is as :meth:`run` gives it.
        """
        return self.run(command, url, pause=True, **more)

    def go_on(self) -> None:
        """Let a paused victim go on; do not wait for it."""
        self._say("go on")

    def heard(self) -> dict[str, Any]:
        """Wait for the next answer; the executioner bounds it."""
        assert self._process.stdout
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def _say(self, line: str) -> None:
        assert self._process.stdin
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()
