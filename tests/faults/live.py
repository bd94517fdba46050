"""A round with live traffic: forward, back, forward again, disturbed by faults drawn by lot, while the clients never stop."""

from __future__ import annotations

import random
import shlex
import sys
import time
import uuid
from dataclasses import replace

from flows.demo.traffic import Fleet, seed
from flows.demo.traffic.report import Report
from tests.faults import world
from tests.faults.judge import MOST_TRIES, Verdict
from tests.faults.kinds import KINDS, Kind
from tests.faults.points import Point
from tests.faults.scene import Scene
from tests.faults.world import World

PREFIX = "live traffic/"
ROWS = 200
AMONG = {"run": 110, "back": 38}
FAULTS = {"run": 3, "back": 2}
MAY_END = {0, 4, 5, -9}
GENTLE = ("tool killed", "connection killed: worker", "connection killed: ledger", "connection killed: lock", "connections killed: all")
HARSH = (*GENTLE, "server killed and back", "server killed and down", "server frozen for a second", "super_read_only",
         "tool killed in a statement", "connection killed in a statement")
"""Kinds that the application feels too: its requests fail meanwhile, and what it was told before must hold all the same."""


def key(number_of_seed: int, number: int) -> str:
    return f"{PREFIX}{number_of_seed}/{number}"


def of_key(case: str) -> tuple[int, int]:
    first, second = case.removeprefix(PREFIX).split("/")
    return int(first), int(second)


def played(number_of_seed: int, number: int) -> Verdict:
    """Round *number* of that seed, in a world of its own. Even rounds have only faults that no client may notice."""
    began, gentle = time.monotonic(), number % 2 == 0
    lot = random.Random(f"{number_of_seed}/{number}")
    verdict = Verdict(key(number_of_seed, number), "live traffic, " + ("faults of the tool" if gentle else "all faults"))
    with world.opened() as standing:
        stage, folder = standing.theatre.stage, standing.folder / "traffic"
        stage.end()
        stage.schema = f"k_{uuid.uuid4().hex[:12]}"
        seed(stage.url, ROWS)
        with Fleet(stage.url, folder) as fleet:
            fleet.start("v0", clients=4, rate_per_s=40)
            for turn, command in enumerate(("run", "back", "run")):
                fleet.label(f"{turn}. {command}")
                _through(standing, command, GENTLE if gentle else HARSH, lot, verdict)
            fleet.stop("v1")
            fleet.stop("v0")
            report, wrong = fleet.report(), fleet.final_check()
    verdict.acknowledged, verdict.lost = report.acknowledged_writes, len(wrong)
    verdict.wrong += [f"{row.id}.{row.column} is not as it was acknowledged" for row in wrong[:5]]
    verdict.wrong += _traffic(report, gentle=gentle)
    verdict.equal, verdict.took_s = not verdict.wrong, time.monotonic() - began
    return verdict


def _through(standing: World, command: str, kinds: tuple[str, ...], lot: random.Random, verdict: Verdict) -> None:
    """*command*, disturbed a few times, and then until it ends well."""
    deployed, folder = f"{shlex.quote(sys.executable)} -m flows.demo.deploy", standing.folder / "traffic"
    settings = (f"deploy.command={deployed} v1 {folder}", f"deploy.rollback_command={deployed} v0 {folder}")
    remembered = standing.folder / "rehearsed live"
    for _ in range(FAULTS[command]):
        kind, number = KINDS[lot.choice(kinds)], lot.randint(1, AMONG[command])
        more = {"environment": {"ROLLOUT_TRAFFIC_URL": standing.theatre.stage.url},
                **({"rehearsed": str(remembered)} if remembered.exists() else {"rehearsed": None, "remember": str(remembered)})}
        point = Point(command, "live", number, "", owned=True, nth=number)
        code = _disturbed(standing, kind, point, (*settings, *kind.settings), more, verdict)
        if code == 0:
            return
    tries = 0
    while code and tries < MOST_TRIES:
        tries += 1
        told = standing.theatre.executioner.run(command, standing.url, settings=[*settings], **more)
        code = told["ended"]
        verdict.codes.append(code)
        verdict.said.append(f"{command}: {told.get('said')}")
    verdict.tries = max(verdict.tries, tries)
    if code:
        verdict.wrong.append(f"{command} never ended well: {verdict.said[-1]}")


def _disturbed(standing: World, kind: Kind, point: Point, settings: tuple[str, ...], more: dict[str, object], verdict: Verdict) -> int:
    scene = Scene(standing, point, settings, more)
    if scene.begin():
        scene.point = replace(point, name=scene.told["at"])
        kind.play(scene)
        told = scene.wait()
        verdict.noticed_s = max(verdict.noticed_s, scene.noticed_s)
    else:
        told = scene.told  # it had less to do than points were drawn among
    code = int(told["ended"])
    verdict.codes.append(code)
    verdict.said.append(f"{kind.name} at {told.get('at')}: {told.get('said')}")
    if code not in MAY_END or told.get("hung"):
        verdict.wrong.append(f"{kind.name} at {told.get('at')}: {point.command} ended with {code}: {told.get('said')}")
    return code


def _traffic(report: Report, *, gentle: bool) -> list[str]:
    """What is wrong with the traffic. Requests may fail where the server did; wrong they may never be."""
    found = {"wrong reads": report.wrong_reads, "jobs run twice": report.run_twice}
    found |= {"failed requests": report.failures, "1412": report.snapshots} if gentle else {}
    found |= {} if report.acknowledged_writes else {"no writes": 1}
    return [f"traffic: {count} {what}: {report.examples[:3]} {dict(report.failed)}" for what, count in found.items() if count]
