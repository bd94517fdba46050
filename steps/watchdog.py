"""
Bounded waiting: a second connection KILLs our own statement when it has waited for a metadata lock too long (design section 2).

`lock_wait_timeout` counts whole seconds and is only the backstop. Never kills anybody else's statement.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from steps.errors import StatementFailed
from steps.mysql import VALUE, Session

POLL_S = 0.02
START_S = 0.05  # a long statement's first request for a lock is over by then
WAITING = "Waiting for % lock%"


class Watchdog:
    """Watches one of our sessions through a connection of its own."""

    def __init__(self, session: Session) -> None:
        self.session = session

    @contextmanager
    def after(self, connection_id: int, seconds: float) -> Iterator[None]:
        """
        Kill *connection_id*'s statement if after *seconds* it stands in a lock queue; looked at again and again until it ends.

        A statement that is merely slow on a busy server is left alone: it holds nobody up by waiting.
        """
        ended = threading.Event()

        def bark() -> None:
            while not ended.wait(seconds):
                if self._is_waiting(connection_id):
                    self._kill(connection_id)

        with _running(bark, ended):
            yield

    @contextmanager
    def while_waiting(self, connection_id: int, seconds: float) -> Iterator[None]:
        """Kill *connection_id*'s statement when it has stood waiting for a lock for *seconds* at a stretch; let it work on."""
        ended = threading.Event()

        def watch() -> None:
            waited_s = 0.0
            while not ended.wait(POLL_S):
                waited_s = waited_s + POLL_S if self._is_waiting(connection_id) else 0.0
                if waited_s >= seconds:
                    self._kill(connection_id)
                    waited_s = 0.0

        with _running(watch, ended):
            yield

    @contextmanager
    def building(self, connection_id: int, slip_s: float, seconds: float, before_loss: Callable[[], None]) -> Iterator[None]:
        """
        As :meth:`after` with *slip_s* for the first moments of a long statement; then as :meth:`while_waiting` with *seconds*.

        *before_loss* is called before the second kind of kill, which loses the work that the statement has done.
        """
        ended = threading.Event()

        def watch() -> None:
            begun_s, waited_s, poll_s = 0.0, 0.0, slip_s
            while not ended.wait(poll_s):
                begun_s += poll_s
                waited_s = waited_s + poll_s if self._is_waiting(connection_id) else 0.0
                if waited_s and begun_s < START_S:
                    self._kill(connection_id)
                elif waited_s >= seconds:
                    before_loss()
                    self._kill(connection_id)
                    waited_s = 0.0
                poll_s = slip_s if begun_s < START_S else POLL_S

        with _running(watch, ended):
            yield

    def _is_waiting(self, connection_id: int) -> bool:
        try:
            return bool(self.session.value("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = "
                                            f"{VALUE} AND STATE LIKE {VALUE}", connection_id, WAITING))
        except StatementFailed:
            return False  # lock_wait_timeout is the backstop

    def _kill(self, connection_id: int) -> None:
        try:
            self.session.run(f"KILL QUERY {int(connection_id)}")
        except StatementFailed:
            return  # it ended by itself


@contextmanager
def _running(work: Callable[[], None], ended: threading.Event) -> Iterator[None]:
    thread = threading.Thread(target=work, name="rollout-watchdog", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
