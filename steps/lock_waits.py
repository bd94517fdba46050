"""Whoever waited in vain for a lock of MySQL's is told who holds it, wherever that was: the table, its relatives, the ledger (case C05)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from steps import holders
from steps.errors import LockTimeout, LockWaited, RolloutError
from steps.ledger import TABLES
from steps.rollout import Rollout


@contextmanager
def holder_named(rollout: Rollout) -> Iterator[None]:
    """
    Raises:
        LockWaited: in place of :class:`LockTimeout`, with those who hold the table, the ledger's tables or a lock of the whole server.
    """
    try:
        yield
    except LockTimeout as error:
        ledger = [(rollout.ledger.home, f"_rollout_{name}") for name in TABLES]
        held = "; ".join(holders.named(rollout.watchdog.session, [*_tables(rollout), *ledger]))
        subject = f"ledger in {rollout.ledger.home}" if "`_rollout_" in error.subject else error.subject
        raise LockWaited(subject, error.reason + (f"; {held}" if held else ""), "everything before it stands; run the same "
                         f"command again once {'it' if 'ledger' in subject else 'the table'} is free") from None


def _tables(rollout: Rollout) -> list[tuple[str, str]]:
    try:
        return [pair for part in rollout.tables_to_lock() for pair in part]
    except RolloutError:
        return [(rollout.schema, rollout.table)]  # the session waited itself
