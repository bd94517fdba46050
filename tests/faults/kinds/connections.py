"""The tool's connections are killed, each by what it is for; and the one whose statement is at work (cases C84, C93)."""

from __future__ import annotations

from tests.faults.kinds.kind import HURRY, Kind, in_a_statement, outside_holds
from tests.faults.points import Point
from tests.faults.scene import Scene

MAIN = ("worker", "ledger", "watchdog")
ALL = (*MAIN, "lock", "others")
LANES = (*HURRY, "backfill.mode=full_speed", "backfill.connections=2")


def _killed(name: str) -> Kind:
    def play(scene: Scene) -> None:
        sessions = scene.told["sessions"]
        scene.hit = bool(sessions.get(name))
        scene.kill_connection(name)

    fits = {"lock": lambda point: point.owned, "others": _has_others}.get(name, lambda point: point.series == "live")
    return Kind(f"connection killed: {name}", play, fits)


def _has_others(point: Point) -> bool:
    """In a hold and in a rehearsal there is one more session."""
    return point.in_hold or point.series == "clone"


def all_killed(scene: Scene) -> None:
    scene.kill_connection(*ALL)


def killed_in_a_statement(scene: Scene) -> None:
    with scene.writes_wait():
        scene.goes_on()
        waiting = scene.seen_waiting()
        scene.hit = bool(waiting)
        scene.struck()
        scene.kill_numbers(waiting)
        scene.wait()


def first_pass(point: Point) -> bool:
    return point.name in ("before first pass", "before the new side decides", "before step first pass", "before step the new side decides")


KINDS = (
    *(_killed(name) for name in (*MAIN, "lock", "others")),
    Kind("connections killed: all", all_killed, points=4),
    Kind("connection killed in a statement", killed_in_a_statement, in_a_statement, points=5, settings=HURRY),
    Kind("connection killed: lanes at work", killed_in_a_statement, lambda point: first_pass(point) and outside_holds(point), points=2,
         settings=LANES),
)
