"""Two people at once, an owner that died without a word, one that only seemed to be dead (cases C92, C93, C102)."""

from __future__ import annotations

import time
from typing import Any

from flows.demo.traffic.generations import TABLE
from steps.hold import LONGEST_IDLE_S
from steps.ownership import lock_name
from tests.faults.kinds.kind import HURRY, Kind, owned
from tests.faults.points import Point
from tests.faults.scene import Scene

BUSY = 6
BEAT_S, LETS_GO_S = 0.3, 8
LONG_AGO = "2001-01-01"


def _seen(scene: Scene) -> dict[str, Any]:
    """What somebody who does not own the table must not change. In a hold nobody can look; what waits for its COMMIT was done before."""
    stage = scene.world.theatre.stage
    return {} if scene.point.in_hold or scene.point.name.endswith("'s COMMIT") else {**stage.left(), "rows": stage.table()}


def _refuse_changes(scene: Scene, who: str, before: dict[str, Any]) -> None:
    after = _seen(scene) if before else {}
    scene.wrong += [f"{who} changed {what}: {before[what]} to {after[what]}" for what in before if before[what] != after[what]]


def second(command: str | None) -> Any:
    """A second command while the first is at work: it is told so and changes nothing, and the first does not notice."""
    def play(scene: Scene) -> None:
        began, before = time.monotonic(), _seen(scene)
        told = scene.second_operator(command)
        if told["ended"] != BUSY and told.get("said") != "nothing to do":
            scene.wrong.append(f"the second operator ended with {told['ended']}: {told.get('said')}")
        _refuse_changes(scene, "the second operator", before)
        paused_s = time.monotonic() - began + 1
        scene.struck()
        first = scene.wait()
        if first["ended"] and not (scene.point.in_hold and paused_s > LONGEST_IDLE_S):  # the server lets a silent hold go
            scene.wrong.append(f"the first operator was disturbed and ended with {first['ended']}: {first.get('said')}")

    return play


def at_once(scene: Scene) -> None:
    """Both have looked and neither has taken the table yet; the second is faster and ends before the first one goes on."""
    told = scene.second_operator()
    if told["ended"]:
        scene.wrong.append(f"the faster operator ended with {told['ended']}: {told.get('said')}")
    before = _seen(scene)
    scene.struck()
    scene.wait()
    _refuse_changes(scene, "the slower operator", before)


def taken_over(scene: Scene) -> None:
    """The lock is lost and somebody else does the work; the first one comes back and must stop before its next change."""
    scene.kill_connection("lock")
    _another_takes_over(scene)


def frozen(scene: Scene) -> None:
    """The owner's machine stands still until the server has given its silence up; then the other one takes over."""
    scene.freeze()
    try:
        _until_let_go(scene)
        _another_takes_over(scene, thaw=True)
    finally:
        scene.thaw()


def _until_let_go(scene: Scene) -> None:
    deadline, name = time.monotonic() + LETS_GO_S, lock_name(scene.world.theatre.stage.schema, TABLE)
    with scene.client() as send:
        while send("SELECT IS_USED_LOCK(%s)", name)[0][0] is not None:
            if time.monotonic() > deadline:
                scene.wrong.append("the lock of an owner that fell silent was never let go")
                return
            time.sleep(0.05)


def _another_takes_over(scene: Scene, *, thaw: bool = False) -> None:
    told = scene.second_operator()
    if told["ended"] not in ((0, 3, 4) if scene.point.in_hold else (0, 4)):  # the pre-checks name a session that holds the table
        scene.wrong.append(f"the second operator ended with {told['ended']}: {told.get('said')}")
    before = _seen(scene)
    if thaw:
        scene.thaw()
    scene.struck()
    scene.wait()
    _refuse_changes(scene, "the first operator, which had lost the table,", before)


def dead(scene: Scene) -> None:
    """An owner row of somebody who died long ago, whose lock went with the connection."""
    with scene.client() as send:
        send("REPLACE INTO _rollout_owner VALUES (DATABASE(), %s, REPEAT('0', 32), 'ai_analysis_job', 'gone', 'gone', 1, 1, %s, %s)",
             TABLE, LONG_AGO, LONG_AGO)
    first = scene.wait()
    if first["ended"]:
        scene.wrong.append(f"a dead owner was not taken over: {first['ended']}: {first.get('said')}")


def not_taken_yet(point: Point) -> bool:
    """Nor in the middle of giving it back, when the owner's row is gone and the lock is not."""
    return point.series == "live" and not point.owned and not point.name.startswith(("after release", "after DELETE"))


def before_taking(point: Point) -> bool:
    return point.name.startswith("before take")


KINDS = (
    Kind("two operators: run", second("run"), owned, points=6),
    Kind("two operators: rollback", second("back"), owned, points=6),
    Kind("two operators: at once", at_once, not_taken_yet, points=2),
    Kind("lock lost and taken over", taken_over, owned, points=6, settings=HURRY),
    Kind("owner frozen and taken over", frozen, owned, points=4, settings=HURRY, more={"heartbeat_s": BEAT_S}),
    Kind("owner dead without a word", dead, before_taking, points=1),
)
