"""Prefect's API is killed, falls silent or answers 500 while the tool is at work, or was never there (cases C98 to C101)."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from flows.cockpit import SETTINGS
from tests.doubles.api_relay import ApiRelay
from tests.faults.kinds.kind import Kind
from tests.faults.scene import Scene
from tests.faults.world import World

STARTS_WITHIN_S = 120
NOWHERE = "http://127.0.0.1:9/api"
UNDETERRED = frozenset({0})
HASTY = {"PREFECT_API_REQUEST_TIMEOUT": "1"}


@dataclass
class Cockpit(World):
    """A world whose tool tells Prefect, through *relay*."""

    relay: ApiRelay | None = None

    @property
    def more(self) -> dict[str, Any]:
        assert self.relay
        return {"prefect": True, "environment": {**HASTY, "PREFECT_API_URL": self.relay.url, "PREFECT_HOME": str(self.folder / "prefect")}}


@contextmanager
def prefect_server(home: Path) -> Iterator[str]:
    """A Prefect server on a port of its own, by its API's address; ends with the context."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environment = {**os.environ, **SETTINGS, "PREFECT_HOME": str(home), "PREFECT_SERVER_UI_ENABLED": "false"}
    with (home.parent / "prefect.log").open("wb") as log:
        server = subprocess.Popen([sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)],
                                  env=environment, stdout=log, stderr=log)
    try:
        _answers(server, f"http://127.0.0.1:{port}/api/health")
        yield f"http://127.0.0.1:{port}/api"
    finally:
        server.terminate()
        server.wait()


def _answers(server: subprocess.Popen[bytes], url: str) -> None:
    until = time.monotonic() + STARTS_WITHIN_S
    while True:
        try:
            urllib.request.urlopen(url, timeout=2).close()  # noqa: S310  # our own loopback server
        except OSError as error:
            if server.poll() is not None or time.monotonic() > until:
                raise AssertionError(f"Prefect's server did not start: {error}") from error
            time.sleep(0.1)
        else:
            return


@contextmanager
def with_prefect(world: World) -> Iterator[World]:
    with prefect_server(world.folder / "server-of-prefect") as api, ApiRelay(api) as relay:
        yield Cockpit(**{field.name: getattr(world, field.name) for field in fields(World)}, relay=relay)


def away(trouble: str) -> Callable[[Scene], None]:
    """From now on until the tool has ended."""
    def play(scene: Scene) -> None:
        assert isinstance(scene.world, Cockpit)
        relay = scene.world.relay
        assert relay
        getattr(relay, trouble)()
        try:
            scene.wait()
        finally:
            relay.well_again()

    return play


KINDS = (
    *(Kind(f"Prefect's API {how}", away(trouble), points=2, ends=UNDETERRED, around=with_prefect)
      for trouble, how in (("gone", "killed"), ("silent", "silent"), ("failing", "answers 500"))),
    Kind("Prefect's API never there", lambda scene: scene.wait() and None, points=1, ends=UNDETERRED,
         more={"prefect": True, "environment": {**HASTY, "PREFECT_API_URL": NOWHERE}}),
)
