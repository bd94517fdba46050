"""MySQL dies (kill -9) and comes back, at a point and inside a statement; or answers nothing for a while (cases C28, C84)."""

from __future__ import annotations

import os
import signal
import time

from tests.faults.kinds.kind import HURRY, Kind, in_a_statement
from tests.faults.scene import Scene

FROZEN_S = 1.0


def killed(scene: Scene) -> None:
    """It is back before the tool looks again: only the connections are gone."""
    scene.world.kill_server()
    scene.world.start_server()
    scene.struck()
    scene.wait()


def down(scene: Scene) -> None:
    """Nobody answers when the tool looks again."""
    scene.world.kill_server()
    try:
        scene.wait()
    finally:
        scene.world.start_server()


def killed_in_a_statement(scene: Scene) -> None:
    try:
        with scene.writes_wait():
            scene.goes_on()
            scene.hit = bool(scene.seen_waiting())
            scene.struck()
            scene.world.kill_server()
            scene.wait()
    finally:
        scene.world.start_server()


def frozen(scene: Scene) -> None:
    pid = scene.world.server.pid
    assert pid
    os.kill(pid, signal.SIGSTOP)
    try:
        scene.goes_on()
        time.sleep(FROZEN_S)
    finally:
        os.kill(pid, signal.SIGCONT)
    scene.struck()
    scene.wait()


KINDS = (
    Kind("server killed and back", killed, points=3),
    Kind("server killed and down", down, points=3),
    Kind("server killed in a statement", killed_in_a_statement, in_a_statement, points=3, settings=HURRY),
    Kind("server frozen for a second", frozen, points=2),
)
