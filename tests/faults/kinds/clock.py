"""The server's clock, or the tool's, jumps by hours and back (case C84)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from unittest import mock

from tests.faults import world
from tests.faults.faketime import READ_AGAIN_S, Clock
from tests.faults.kinds.kind import Kind
from tests.faults.scene import Scene
from tests.faults.world import World

HOURS = 36_000


@dataclass
class Timed(World):
    """A world in which one side's *clock* can be stepped."""

    clock: Clock | None = None


def with_a_clock(*, of_server: bool) -> Callable[[World], AbstractContextManager[World]]:
    @contextmanager
    def made(standing: World) -> Iterator[World]:
        clock = Clock(standing.folder)
        with mock.patch.dict(os.environ, clock.environment if of_server else {}):
            opened = world.opened(None if of_server else clock.environment)
            other = opened.__enter__()
        try:
            yield Timed(other.server, other.theatre, other.folder, clock=clock)
        finally:
            opened.__exit__(None, None, None)

    return made


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


KINDS = tuple(Kind(f"{whose} clock {how}", stepped(seconds), points=3, around=with_a_clock(of_server=whose == "server's"))
              for whose in ("server's", "tool's") for how, seconds in (("ten hours ahead", HOURS), ("ten hours back", -HOURS)))
