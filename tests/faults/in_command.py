"""A point inside each program that the plan names: it waits until whoever counts points has passed it, or for a few seconds."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from steps import cancellation

MARK, GO = "FAULT_MARK", "FAULT_GO"
LONGEST = 150  # turns of 10 ms, for one whose tool was killed: the same command waits for its end
COMMAND = f': > "${MARK}"; n=0; while [ ! -e "${GO}" ] && [ $n -lt {LONGEST} ]; do sleep 0.01; n=$((n+1)); done; rm -f "${GO}"'
KEYS = ("deploy.command", "deploy.rollback_command", "cleanup.deploy", "cleanup.rollback_deploy", "shadow_write.enable_command",
        "shadow_write.disable_command")
SETTINGS = tuple(f"{key}={COMMAND}" for key in KEYS)


def install(point: Callable[[str], Any], folder: str) -> None:
    """
    In this process's own copy of the tool, which looks for an edge all the while a program runs.

    Whoever stops the run at the point stops it while the program is at work; else it is told to go on behind it.
    """
    mark, go = (Path(f"{folder}.{os.getpid()}.{name}") for name in ("mark", "go"))
    os.environ |= {MARK: str(mark), GO: str(go)}
    real = cancellation.edge

    def edge(*, only_main: bool = False) -> None:
        begun = mark.exists()
        if begun:
            mark.unlink()
            point("in the command")
        real(only_main=only_main)
        if begun:
            go.touch()

    cancellation.edge = edge
