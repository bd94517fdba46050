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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flows.demo.traffic import Fleet
from flows.demo.traffic.process import URL_NAME
from tests.applications import service

ROLLING: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "v1": (("v1",), ()), "v0": ((), ("v1",)), "v2": (("v2",), ("v1", "v0")), "v1-again": (("v1", "v0"), ("v2",))}
SWITCHES = {"shadow-on": True, "shadow-off": False}
CLIENTS, RATE_PER_S = 3, 16
TRAFFIC = "traffic"
OWNER, DRIVEN_BY = "owner", "driven-by"


@dataclass(frozen=True)
class Driver:
    """Who drives the applications: a module with the arguments of `flows.demo.traffic`; the rate is for all of its clients of one stack."""

    module: str
    stacks: dict[str, tuple[str, ...]]
    rate_per_s: float
    clients: int = CLIENTS


DRIVERS = {
    "roles": Driver("flows.demo.traffic", {"v0": ("prisma", "sqlalchemy"), "v1": ("prisma",), "v2": ("prisma",)}, RATE_PER_S),
    "habits": Driver("tests.applications.habits", {"v0": ("sqlalchemy",), "v1": ("prisma",), "v2": ("prisma",)}, 36, 9)}


def come(url: str, folder: Path, generation: str) -> None:
    """Start *generation*: its applications, and the clients of each. All end with the process whose pid is in *folder*."""
    owner = int(json.loads((folder / OWNER).read_text()))
    fleet, driven = Fleet(url, folder / TRAFFIC), json.loads((folder / DRIVEN_BY).read_text())
    drivers = [DRIVERS[name] for name in driven["by"]]

    def start(stack: str) -> None:
        base = service.start(url, folder, generation, stack, watched=owner)
        for driver in (driver for driver in drivers if stack in driver.stacks[generation]):
            fleet.start(generation, clients=driver.clients, rate_per_s=driver.rate_per_s * driven["pace"], watched=owner, application=base,
                        stack=stack, module=driver.module)

    with ThreadPoolExecutor() as starting:
        list(starting.map(start, dict.fromkeys(stack for driver in drivers for stack in driver.stacks[generation])))


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
