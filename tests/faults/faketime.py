"""
Clocks that are stepped under a process of ours: Debian's libfaketime, preloaded, fetched into the cache without installing it.

Time of day is stepped; the monotonic clock is not, since nobody can step that one on a real machine either.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from unittest import mock

from deploy.mysql_server import Server
from deploy.mysql_server.archive import Archive, unpack
from deploy.mysql_server.cache import kept
from deploy.mysql_server.errors import WayClosedError
from deploy.mysql_server.installation import unpacked
from deploy.mysql_server.running import running

PACKAGE, LIBRARY = "libfaketime", "libfaketimeMT.so.1"
ENTRY = "libfaketime-1"
READ_AGAIN_S = 1


class NoFaketimeError(RuntimeError):
    """libfaketime cannot be had on this machine: the tests of stepped clocks cannot run, and fail."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"no {PACKAGE}: {self.reason}; install it (Debian and Ubuntu: {PACKAGE})"


def provide_faketime() -> Path:
    """
    Return the library for programs with threads: the machine's, else the cache's, fetched first (10 MB with the archive's lists).

    Safe to repeat and by several processes at once; root rights are not needed.

    Raises:
        NoFaketimeError: this is not Debian or Ubuntu, or the archive cannot be reached or has no such package.
    """
    installed = next(Path("/usr/lib").glob(f"*/faketime/{LIBRARY}"), None)
    if installed:
        return installed
    try:
        return kept(ENTRY, _build) / LIBRARY
    except WayClosedError as closed:
        raise NoFaketimeError(closed.reason) from closed


def _build(folder: Path) -> None:
    apt, unpacked = folder / "apt", folder / "unpacked"
    apt.mkdir()
    packages = [deb for deb in Archive(apt, own_release=True).fetch((PACKAGE,)) if deb.name.startswith(f"{PACKAGE}_")]
    unpack(packages, unpacked)
    found = next(unpacked.glob(f"**/{LIBRARY}"), None)
    if not found:
        raise NoFaketimeError(f"the archive's package holds no {LIBRARY}")
    shutil.copy(found, folder / LIBRARY)
    for scaffold in (apt, unpacked):
        shutil.rmtree(scaffold)


class Clock:
    """The clock of every process that is started with it: the machine's until it is stepped."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "faketime"
        self.step(0)

    @property
    def environment(self) -> dict[str, str]:
        """What :func:`timed` and :data:`TOOL` need; the library itself is preloaded by them."""
        return {"FAKETIME_TIMESTAMP_FILE": str(self._file), "FAKETIME_DONT_FAKE_MONOTONIC": "1", "FAKETIME_FORCE_MONOTONIC_FIX": "0",
                "FAKETIME_CACHE_DURATION": str(READ_AGAIN_S)}

    def step(self, seconds: int) -> None:
        """From now on, within :data:`READ_AGAIN_S`, it is *seconds* ahead of the machine's, or behind it."""
        written = self._file.with_suffix(".new")
        written.write_text(f"{seconds:+d}\n")
        written.replace(self._file)


@contextmanager
def timed_server(clock: Clock, folder: Path | None = None, options: tuple[str, ...] = ()) -> Iterator[Server]:
    """A server of ours that goes by *clock*; MySQL's own packages, whose loader preloads the library for mysqld alone."""
    linker, *rest = unpacked().command
    installation = replace(unpacked(), command=(linker, "--preload", str(provide_faketime()), *rest))
    with mock.patch.dict(os.environ, clock.environment):
        started = running(installation, folder, options)
        server = started.__enter__()
    try:
        yield server
    finally:
        started.__exit__(None, None, None)


def timed_tool(clock: Clock) -> dict[str, str]:
    """The environment of a Python process that goes by *clock*; its first lines must be :data:`FIRST`."""
    return {**clock.environment, "LD_PRELOAD": str(provide_faketime())}


FIRST = "import select, time; time.sleep = lambda seconds: select.select([], [], [], seconds) and None; "
"""Under the library Python's own sleep fails (EINVAL): it asks for an absolute time of the clock that is not faked."""
