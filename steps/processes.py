"""Whether a process that an earlier run of this tool started is still at work: asked of Linux's /proc, where this is the same machine."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any

PROC = Path("/proc")
ENDED = {"Z", "X"}
STATE, GROUP, STARTED = 0, 2, 19  # of /proc/PID/stat behind the name, which may hold anything


def this_machine() -> str | None:
    """Of this boot, and of this container; None where nothing tells."""
    try:
        return f"{(PROC / 'sys/kernel/random/boot_id').read_text().strip()} {(PROC / 'self/ns/pid').readlink()}"
    except OSError:
        return None


def described(pid: int) -> dict[str, Any]:
    """What :func:`is_at_work` has to know of *pid* later; it must be there now."""
    fields = _fields(pid)
    return {"host": socket.gethostname(), "machine": this_machine(), "pid": pid, "started": int(fields[STARTED]) if fields else None}


def is_at_work(known: dict[str, Any]) -> bool | None:
    """
    Whether the process that was :func:`described`, or another one of its group, is still there; None when that cannot be seen from here.

    One whose number was given to another program meanwhile is gone. What has left its group on purpose is not found.
    """
    here = this_machine()
    if here is None or known.get("machine") != here or known.get("started") is None:
        return None
    group, started = int(known["pid"]), int(known["started"])
    leader = _fields(group)
    if leader and int(leader[STARTED]) != started:
        return False
    return group_is_at_work(group)


def group_is_at_work(group: int) -> bool:
    """Whether a process of *group* is there and has not ended; what has ended and nobody has asked after yet does not count."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    if not PROC.is_dir():
        return True
    members = [fields for path in PROC.iterdir() if path.name.isdigit() and (fields := _fields(int(path.name)))
               and int(fields[GROUP]) == group]
    return any(fields[STATE] not in ENDED for fields in members)


def _fields(pid: int) -> list[str]:
    """Of /proc/PID/stat, from the state on; none when it is gone."""
    with suppress(OSError):
        return (PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    return []
