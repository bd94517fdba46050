"""A table, a plan whose `[deploy]` and `[fleet]` a test writes, and the verbs on both, in this process or in one to be killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from flows import actions
from flows.conductor import PlainConductor
from flows.params import RollbackRequest, RunRequest, Through
from flows.standing import standing
from steps import plan_loader
from steps.rollout import Person, Rollout, opened
from steps.target import ENVIRONMENT, Target
from tests.conftest import App
from tests.mysql.conftest import JOB
from tests.plans import SYNC, written

ROOT = Path(__file__).resolve().parents[2]
CLEANUP = '[cleanup]\ndrop = ["status"]\nmin_age_s = 0\nobserve_s = 0\ncooling_s = 0\n'
ACCEPTED = ("cleanup", "cleanup-unseen")


def toml(value: Any) -> str:
    """*value* as TOML writes it inline."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(item)}" for key, item in value.items()) + " }"
    return "[" + ", ".join(map(toml, value)) + "]" if isinstance(value, list) else json.dumps(value)


class Stage:
    """A table, a plan whose `[deploy]` a test writes, and the verbs on both."""

    def __init__(self, folder: Path, target: Target, stack: ExitStack) -> None:
        self.folder, self.target, self.stack, self.app = folder, target, stack, App(target)
        self.app.run(JOB)
        self.app.run("INSERT INTO job (id, status) VALUES ('a', 'pending'), ('b', 'completed')")

    def plan(self, *, cleanup: str = CLEANUP, head: str = "", fleet: dict[str, Any] | None = None,
             shadow_write: dict[str, Any] | None = None, **deploy: Any) -> None:
        wanted = {"deploy": deploy, "fleet": fleet, "shadow_write": shadow_write}
        tables = {name: keys for name, keys in wanted.items() if keys is not None}
        text = "".join(f"\n[{name}]\n" + "".join(f"{key} = {toml(value)}\n" for key, value in keys.items())
                       for name, keys in tables.items())
        written(self.folder, head=head, tail=f"{SYNC}{text}\n{cleanup}")

    def rollout(self, accepted: tuple[str, ...] = (), deployed_by: str | None = None) -> Rollout:
        """One that looks; closed with the stage."""
        plan = plan_loader.load(str(self.folder))
        return self.stack.enter_context(opened(plan, self.target, Person("tester", "because", deployed_by), frozenset(accepted)))

    def run(self, through: Through = Through.DEPLOY, accepted: tuple[str, ...] = ACCEPTED, deployed_by: str | None = None,
            conductor: PlainConductor | None = None) -> actions.Result:
        request = RunRequest(plan=str(self.folder), by="tester", reason="because", through=through)
        return actions.run(self.rollout(accepted, deployed_by), request, conductor or PlainConductor())

    def back(self, phase: Through = Through.DEPLOY, accepted: tuple[str, ...] = ACCEPTED,
             deployed_by: str | None = None) -> actions.Result:
        request = RollbackRequest(plan=str(self.folder), by="tester", reason="because", phase=phase)
        return actions.rollback(self.rollout(accepted, deployed_by), request, PlainConductor())

    def process(self, verb: str = "run", *words: str) -> subprocess.Popen[str]:
        """`rollout run --through deploy`, or another *verb* with its *words*, as a process of its own, to be killed."""
        words = words or ("--through", "deploy")
        url = self.target.url.render_as_string(hide_password=False)
        environment = {**os.environ, ENVIRONMENT: url, "PYTHONPATH": str(ROOT)}
        return subprocess.Popen([sys.executable, "-c", "from flows.cli.app import main; main()", verb, str(self.folder), *words,
                                 "--no-prefect", "--by", "tester", "--reason", "because"], env=environment, cwd=self.folder,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def standing(self) -> dict[str, Any]:
        """What `rollout status` tells."""
        return standing(self.rollout())

    def phase(self, name: str = "deploy") -> tuple[str, dict[str, Any]]:
        found = self.app.rows("SELECT state, detail FROM _rollout_phase WHERE phase = %s", name)
        return (str(found[0][0]), json.loads(found[0][1])) if found else ("-", {})

    def exit_code(self) -> int:
        return int(self.app.value("SELECT exit_code FROM _rollout_run ORDER BY started_at DESC LIMIT 1"))
