"""
`docker compose` as far as a deploy meets it: `ps --format json` and `up -d --wait`, with files merged in the order of `-f`.

`python compose_double.py STATE …`: STATE is a JSON file with the running containers, what was brought up, and how the next `up` ends
(`well`, `fails`, `unhealthy`, `hangs`, or `kills`, which ends whoever called, as kill -9 would).
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any


def main() -> int:
    file, words = Path(sys.argv[1]), sys.argv[2:]
    state, services = json.loads(file.read_text()), dict[str, Any]()
    while words[0] in ("-f", "-p"):
        if words[0] == "-f":
            for name, service in json.loads(Path(words[1]).read_text())["services"].items():
                services.setdefault(name, {}).update(service)
        words = words[2:]
    if state.get("away"):
        print("Cannot connect to the Docker daemon", file=sys.stderr)  # noqa: T201
        return 1
    code = ps(state, words) if words[0] == "ps" else up(state, services, words[-1])
    beside = file.with_suffix(".new")
    beside.write_text(json.dumps(state))
    beside.replace(file)
    if words[0] == "up" and state["next"] == "kills":
        file.write_text(json.dumps({**state, "next": "well"}))
        os.kill(os.getppid(), signal.SIGKILL)
    return code


def ps(state: dict[str, Any], words: list[str]) -> int:
    for container in state["containers"]:
        if container["Service"] == words[-1]:
            print(json.dumps(container))  # noqa: T201
    return 0


def up(state: dict[str, Any], services: dict[str, Any], name: str) -> int:
    state["ups"].append([name, services[name]["image"]])
    if state["next"] == "hangs":
        time.sleep(60)
    if state["next"] == "fails":
        print(f"Error response from daemon: manifest for {services[name]['image']} not found", file=sys.stderr)  # noqa: T201
        return 18
    for container in state["containers"]:
        if container["Service"] == name and not (state.get("keeps_exited") and container["State"] == "exited"):
            container.update(Image=services[name]["image"], State="running",
                             Health="unhealthy" if state["next"] == "unhealthy" else "healthy")
    return 1 if state["next"] == "unhealthy" else 0


if __name__ == "__main__":
    sys.exit(main())
