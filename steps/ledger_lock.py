"""A named lock on the ledger's own session, for what two people must not do to one plan's record at once; it dies with the connection."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from steps.errors import Busy, StatementFailed
from steps.ledger import Ledger
from steps.mysql import VALUE


@contextmanager
def alone(ledger: Ledger, what: str, busy: Busy, within_s: int = 0) -> Iterator[None]:
    """
    Nobody else is inside for the same *what* and the same plan on the same table.

    Raises:
        Busy: *busy*, where others are inside for longer than *within_s*.
    """
    name = f"rollout-{what}:" + hashlib.sha256(".".join(ledger.key).encode()).hexdigest()[:48]
    if not ledger.session.value(f"SELECT GET_LOCK({VALUE}, {within_s})", name):
        raise busy
    try:
        yield
    finally:
        with suppress(StatementFailed):  # the connection is gone, and the lock with it
            ledger.session.run(f"DO RELEASE_LOCK({VALUE})", name)
