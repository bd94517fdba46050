"""The server's disk is full: of its data, while the binary log has room; or of both, so that every commit waits for room (case C26)."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from deploy.mysql_server import provide
from tests.faults import theatre
from tests.faults.kinds.kind import Kind
from tests.faults.scene import Scene
from tests.faults.small_disk import SmallDisk, small_disk
from tests.faults.world import OPTIONS, World

MEGABYTES = 700
A_WHILE_S = 0.5
LOOKS_AGAIN_S = 75
AT_WORK = "SELECT ID FROM information_schema.PROCESSLIST WHERE COMMAND = 'Query' AND DB = DATABASE() AND ID <> CONNECTION_ID()"


@dataclass
class Stored(World):
    """A world whose server has its data on *disk*."""

    disk: SmallDisk | None = None


def on_a_small_disk(*, log_elsewhere: bool) -> Callable[[World], AbstractContextManager[World]]:
    @contextmanager
    def made(_: World) -> Iterator[World]:
        home = Path(tempfile.mkdtemp(prefix="faults-"))
        try:
            log = (f"--log-bin={home / 'binlog'}",) if log_elsewhere else ()
            with small_disk(home / "small", MEGABYTES) as disk, \
                    provide(folder=disk.folder / "server", options=(*OPTIONS, *log)) as server, \
                    theatre.opened(server.url, home) as standing:
                yield Stored(server, standing, home, disk=disk)
        finally:
            shutil.rmtree(home, ignore_errors=True)

    return made


def _disk(scene: Scene) -> SmallDisk:
    assert isinstance(scene.world, Stored)
    assert scene.world.disk
    return scene.world.disk


def full(scene: Scene) -> None:
    """Until the tool has ended."""
    _disk(scene).fill()
    try:
        scene.wait()
    finally:
        _disk(scene).empty()
        _settled(scene)


def _settled(scene: Scene) -> None:
    """A server that waits for room looks again once a minute only; until then what waits for its COMMIT keeps its row locks."""
    with scene.client() as send:
        deadline = time.monotonic() + LOOKS_AGAIN_S
        while send(AT_WORK) and time.monotonic() < deadline:
            time.sleep(0.2)


def full_for_a_while(scene: Scene) -> None:
    _disk(scene).fill()
    try:
        scene.goes_on()
        time.sleep(A_WHILE_S)
    finally:
        _disk(scene).empty()
    scene.wait()


KINDS = (
    Kind("disk full of data", full, points=5, around=on_a_small_disk(log_elsewhere=True)),
    Kind("disk full of everything", full, points=3, more={"impatient": True}, around=on_a_small_disk(log_elsewhere=False)),
    Kind("disk full for a while", full_for_a_while, points=3, around=on_a_small_disk(log_elsewhere=False)),
)
