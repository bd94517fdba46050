"""
The deploy commands behind one address, `python -m tests.applications.replacing GENERATION FOLDER`.

`v1` replaces the instances of V0 by V1, `v0` those of V1 by V0, one by one: the new instance comes, healthy, to the proxy, then an old
one is drained and ends. Clients that speak V1's words come when no V0 is left to answer them, and go before one is back.
"""

from __future__ import annotations

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from flows.demo.traffic import Fleet
from flows.demo.traffic.process import URL_NAME
from tests.applications import service
from tests.applications.proxy import Proxy
from tests.applications.rolling import CLIENTS, OWNER, RATE_PER_S, TRAFFIC

REPLACED = {"v1": "v0", "v0": "v1"}
OLD_API, NEW_API = "api", "v1"
STACK, BEHIND = "prisma", "haproxy"
INSTANCES, PROXY = "instances", "proxy"


def come(url: str, folder: Path, name: str) -> None:
    """Start the instance *name*, `GENERATION-NUMBER`; the proxy sends it requests from when it is healthy. Safe to repeat."""
    proxy = Proxy(folder / PROXY)
    if name in names(folder):
        return
    owner = int((folder / OWNER).read_text())
    base = service.start(url, folder / INSTANCES / name, name.partition("-")[0], STACK, watched=owner)
    proxy.add(name, base)


def go(folder: Path, name: str) -> None:
    """Drain the instance *name*, and end it when it has answered what it has in hand."""
    proxy = Proxy(folder / PROXY)
    proxy.drain(name)
    stop(folder, name)
    proxy.remove(name)


def stop(folder: Path, name: str) -> None:
    """End the instance *name*, whatever the proxy sends it. Safe to repeat."""
    service.stop(folder / INSTANCES / name, name.partition("-")[0])


def pid(folder: Path, name: str) -> int:
    """The process of the instance *name*."""
    (file,) = (folder / INSTANCES / name).glob("*.json")
    return int(json.loads(file.read_text())["pid"])


def names(folder: Path) -> list[str]:
    """The instances that the proxy knows."""
    return sorted(instance.name for instance in Proxy(folder / PROXY).instances())


def come_all(url: str, folder: Path, generation: str, count: int) -> None:
    """Start *count* instances of *generation* at once, and then the clients of the one address."""
    with ThreadPoolExecutor() as starting:
        list(starting.map(lambda number: come(url, folder, f"{generation}-{number}"), range(1, count + 1)))
    clients(url, folder, OLD_API, 2 * CLIENTS, 2 * RATE_PER_S)


def replace(url: str, folder: Path, generation: str) -> None:
    """Replace all instances by *generation*, one by one. Safe to repeat: continues where it ended."""
    if generation != NEW_API:
        Fleet(url, folder / TRAFFIC).stop(NEW_API)
    for old in [name for name in names(folder) if name.startswith(f"{REPLACED[generation]}-")]:
        come(url, folder, f"{generation}-{old.partition('-')[2]}")
        go(folder, old)
        with (folder / "replaced").open("a") as log:
            log.write(f"{' '.join(names(folder))}\n")
    if generation == NEW_API:
        clients(url, folder, NEW_API, CLIENTS, RATE_PER_S)


def clients(url: str, folder: Path, generation: str, count: int, rate_per_s: float) -> None:
    """Start clients of the proxy's address."""
    owner = int((folder / OWNER).read_text())
    Fleet(url, folder / TRAFFIC).start(generation, clients=count, rate_per_s=rate_per_s, watched=owner,
                                       application=Proxy(folder / PROXY).address, stack=BEHIND)


def main() -> None:
    """Entry point; the URL comes by the environment, so that it is in no argument list."""
    replace(os.environ[URL_NAME], Path(sys.argv[2]), sys.argv[1])


if __name__ == "__main__":
    main()
