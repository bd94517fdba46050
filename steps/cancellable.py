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
        yield
        return
    cancellation.edge(only_main=True)
    _out[id(session)] = session, waits.now_s()
    _ended.discard(id(session))
    try:
        yield
    except Exception as error:
        if error.args[:1] == (INTERRUPTED,):
            cancellation.edge(only_main=True)
        raise
    finally:
        _out.pop(id(session), None)
    if id(session) in _ended:
        cancellation.edge(only_main=True)


def end_lasting(target: Target, beside: Callable[[], AbstractContextManager[Sent]]) -> None:
    """Over a session *beside* end each statement on *target*'s server that has been out for a moment. Best effort; safe to repeat."""
    lasting = [session for session, since_s in tuple(_out.values()) if waits.now_s() - since_s >= LASTS_S
               and session.target.url.set(database=None) == target.url.set(database=None)]
    if not lasting:
        return
    with suppress(RolloutError), beside() as killer:
        for session in lasting:
            number = int(getattr(session, "connection_id", 0))  # 0: it is opening still
            if number and id(session) in _out and killer.value(f"{WORKS}{number}"):
                _ended.add(id(session))
                with suppress(StatementFailed):  # it ended by itself
                    killer.run(f"KILL QUERY {number}")
