"""
The demo: a private MySQL, clients of both generations that never stop, the phases, one planted failure, back and forward again.

Everything runs on loopback, is bounded in time and is removed at the end.
"""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from sqlalchemy import make_url

from deploy.mysql_server import provide
from flows import cockpit
from flows.demo import closing, cockpit_server, deploy
from flows.demo.traffic import Fleet, seed
from steps.errors import RolloutError
from steps.target import Target

ROWS = 3000
V0_CLIENTS, V0_RATE_PER_S = 6, 60
CALM_S = 3.0
SEES_LONG_STATEMENTS = ("--max-digest-length=16384", "--performance-schema-max-digest-length=16384")  # the cleanup gate needs them
BY, REASON = "release engineer", "demo of ADR-002"


def run(*, keep: bool, html: Path | None = None) -> int:
    """Run the demo; return 0 when every promise was kept, else 1. *html* is where its report goes, as one page."""
    console = Console(highlight=False, soft_wrap=True)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="rollout-demo-") as name, provide(options=SEES_LONG_STATEMENTS) as server, \
            cockpit_server.served(Path(name)) as (ui, prefect):
        folder = Path(name)
        database = Target(make_url(server.url).set(database="rollout_demo"))
        os.environ[deploy.URL_NAME] = url = database.url.render_as_string(hide_password=False)
        console.print(f"MySQL {server.version} ({server.way}) at {database.where}")
        seed(url, ROWS)
        console.print(f"seeded the ADR's nine jobs and {ROWS} more; starting Prefect …")
        cockpit_server.wait_until_up(ui, prefect, folder)
        console.print(f"Prefect UI: {ui}")
        with Fleet(url, folder / "traffic") as fleet:
            kept = Demo(console, database, fleet).play()
            for generation in ("v2", "v1", "v0"):
                fleet.stop(generation)
            good = closing.told(console, database, fleet, ui, time.monotonic() - began) and kept
        if html:
            closing.report_to(html, database)
            console.print(f"report: {html}", markup=False)
        if keep:
            _stay_up(console, ui, server.url)
    return 0 if good else 1


class Demo:
    """The story, one act after the other."""

    def __init__(self, console: Console, database: Target, fleet: Fleet) -> None:
        self.console, self.database, self.fleet, self.kept = console, database, fleet, True

    def play(self) -> bool:
        """All acts; returns whether each ended as announced."""
        self.fleet.start("v0", clients=V0_CLIENTS, rate_per_s=V0_RATE_PER_S)
        self._act("V0 alone, before anything changes", 0, lambda: time.sleep(CALM_S))
        self._act("rollout run; V1 comes with a planted fault: verify must fail and roll back to V0", 5, lambda: self._run("--with-bug"))
        self._act("V0 alone again, sync stays on", 0, lambda: time.sleep(CALM_S))
        deploy.correct()
        self._act("the planted row is corrected; rollout run: phases 2 to 5", 0, self._run)
        self._act("V0 and V1 side by side", 0, lambda: time.sleep(CALM_S))
        self._act("rollback --to v0: V1 goes, triggers go, columns stay", 0, lambda: self._back(to="v0"))
        self._act("V0 alone without sync", 0, lambda: time.sleep(CALM_S))
        self._act("rollout run again: the old side decides, then phases 1 to 5", 0, self._run)
        self._act("V0 and V1 side by side", 0, lambda: time.sleep(CALM_S))
        self._act("cleanup: V2 replaces V0 and V1, the old columns become tombstones; the drop is due in an hour", 0,
                  lambda: self._run(through="cleanup", cooling_s=3600))
        self._act("V2 alone", 0, lambda: time.sleep(CALM_S))
        self._act("rollback of cleanup: columns and triggers back, the new side decides, V1 and V0 again", 0,
                  lambda: self._back(phase="cleanup"))
        self._act("V0 and V1 again", 0, lambda: time.sleep(CALM_S))
        self._act("cleanup again, to the end: archive and drop", 0, lambda: self._run(through="cleanup"))
        self._act("V2 alone to the end", 0, lambda: time.sleep(CALM_S))
        return self.kept

    def _act(self, title: str, expected: int, act: Callable[[], None]) -> None:
        self.console.rule(title, align="left")
        self.fleet.label(title)
        code, said = 0, "ended well"
        try:
            act()
        except RolloutError as error:
            code, said = error.exit_code, str(error)
        if expected or said != "ended well":
            self.console.print(f"exit {code}: {said}", markup=False)
        if code != expected:
            self.console.print(f"expected exit {expected}", style="red")
            self.kept = False

    def _request(self) -> dict[str, object]:
        return {"plan": "ai_analysis_job", "by": BY, "reason": REASON, "database": "command line"}

    def _settings(self, extra: str = "", cooling_s: int = 0) -> list[str]:
        command = f"{shlex.quote(sys.executable)} -m flows.demo.deploy"
        folder = shlex.quote(str(self.fleet.folder))
        return [f"deploy.command={command} v1 {folder} {extra}".strip(), f"deploy.rollback_command={command} v0 {folder}",
                "deploy.deadline_s=60", f"cleanup.deploy={command} v2 {folder}", f"cleanup.rollback_deploy={command} v1-again {folder}",
                "cleanup.min_age_s=0", "cleanup.observe_s=3", f"cleanup.cooling_s={cooling_s}"]

    def _run(self, extra: str = "", through: str = "shadow_write", cooling_s: int = 0) -> None:
        from flows import deployments  # noqa: PLC0415  # importing Prefect takes seconds
        from flows.params import RunRequest  # noqa: PLC0415

        request = RunRequest.model_validate({**self._request(), "settings": self._settings(extra, cooling_s), "through": through,
                                             "accept": ["cleanup"] if through == "cleanup" else []})
        self._through_prefect(lambda: deployments.rollout(request, return_state=True))

    def _back(self, **what: str) -> None:
        from flows import deployments  # noqa: PLC0415
        from flows.params import RollbackRequest  # noqa: PLC0415

        request = RollbackRequest.model_validate({**self._request(), "settings": self._settings(), **what})
        self._through_prefect(lambda: deployments.rollback(request, return_state=True))

    def _through_prefect(self, flow: Callable[[], object]) -> None:
        from flows import deployments  # noqa: PLC0415

        cockpit.log_to(sys.stdout)
        call = deployments.Call(self.database)
        token = deployments.current.set(call)
        try:
            flow()
        finally:
            deployments.current.reset(token)
        if call.error:
            raise call.error


def _stay_up(console: Console, ui: str, url: str) -> None:
    console.print(f"kept up until Ctrl-C: Prefect UI {ui}, MySQL {url}rollout_demo", markup=False)
    try:
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        return
