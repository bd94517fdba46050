"""
Whether the table is still ours, for waits that send nothing to the server: a command at work, a health question, a pause (case C93).

Where a statement goes the table's owner is checked by that statement's session. Between two statements only the heartbeat knows, in a
thread of its own; what it has seen is asked for here, at each edge of a wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar

from steps.errors import OwnershipLost

Lost = Callable[[], OwnershipLost | None]
_lost: ContextVar[Lost | None] = ContextVar("lost", default=None)


def edge() -> None:
    """
    Asks nobody; costs nothing.

    Raises:
        OwnershipLost: the heartbeat of the run in whose thread this is has met the loss of its lock. Each time, until the run has ended.
    """
    lost = _lost.get()
    error = lost() if lost else None
    if error:
        raise error


@contextmanager
def watched(lost: Lost | None) -> Iterator[None]:
    """In the block, in this thread and in those that get a copy of its context, *lost* says whether the table is gone; else nobody does."""
    token = _lost.set(lost)
    try:
        yield
    finally:
        _lost.reset(token)


def unasked() -> AbstractContextManager[None]:
    """For what has to be looked up or written down all the same, once the table is lost."""
    return watched(None)
