"""An haproxy that runs: the one on the PATH, or Debian's package unpacked into the cache with its own libraries."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from deploy.mysql_server.archive import Archive, unpack
from deploy.mysql_server.cache import kept
from deploy.mysql_server.errors import WayClosedError
from deploy.mysql_server.installation import loader

PACKAGE = "haproxy"
PROGRAM = "usr/sbin/haproxy"
OLDEST = (2, 6)  # the first whose servers come and go at runtime without being called an experiment
ENTRY = "haproxy-1"
REMEDY = "install HAProxy 2.6 or newer (Debian: haproxy) and put it on the PATH"


class NoProxyError(RuntimeError):
    """HAProxy cannot be had on this machine: the tests of a rolling deploy cannot run, and fail."""

    def __init__(self, reason: str, remedy: str = REMEDY) -> None:
        super().__init__(reason, remedy)
        self.reason, self.remedy = reason, remedy

    def __str__(self) -> str:
        return f"no {PACKAGE}: {self.reason}; {self.remedy}"


def provide_haproxy() -> tuple[str, ...]:
    """
    Return the command of an haproxy of version 2.6 or newer: the PATH's, else the cache's, fetched first (20 MB, 10 s).

    Safe to repeat and by several processes at once; root rights are not needed.

    Raises:
        NoProxyError: this is not Debian or Ubuntu, the archive cannot be reached, or its version is older.
    """
    found = shutil.which(PACKAGE)
    if found and _version((found,)) >= OLDEST:
        return (found,)
    try:
        return _command(kept(ENTRY, _build))
    except WayClosedError as closed:
        raise NoProxyError(closed.reason) from closed


def _build(folder: Path) -> None:
    apt, unpacked = folder / "apt", folder / "unpacked"
    apt.mkdir()
    unpack(Archive(apt).fetch((PACKAGE,)), unpacked)
    shutil.rmtree(apt)
    for part in ("usr/lib", *(name for name in ("lib", "lib64") if (unpacked / name).is_dir())):
        (unpacked / part).rename(_made(folder / part))
    (unpacked / PROGRAM).rename(_made(folder / PROGRAM))
    shutil.rmtree(unpacked)
    if _version(_command(folder)) < OLDEST:
        raise NoProxyError("the archive's HAProxy does not run here or is older than 2.6")


def _made(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _command(prefix: Path) -> tuple[str, ...]:
    return (*loader(prefix), str(prefix / PROGRAM))


def _version(command: tuple[str, ...]) -> tuple[int, int]:
    try:
        stated = subprocess.run([*command, "-v"], capture_output=True, text=True, check=False, timeout=30).stdout
    except (OSError, subprocess.TimeoutExpired):
        return (0, 0)
    found = re.search(r"(?i)version (\d+)\.(\d+)", stated)
    return (int(found[1]), int(found[2])) if found else (0, 0)
