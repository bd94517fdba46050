"""
The deploy commands of the traffic, `python -m tests.applications.rolling COMMAND FOLDER`.

`v1` puts V1 out beside V0, `v0` takes it back, `v2` replaces V0 and V1 by V2, `v1-again` replaces V2 by V1 and V0. A generation
comes as its applications, healthy, and then the traffic on them; it goes the other way round. `shadow-on` and `shadow-off` switch V1's
own shadow write while it runs.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from flows.demo.traffic import Fleet
from flows.demo.traffic.process import URL_NAME
from tests.applications import service

STACKS = {"v0": ("prisma", "sqlalchemy"), "v1": ("prisma",), "v2": ("prisma",)}
ROLLING: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "v1": (("v1",), ()), "v0": ((), ("v1",)), "v2": (("v2",), ("v1", "v0")), "v1-again": (("v1", "v0"), ("v2",))}
SWITCHES = {"shadow-on": True, "shadow-off": False}
CLIENTS, RATE_PER_S = 3, 16
TRAFFIC = "traffic"
OWNER = "owner"


def come(url: str, folder: Path, generation: str) -> None:
    """Start *generation*: each of its applications, then its clients. All end with the process whose pid is in *folder*."""
    owner = int(json.loads((folder / OWNER).read_text()))
    fleet = Fleet(url, folder / TRAFFIC)

    def start(stack: str) -> None:
        base = service.start(url, folder, generation, stack, watched=owner)
        fleet.start(generation, clients=CLIENTS, rate_per_s=RATE_PER_S, watched=owner, application=base, stack=stack)

    with ThreadPoolExecutor() as starting:
        list(starting.map(start, STACKS[generation]))


def go(url: str, folder: Path, generation: str) -> None:
    """End *generation*: its clients finish what is in hand, then its applications end. Safe to repeat."""
    Fleet(url, folder / TRAFFIC).stop(generation)
    service.stop(folder, generation)


def switched(folder: Path, *, on: bool | None = None) -> dict[str, Any]:
    """V1's own shadow write, which is turned on or off unless *on* is None: whether it is on, and how many of its writes there were."""
    body = None if on is None else json.dumps({"on": on}).encode()
    request = urllib.request.Request(f"{service.base_url(folder, 'v1', 'prisma')}/shadow-write", body, method="PUT" if body else "GET")  # noqa: S310  # our own loopback address
    with urllib.request.urlopen(request, timeout=10) as response:  # noqa: S310
        return dict(json.load(response))


def main() -> None:
    """Entry point; the URL comes by the environment, so that it is in no argument list."""
    command, folder, url = sys.argv[1], Path(sys.argv[2]), os.environ[URL_NAME]
    if command in SWITCHES:
        switched(folder, on=SWITCHES[command])
        return
    comes, goes = ROLLING[command]
    for generation in comes:
        come(url, folder, generation)
    for generation in goes:
        go(url, folder, generation)


if __name__ == "__main__":
    main()
