"""Two people at once, an owner that died without a word, one that only seemed to be dead (cases C92, C93, C102)."""

from __future__ import annotations

from typing import Any

from flows.demo.traffic.generations import TABLE
from tests.faults.kinds.kind import Kind, owned
from tests.faults.points import Point
from tests.faults.scene import Scene

HURRY = ("gap_wait_s=1",)
BUSY = 6
LONG_AGO = "2001-01-01"


def _seen(scene: Scene) -> dict[str, Any]:
    """What somebody who does not own the table must not change. In a hold nobody can look; what waits for its COMMIT was done before."""
    stage = scene.world.theatre.stage
    return {} if scene.point.in_hold or scene.point.name == "before a chunk's COMMIT" else {**stage.left(), "rows": stage.table()}


def second(command: str | None) -> Any:
    """A second command while the first is at work: it is told so and changes nothing, and the first does not notice."""
    def play(scene: Scene) -> None:
        before = _seen(scene)
        told = scene.second_operator(command)
        if told["ended"] != BUSY and told.get("said") != "nothing to do":
            scene.wrong.append(f"the second operator ended with {told['ended']}: {told.get('said')}")
        after = _seen(scene)
        scene.wrong += [f"the second operator changed {what}" for what in before if before[what] != after[what]]
        scene.struck()
        first = scene.wait()
        if first["ended"]:
            scene.wrong.append(f"the first operator was disturbed and ended with {first['ended']}: {first.get('said')}")

    return play


def taken_over(scene: Scene) -> None:
    """The lock is lost and somebody else does the work; the first one comes back and must stop before its next change."""
    scene.kill_connection("lock")
    _another_takes_over(scene)


def frozen(scene: Scene) -> None:
    """The owner's machine stands still for so long that its heartbeat is old; the other one takes over although the lock is still held."""
    scene.freeze()
    try:
        with scene.client() as send:
            send("UPDATE _rollout_owner SET heartbeat_at = %s", LONG_AGO)
        _another_takes_over(scene, thaw=True)
    finally:
        scene.thaw()


def _another_takes_over(scene: Scene, *, thaw: bool = False) -> None:
    told = scene.second_operator()
    if told["ended"] not in (0, 4):
        scene.wrong.append(f"the second operator ended with {told['ended']}: {told.get('said')}")
    before = _seen(scene)
    if thaw:
        scene.thaw()
    scene.struck()
    scene.wait()
    after = _seen(scene)
    scene.wrong += [f"the first operator, which had lost the table, changed {what}: {before[what]} to {after[what]}"
                    for what in before if before[what] != after[what]]


def dead(scene: Scene) -> None:
    """An owner row of somebody who died long ago, whose lock went with the connection."""
    with scene.client() as send:
        send("REPLACE INTO _rollout_owner VALUES (DATABASE(), %s, REPEAT('0', 32), 'ai_analysis_job', 'gone', 'gone', 1, 1, %s, %s)",
             TABLE, LONG_AGO, LONG_AGO)
    first = scene.wait()
    if first["ended"]:
        scene.wrong.append(f"a dead owner was not taken over: {first['ended']}: {first.get('said')}")


def before_taking(point: Point) -> bool:
    return point.name.startswith("before take")


KINDS = (
    Kind("two operators: run", second("run"), owned, points=6),
    Kind("two operators: rollback", second("back"), owned, points=6),
    Kind("lock lost and taken over", taken_over, owned, points=6, settings=HURRY),
    Kind("owner frozen and taken over", frozen, owned, points=5, settings=HURRY),
    Kind("owner dead without a word", dead, before_taking, points=1),
)
