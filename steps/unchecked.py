"""Foreign-key checks off for exactly one block of one session of ours, never for the server (case C16)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from steps.errors import StatementFailed
from steps.mysql import Session


@contextmanager
def without_foreign_key_checks(session: Session) -> Iterator[None]:
    """Inside, *session* does not check foreign keys; afterwards it does again, and one that can no longer be told so is closed."""
    session.run("SET SESSION foreign_key_checks = 0")
    try:
        yield
    finally:
        try:
            session.run("SET SESSION foreign_key_checks = 1")
        except StatementFailed:
            session.close()
