"""One case: a command disturbed by a fault at a point, run again until it ends, and held against a run that nobody disturbed."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from typing import Any

import pymysql

from tests.faults.kinds import Kind
from tests.faults.points import Point
from tests.faults.scene import Scene
from tests.faults.world import World

MOST_TRIES = 6
AGAIN_AFTER_S = 0.3
STOPPED, BUSY, REFUSED = 4, 6, 3
WRITTEN_BY_CLIENTS = {"c000001", "c000002", "c000006"}
SHOWN = 700


@dataclass
class Verdict:
    """
    What became of a case. `codes` are the disturbed command's end and those of its repetitions; `tries` counts the repetitions.

    `wrong` is empty when the end is that of an undisturbed run and everything on the way was as it may be.
    """

    case: str
    kind: str
    point: str = ""
    hit: bool = True
    codes: list[int] = field(default_factory=list)
    tries: int = 0
    noticed_s: float = 0.0
    acknowledged: int = 0
    lost: int = 0
    rows_wrong: int = 0
    equal: bool = False
    said: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    took_s: float = 0.0

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def judged(world: World, kind: Kind, point: Point) -> Verdict:
    """Play *kind* at *point*. Whatever was broken is mended again; the schema that is left is the next case's to remove."""
    began, stage = time.monotonic(), world.theatre.stage
    verdict, already = Verdict(f"{kind.name}/{point.key}", kind.name, point.name), stage.acknowledged
    _points, wanted = world.known(point.command)
    world.theatre.enter(point.command)
    scene = Scene(world, point, kind.settings, {**world.more, **kind.more})
    if scene.begin():
        try:
            kind.play(scene)
        finally:
            scene.wait()
        _disturbed(scene, kind, verdict)
        _run_again(world, kind, point, verdict)
        _compare(world, kind, point, wanted, verdict)
    verdict.hit, verdict.noticed_s = scene.hit, scene.noticed_s
    verdict.wrong = [*scene.wrong, *verdict.wrong]
    verdict.acknowledged = stage.acknowledged - already
    verdict.took_s = time.monotonic() - began
    return verdict


def _disturbed(scene: Scene, kind: Kind, verdict: Verdict) -> None:
    told = scene.wait()
    code = told["ended"]
    verdict.codes.append(code)
    verdict.said.append(str(told.get("said", ""))[:SHOWN])
    allowed = kind.ends | (set() if scene.point.owned else {REFUSED})
    if told.get("hung"):
        verdict.wrong.append("the tool never ended: its time limit killed it; the log says where it stood")
    elif code not in allowed:
        verdict.wrong.append(f"disturbed, it ended with {code}: {told.get('said')}")


def _run_again(world: World, kind: Kind, point: Point, verdict: Verdict) -> None:
    """Clients of the living generations first; then the same command, until it ends well."""
    stage = world.theatre.stage
    try:
        world.theatre.clients(point.command)
    except (pymysql.err.Error, AssertionError) as error:
        verdict.wrong.append(f"a client failed afterwards, ledger {stage.states()}: {error!r}")
        return
    for verdict.tries in range(1, MOST_TRIES + 1):
        again = world.theatre.executioner.run(point.command, world.url, settings=[*kind.settings],
                                              **world.theatre.remembered(known=point.series == "live"))
        verdict.codes.append(again["ended"])
        verdict.said.append(str(again.get("said", ""))[:SHOWN])
        if again["ended"] == 0:
            return
        if again["ended"] not in (STOPPED, BUSY):
            verdict.wrong.append(f"run again, it ended with {again['ended']}: {again.get('said')}")
            return
        time.sleep(AGAIN_AFTER_S)
    verdict.wrong.append(f"run again {MOST_TRIES} times, it never ended well: {verdict.said[-1]}")


def _compare(world: World, kind: Kind, point: Point, wanted: dict[str, Any], verdict: Verdict) -> None:
    ending = world.theatre.ending(point.command)
    if kind.keeps_sessions:
        ending["held"] = [held for held in ending["held"] if not (held.startswith("session ") and "'Sleep'" in held)]
    differing = [what for what in wanted.keys() | ending.keys() if ending.get(what) != wanted.get(what)]
    verdict.wrong += [f"{what} is {ending.get(what)!r:.{SHOWN}} instead of {wanted.get(what)!r:.{SHOWN}}" for what in differing]
    verdict.equal = not differing
    for table, rows in wanted["rows"].items():
        other = set(rows) ^ set(ending["rows"].get(table, []))
        verdict.rows_wrong += len({row[0] for row in other})
        verdict.lost += len({row[0] for row in other} & WRITTEN_BY_CLIENTS)
