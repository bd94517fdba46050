"""The server's clock jumps by hours and back (case C84); the tool's is only ever held against it, and has tests of its own."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.faults import theatre
from tests.faults.faketime import READ_AGAIN_S, Clock, timed_server
from tests.faults.kinds.kind import Kind
from tests.faults.scene import Scene
from tests.faults.world import FAST_DISK, OPTIONS, World

HOURS = 36_000


@dataclass
class Timed(World):
    """A world whose server goes by *clock*."""

    clock: Clock | None = None


@contextmanager
def with_a_clock(_: World) -> Iterator[World]:
    home = Path(tempfile.mkdtemp(prefix="faults-", dir=FAST_DISK if FAST_DISK.is_dir() else None))
    clock = Clock(home)
    try:
        with timed_server(clock, home / "server", OPTIONS) as server, theatre.opened(server.url, home) as standing:
            yield Timed(server, standing, home, clock=clock)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def stepped(seconds: int) -> Callable[[Scene], None]:
    def play(scene: Scene) -> None:
        assert isinstance(scene.world, Timed)
        clock = scene.world.clock
        assert clock
        clock.step(seconds)
        time.sleep(READ_AGAIN_S)
        scene.struck()
        try:
            scene.wait()
        finally:
            clock.step(0)
            time.sleep(READ_AGAIN_S)

    return play


KINDS = tuple(Kind(f"server's clock {how}", stepped(seconds), points=3, around=with_a_clock)
              for how, seconds in (("ten hours ahead", HOURS), ("ten hours back", -HOURS)))
