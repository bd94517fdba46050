"""
Leaving with the code that was said, and in time.

A signal that comes when all is said must not change the code. And Prefect waits at the interpreter's end until its API has heard
everything, and a dead one never does.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from steps import cancellation

LEAVE_WITHIN_S = 10.0
_wanted = threading.Event()


_stoppable, _over = threading.Event(), threading.Event()


def stoppable() -> None:
    """
    From now on SIGTERM ends the command as Ctrl-C does, each once; in a run both are heeded at its safe edges (:mod:`steps.cancellation`).

    For the console script, whose process is its own; a program that calls the command line keeps its handlers.
    """
    _stoppable.set()
    _over.clear()
    for number in cancellation.SIGNALS:
        signal.signal(number, _stop)


def unstoppable() -> None:
    """
    What was to be done has ended, well or not: no signal asks for anything any more. Nothing where :func:`stoppable` was not called.

    Ignored by the system and not by a handler of ours: those Python takes off at its own end, and what comes then kills.
    """
    if _stoppable.is_set():
        _over.set()
        for number in cancellation.SIGNALS:
            signal.signal(number, signal.SIG_IGN)


@contextmanager
def staying() -> Iterator[None]:
    """For a process that calls the command line and does not end with it: signals mean afterwards what they meant before."""
    handlers = [(number, signal.getsignal(number)) for number in cancellation.SIGNALS]
    try:
        yield
    finally:
        for number, handler in handlers:
            signal.signal(number, handler)


def _stop(number: int, _frame: FrameType | None) -> None:
    if not _over.is_set() and cancellation.asks_anew():
        raise cancellation.Cancelled(signal.Signals(number).name)


def by_deadline() -> None:
    """From now on :func:`leaves` does not wait for Prefect for long. Only the command line asks for it, once it runs with Prefect."""
    _wanted.set()


def leaves(code: int) -> None:
    """
    The command has said all it has to say and ends with *code*: in :data:`LEAVE_WITHIN_S` at the latest, whoever still waits for whom.

    Every session is closed by now and every lock is gone; what Prefect has not heard is told by `rollout report --sync`.
    """
    unstoppable()
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
