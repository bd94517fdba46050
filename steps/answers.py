"""
No answer is waited for for ever (cases C84, C93): a network that went silent sends neither the answer nor an end.

A statement may take hours, so there is no limit on its time. But once it has been out for a while, the server is asked over another
connection whether it still works on it. When it does not, twice in a row, or is another server by now, or cannot be asked for a
minute, then the connection is cut under whoever waits, who gets :class:`steps.errors.ConnectionLost` and looks what became of it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, Self

from steps import waits
from steps.errors import RolloutError, StatementFailed
from steps.quoting import VALUE

ASK_AFTER_S = 10.0
ASK_EVERY_S = 5.0
IN_A_ROW = 2
SILENT_S = 60.0
DOING = f"SELECT COMMAND FROM information_schema.PROCESSLIST WHERE ID = {VALUE}"
IDLE = "Sleep"
NOBODY_THERE = {0, 2002, 2003, 2006, 2013}


class Asked(Protocol):
    """What is needed of a session: its number and server, another one beside it, and its end."""

    connection_id: int
    server_uuid: str

    def beside(self) -> Self: ...

    def cut(self) -> None: ...

    def value(self, sql: str, *values: Any) -> Any: ...

    def run(self, sql: str, *values: Any) -> int: ...

    def close(self) -> None: ...


@dataclass(eq=False)
class _Out:
    """One statement that is out: since when, how often in a row it was not found at work, since when nobody could be asked."""

    session: Asked
    since_s: float
    not_at_work: int = 0
    unasked_since_s: float | None = None


_out: set[_Out] = set()
_lock = threading.Lock()
_asking: list[threading.Thread] = []


@contextmanager
def awaited(session: Asked, is_patient: bool) -> Iterator[None]:
    """While a statement of *session* is out, ask after it from time to time; where reads have a limit there is no need to."""
    if not is_patient:
        yield
        return
    out = _Out(session, waits.now_s())
    with _lock:
        _out.add(out)
        if not (_asking and _asking[0].is_alive()):  # a forked process has none
            _asking[:] = [threading.Thread(target=_ask_on, name="rollout-answers", daemon=True)]
            _asking[0].start()
    try:
        yield
    finally:
        with _lock:
            _out.discard(out)


def works_on(session: Asked, beside: Asked) -> bool:
    """Whether the server works for *session*, as *beside* sees it; another server never does, nor one that has no such connection."""
    if beside.server_uuid != session.server_uuid:
        return False
    return str(beside.value(DOING, session.connection_id) or IDLE) != IDLE


def ended(session: Asked, beside: Asked) -> None:
    """See to it that the server lets go of *session*, whose client is gone, and of all that it holds. Safe to repeat."""
    if beside.server_uuid != session.server_uuid:
        return
    try:
        beside.run(f"KILL {int(session.connection_id)}")
    except StatementFailed:
        return  # it ended by itself


def _ask_on() -> None:
    while True:
        threading.Event().wait(ASK_EVERY_S)
        with _lock:
            if not _out:
                _asking.clear()
                return
            due = [out for out in _out if waits.now_s() - out.since_s >= ASK_AFTER_S]
        for out in due:
            _ask(out)


def _ask(out: _Out) -> None:
    try:
        beside = out.session.beside()
        try:
            out.not_at_work = 0 if works_on(out.session, beside) else out.not_at_work + 1
            out.unasked_since_s = None
            if out.not_at_work >= IN_A_ROW and _is_out(out):
                ended(out.session, beside)
                out.session.cut()
        finally:
            beside.close()
    except RolloutError as error:
        _not_asked(out, error)


def _not_asked(out: _Out, error: RolloutError) -> None:
    """A server that answers with a refusal is there; one that does not answer is waited for only so long."""
    if getattr(error, "errno", 0) not in NOBODY_THERE:
        return
    out.unasked_since_s = out.unasked_since_s or waits.now_s()
    if waits.now_s() - out.unasked_since_s >= SILENT_S and _is_out(out):
        out.session.cut()


def _is_out(out: _Out) -> bool:
    with _lock:
        return out in _out
