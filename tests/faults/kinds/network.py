"""
The network loses answers, falls silent or lets nobody in (cases C84, C93), by a proxy of ours between the tool and MySQL.

The application goes to the server itself. A statement whose answer is lost goes on at the server.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, fields

from tests.faults.cutting_proxy import HOST_OF, CuttingProxy, port_of
from tests.faults.kinds.kind import Kind
from tests.faults.points import Point
from tests.faults.scene import Scene
from tests.faults.world import World

A_WHILE_S = 0.4
QUICKLY = {"impatient": True, "heartbeat_s": 0.5}
MAIN = ("worker", "ledger", "lock")
ALL = (*MAIN, "watchdog", "others")


@dataclass
class Proxied(World):
    """A world whose tool comes to the server through *proxy*."""

    proxy: CuttingProxy | None = None

    @property
    def url(self) -> str:
        assert self.proxy
        return self.proxy.url(self.theatre.stage.schema)


@contextmanager
def through_a_proxy(world: World) -> Iterator[World]:
    with CuttingProxy(world.server.url) as proxy:
        yield Proxied(**{field.name: getattr(world, field.name) for field in fields(World)}, proxy=proxy)


def _proxy(scene: Scene) -> CuttingProxy:
    assert isinstance(scene.world, Proxied)
    assert scene.world.proxy
    return scene.world.proxy


def _arm(scene: Scene, names: tuple[str, ...], how: str) -> None:
    sessions = scene.told["sessions"]
    numbers = [n for name in names for n in (sessions["others"] if name == "others" else [sessions.get(name)]) if n]
    scene.hit = bool(numbers)
    with scene.client() as send:
        for number in numbers:
            for (host,) in send(HOST_OF, number):
                _proxy(scene).arm(port_of(host), how)


def lost(names: tuple[str, ...], how: str) -> Callable[[Scene], None]:
    """The next statement of these connections comes to the server, and its answer does not come back."""
    def play(scene: Scene) -> None:
        _arm(scene, names, how)
        scene.wait()

    return play


def silent(scene: Scene) -> None:
    """No connection that is open carries anything any more, and none of them ends; new ones are let in."""
    _proxy(scene).silence_all()
    scene.wait()


@contextmanager
def _refusing(proxy: CuttingProxy) -> Iterator[None]:
    proxy.refuse(refusing=True)
    try:
        yield
    finally:
        proxy.refuse(refusing=False)


@contextmanager
def _swallowing(proxy: CuttingProxy) -> Iterator[None]:
    proxy.swallow(swallowing=True)
    try:
        yield
    finally:
        proxy.swallow(swallowing=False)


def refused(scene: Scene) -> None:
    """Nobody new is let in until the tool has ended."""
    with _refusing(_proxy(scene)):
        scene.wait()


def reset(shut: Callable[[CuttingProxy], AbstractContextManager[None]]) -> Callable[[Scene], None]:
    """Every connection is reset, and for a while whoever comes anew finds the door as *shut* leaves it."""
    def play(scene: Scene) -> None:
        with shut(_proxy(scene)):
            _proxy(scene).cut_all()
            scene.goes_on()
            time.sleep(A_WHILE_S)
        scene.wait()

    return play


def _has_others(point: Point) -> bool:
    """In a hold and in a rehearsal there is one more session."""
    return point.in_hold or point.series == "clone"


def _live(point: Point) -> bool:
    return point.series == "live"


def _owned_before_its_end(point: Point) -> bool:
    return point.owned


FITS: dict[str, Callable[[Point], bool]] = {"lock": _owned_before_its_end, "others": _has_others}

KINDS = (
    *(Kind(f"answer lost: {name}", lost((name,), "cut"), FITS.get(name, _live), more=QUICKLY, around=through_a_proxy)
      for name in (*MAIN, "others")),
    *(Kind(f"answer lost, server kept: {name}", lost((name,), "half"), FITS.get(name, _live), points=3, more=QUICKLY,
           keeps_sessions=True, around=through_a_proxy) for name in ("worker", "lock", "others")),
    *(Kind(f"silent: {name}", lost((name,), "silent"), FITS.get(name, _live), points=3, more=QUICKLY, keeps_sessions=True,
           around=through_a_proxy)
      for name in (*MAIN, "others")),
    Kind("answers lost: all", lost(ALL, "cut"), points=4, more=QUICKLY, around=through_a_proxy),
    Kind("silent: all", silent, points=4, more=QUICKLY, keeps_sessions=True, around=through_a_proxy),
    Kind("nobody let in", refused, points=3, more=QUICKLY, around=through_a_proxy),
    Kind("reset, nobody let in for a while", reset(_refusing), points=3, more=QUICKLY, around=through_a_proxy),
    Kind("reset, let in and not answered", reset(_swallowing), points=2, more=QUICKLY, keeps_sessions=True, around=through_a_proxy),
)
