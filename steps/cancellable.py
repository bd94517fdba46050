"""
Statements of ours that a cancelled run does not wait for: each is an edge when it begins, and is ended by KILL QUERY when it lasts.

What must come whole is spared: the records in the ledger, the named lock, the watchdog. The server undoes what it ends.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, Protocol

from steps import cancellation, waits
from steps.errors import RolloutError, StatementFailed
from steps.target import Target

LASTS_S = 0.5
INTERRUPTED = 1317
WORKS = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE COMMAND = 'Query' AND USER = SUBSTRING_INDEX(USER(), '@', 1) AND ID = "


class Sent(Protocol):
    """What is needed of a session."""

    connection_id: int
    target: Target

    def run(self, sql: str, *values: Any) -> int: ...

    def value(self, sql: str, *values: Any) -> Any: ...

    def cut(self) -> None: ...


_spared: weakref.WeakSet[Sent] = weakref.WeakSet()
_out: dict[int, tuple[Sent, float]] = {}
_ended: set[int] = set()


def spared(*sessions: Sent) -> None:
    """Never hold back or end a statement of these sessions."""
    _spared.update(sessions)


@contextmanager
def statement(session: Sent) -> Iterator[None]:
    """
    Around each statement of *session*.

    Raises:
        Cancelled: before it is sent; in place of the server's 1317; or of an answer that was cut short, as SLEEP's is without an error.
    """
    if session in _spared:
        with _waited_for(session):
            yield
        return
    cancellation.edge(only_main=True)
    _ended.discard(id(session))
    try:
        with _waited_for(session):
            yield
    except Exception as error:
        if error.args[:1] == (INTERRUPTED,):
            cancellation.edge(only_main=True)
        raise
    if id(session) in _ended:
        cancellation.edge(only_main=True)


@contextmanager
def _waited_for(session: Sent) -> Iterator[None]:
    _out[id(session)] = session, waits.now_s()
    try:
        yield
    finally:
        _out.pop(id(session), None)


def _lasting() -> list[Sent]:
    """Sessions that have waited for an answer for a moment."""
    return [session for session, since_s in tuple(_out.values()) if waits.now_s() - since_s >= LASTS_S]


def cut_lasting() -> None:
    """
    End every connection that has waited for an answer for a moment, spared ones too: whoever waits gets ConnectionLost.

    For the way out of a run on a server that does not answer. It lets go of what it holds for us as after a kill -9. Safe to repeat.
    """
    for session in _lasting():
        session.cut()


def end_lasting(target: Target, beside: Callable[[], AbstractContextManager[Sent]]) -> None:
    """Over a session *beside* end each statement on *target*'s server that has been out for a moment. Best effort; safe to repeat."""
    lasting = [session for session in _lasting()
               if session not in _spared and session.target.url.set(database=None) == target.url.set(database=None)]
    if not lasting:
        return
    with suppress(RolloutError), beside() as killer:
        for session in lasting:
            number = int(getattr(session, "connection_id", 0))  # 0: it is opening still
            if number and id(session) in _out and killer.value(f"{WORKS}{number}"):
                _ended.add(id(session))
                with suppress(StatementFailed):  # it ended by itself
                    killer.run(f"KILL QUERY {number}")
