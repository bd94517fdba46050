"""Leaving in time: Prefect waits at the interpreter's end until its API has heard everything, and a dead one never does."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress

LEAVE_WITHIN_S = 10.0
_wanted = threading.Event()


def by_deadline() -> None:
    """From now on :func:`leaves` does not wait for Prefect for long. Only the command line asks for it, once it runs with Prefect."""
    _wanted.set()


def leaves(code: int) -> None:
    """
    The command has said all it has to say and ends with *code*: in :data:`LEAVE_WITHIN_S` at the latest, whoever still waits for whom.

    Every session is closed by now and every lock is gone; what Prefect has not heard is told by `rollout report --sync`.
    """
    if _wanted.is_set():
        threading.Thread(target=_leave, args=(code,), name="rollout-leaving", daemon=True).start()


def _leave(code: int) -> None:
    threading.Event().wait(LEAVE_WITHIN_S)
    if not getattr(threading, "_SHUTTING_DOWN", True):
        return  # somebody called the command line from a program of theirs, which goes on
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
