"""The primary is lost and a replica takes its place that lacks what was done last (case C84)."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tests.faults import theatre
from tests.faults.couple import Couple, coupled
from tests.faults.kinds.kind import Kind
from tests.faults.scene import Scene
from tests.faults.world import FAST_DISK, OPTIONS, World

LATER_S = (0.0, 0.05, 0.1, 0.2, 0.35, 0.5)


@dataclass
class Led(World):
    """A world that comes to its servers by one address: application, tool and everybody else."""

    couple: Couple | None = None


@contextmanager
def in_a_couple(_: World) -> Iterator[World]:
    home = Path(tempfile.mkdtemp(prefix="faults-", dir=FAST_DISK if FAST_DISK.is_dir() else None))
    try:
        with coupled(OPTIONS, home / "servers") as couple, theatre.opened(couple.proxy.url(), home) as standing:
            yield Led(replace(couple.primary, url=couple.proxy.url()), standing, home, couple=couple)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _couple(scene: Scene) -> Couple:
    assert isinstance(scene.world, Led)
    assert scene.world.couple
    return scene.world.couple


def failed_over_later(scene: Scene) -> None:
    """What the tool does after the point is lost with the primary, a moment later or after its end."""
    couple, stage = _couple(scene), scene.world.theatre.stage
    couple.stand_still()
    scene.goes_on()
    time.sleep(LATER_S[scene.point.number % len(LATER_S)])
    if scene.point.number % 2:
        scene.wait()
    scene.struck()
    couple.fail_over()
    stage.reconnect()
    scene.wait()
    couple.follow_without(stage.schema)


KINDS = (Kind("failover, the last things lost", failed_over_later, points=6, around=in_a_couple),)
