"""
Ctrl-C, SIGTERM and Cancel in the Prefect UI stop a run at its next safe edge: never half-way through a statement or a record.

A signal leaves a mark, and :func:`edge` raises it where something is about to begin: before a statement, in a wait, between two steps.
What the main thread waits for meanwhile, a long statement or a program, is ended from a thread beside it.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

import structlog

LOOK_EVERY_S = 0.1
END_EVERY_S = 0.5
JOINED_WITHIN_S = 1.0
PATIENCE_S = 10.0  # after that no edge is waited for; a runner of Prefect's kills after 30 s
CANCELLED_BY = "cancelled by "
SIGNALS = (signal.SIGINT, signal.SIGTERM)
log: structlog.stdlib.BoundLogger = structlog.get_logger("rollout")


class Cancelled(KeyboardInterrupt):
    """
    A person or the system asked the run to stop by *signal_name*; nothing is half done, and the same command continues.

    A KeyboardInterrupt, so that nothing on its way takes it for an error of the database, of a command or of a check.
    """

    exit_code = 4
    subject = "this run"
    remedy = "nothing is half done; the same command continues"

    def __init__(self, signal_name: str) -> None:
        super().__init__(signal_name)
        self.reason = CANCELLED_BY + signal_name

    def __str__(self) -> str:
        return self.reason


@dataclass
class _Asked:
    """What was asked for and how far that is; *enders* end what somebody waits for."""

    by: str = ""
    raised: bool = False
    at_once: bool = False
    heeding: bool = False
    untold: bool = False
    last_s: float = -PATIENCE_S
    enders: list[Callable[[], None]] = field(default_factory=list)


_asked = _Asked()


def edge(*, only_main: bool = False) -> None:
    """
    Nothing is half done here: stop if that was asked for.

    In the main thread only the first call raises, since what comes after it is the way out: roll back, release, record. In the thread of
    a lane each call does; *only_main* spares threads that nobody waits for.

    Raises:
        Cancelled: see there.
    """
    if not _asked.by:
        return
    if threading.current_thread() is threading.main_thread():
        if _asked.raised:
            return
        _asked.raised = True
    elif only_main:
        return
    raise Cancelled(_asked.by)


def asked() -> bool:
    """Whether the run was asked to stop: then nothing is tried again for long."""
    return bool(_asked.by)


def asks_anew() -> bool:
    """
    Whether a signal that comes now, where none is heeded at edges, asks for anything: not for a while after another one did.

    Whoever sends one often sends two: `timeout` and a terminal do so by themselves.
    """
    before_s, _asked.last_s = _asked.last_s, time.monotonic()
    return _asked.last_s - before_s >= PATIENCE_S


@contextmanager
def heeded(end_statements: Callable[[], None], cut: Callable[[], None] = lambda: None) -> Iterator[None]:
    """
    Until it ends SIGINT and SIGTERM are heeded at edges. Only in the main thread, and only the outermost; else nothing changes.

    *end_statements* is called, from another thread and as often as need be, to end statements that have run for a while; *cut*, once
    nobody has patience any more and also on the way out, to end the waiting for answers that do not come.
    """
    if _asked.heeding or threading.current_thread() is not threading.main_thread():
        yield
        return
    _asked.by, _asked.raised, _asked.at_once, _asked.heeding = "", False, False, True
    ended = threading.Event()
    beside = threading.Thread(target=_end_what_runs, args=(ended,), name="rollout-cancel", daemon=True)
    impatient = threading.Thread(target=_cut_what_waits, args=(ended, cut), name="rollout-cut", daemon=True)
    handlers = [signal.signal(number, _mark) for number in SIGNALS]
    try:
        beside.start()
        impatient.start()
        with ended_by(end_statements):
            yield
    finally:
        ended.set()
        if _asked.by:
            _asked.last_s = time.monotonic()  # the way out of a run that was asked to stop is no run that can be
        for number, handler in zip(SIGNALS, handlers, strict=True):
            signal.signal(number, handler)
        impatient.join()
        beside.join(JOINED_WITHIN_S)  # it may be opening a session on a server that does not answer
        _asked.by, _asked.raised, _asked.at_once, _asked.heeding = "", False, False, False


@contextmanager
def ended_by(end: Callable[[], None]) -> Iterator[None]:
    """*end* ends what the block waits for; called from another thread, more than once, when the run is asked to stop."""
    _asked.enders.append(end)
    try:
        yield
    finally:
        _asked.enders.remove(end)


@contextmanager
def at_once() -> Iterator[None]:
    """A question to a person: nothing is under way, so a signal stops the run then and there."""
    edge()
    _asked.at_once = True
    try:
        yield
    finally:
        _asked.at_once = False


@contextmanager
def untold() -> Iterator[None]:
    """Whoever only watches has nothing that a stop would have to wait for: none is told."""
    _asked.untold = True
    try:
        yield
    finally:
        _asked.untold = False


def _mark(number: int, _frame: FrameType | None) -> None:
    """Takes no lock and writes nothing: it may come in the middle of anything. A second signal asks for nothing new."""
    if not _asked.by:
        _asked.by = signal.Signals(number).name
    if _asked.at_once:
        edge()


def _cut_what_waits(ended: threading.Event, cut: Callable[[], None]) -> None:
    """Apart from :func:`_end_what_runs`, which a server that does not answer holds up."""
    asked_s = 0.0
    while not ended.wait(LOOK_EVERY_S):
        if _asked.by:
            asked_s = asked_s or time.monotonic()
            if time.monotonic() - asked_s >= PATIENCE_S:
                cut()


def _end_what_runs(ended: threading.Event) -> None:
    waited_s = 0.0
    while not ended.wait(LOOK_EVERY_S):
        if not _asked.by or _asked.raised:
            continue
        if not waited_s and not _asked.untold:
            log.warning("stopping at the next safe edge", asked_by=_asked.by)
        waited_s = _end_once(ended, waited_s)


def _end_once(ended: threading.Event, waited_s: float) -> float:
    """End what runs now, wait a moment; how long has been waited by then."""
    began_s = time.monotonic()
    for end in tuple(_asked.enders):
        end()
    if waited_s >= PATIENCE_S and not ended.is_set():
        _asked.at_once = True
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
    ended.wait(END_EVERY_S)
    return waited_s + time.monotonic() - began_s
