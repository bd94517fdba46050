"""kill -9 again and again at boundaries drawn by lot, forward and back, while both generations' clients never stop."""

from __future__ import annotations

import random
import shlex
import sys
import uuid
from pathlib import Path

from deploy.mysql_server import Server
from flows.demo.traffic import Fleet, seed
from tests.faults.executioner import Executioner

DRAWN = 20260
KILLS = {"run": (4, 110), "back": (3, 38)}  # how often to try, and among how many boundaries
ROWS = 200
FEWEST_KILLED = 8


def test_no_client_notices_that_the_tool_is_killed_and_run_again(server: Server, tmp_path: Path) -> None:
    url, traffic, rehearsed = f"{server.url}k_{uuid.uuid4().hex[:12]}", tmp_path / "traffic", str(tmp_path / "rehearsed")
    deployed = f"{shlex.quote(sys.executable)} -m flows.demo.deploy"
    settings = [f"deploy.command={deployed} v1 {traffic}", f"deploy.rollback_command={deployed} v0 {traffic}"]
    lot, killed = random.Random(DRAWN), list[str]()
    seed(url, ROWS)
    with Executioner(tmp_path / "log") as executioner, Fleet(url, traffic) as fleet:
        fleet.start("v0", clients=4, rate_per_s=40)
        for number, command in enumerate(("run", "back", "run", "back", "run")):
            fleet.label(f"{number}. {command}")
            tries, among = KILLS[command]
            for at in [*(lot.randint(1, among) for _ in range(tries)), 0]:
                known = {"rehearsed": rehearsed} if Path(rehearsed).exists() else {"remember": rehearsed}
                told = executioner.run(command, url, at=at, settings=settings, environment={"ROLLOUT_TRAFFIC_URL": url}, **known)
                assert told["ended"] in (0, -9), f"{command} after {killed[-3:]}: {told}"
                if told["ended"] == 0:
                    break
                killed.append(f"{number}. {command} {at}: {told['at']}")
        fleet.stop("v1")
        fleet.stop("v0")
        report, wrong = fleet.report(), fleet.final_check()
    print(f"seed {DRAWN}, killed {len(killed)} times: {'; '.join(killed)}. {report.requests} requests, {report.failures} failed, "  # noqa: T201  # the figures
          f"{report.deadlocks} deadlocks, longest {report.longest_request_ms:.0f} ms")
    assert len(killed) >= FEWEST_KILLED
    assert (dict(report.failed), report.wrong_reads, report.run_twice, report.snapshots) == ({}, 0, 0, 0), report.examples
    assert report.phases.keys() >= {"0. run", "1. back", "2. run", "3. back", "4. run"}
    assert report.acknowledged_writes > 50
    assert wrong == []
