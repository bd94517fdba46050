"""Waiting until something of a process that is at work can be seen, bounded."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable

import pymysql


def seen(what: Callable[[], object], process: subprocess.Popen[str] | None = None, within_s: float = 60) -> None:
    """Until *what* is seen; the *process* must be at work all the while."""
    until = time.monotonic() + within_s
    while not _looked(what):
        assert process is None or process.poll() is None, process.communicate()
        assert time.monotonic() < until, "never seen"
        time.sleep(0.02)


def _looked(what: Callable[[], object]) -> bool:
    try:
        return bool(what())
    except pymysql.err.ProgrammingError:
        return False  # the ledger is not there yet
