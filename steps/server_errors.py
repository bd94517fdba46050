"""
What MySQL's error numbers mean for a statement: lost on its way, to be tried again, the server's refusal of it.

By number alone; what each says of the server itself is in :mod:`steps.server_trouble`.
"""

from __future__ import annotations

from typing import Any

from steps.errors import ConnectionLost, LockTimeout, StatementFailed
from steps.masking import mask, without_contents

LOST = {0, 2006, 2013, 2014, 2055, 1053, 1077, 1152, 1158, 1159, 1160, 1161, 3168, 3169, 4031}
"""4031: the server ended a session that was silent for longer than its `wait_timeout`."""

TRY_AGAIN = {1205, 1213, 1317, 3024, 3572}
UNKNOWN_SETTING, READ_ONLY = {1193, 1273}, {1290, 1792, 1836}
QUOTES_ROWS = {1062, 1292, 1366, 1367, 1411, 1525}


def failure(args: tuple[Any, ...], what: str, *, lost: bool = False) -> StatementFailed:
    """The driver's *args* as an error of ours about the statement *what*; *lost* when the driver knows it by itself."""
    errno = args[0] if args and isinstance(args[0], int) else 0
    text = str(args[1]) if len(args) > 1 else str(args[0]) if args else ""
    if errno in QUOTES_ROWS:
        text = without_contents(text)
    kind = LockTimeout if errno in TRY_AGAIN else ConnectionLost if lost or errno in LOST else StatementFailed
    reason = f"MySQL error {errno}: {text}" if errno or text else "the connection was lost before it"
    return kind(mask(what), mask(reason), _remedy(kind, errno), errno)


def _remedy(kind: type[StatementFailed], errno: int) -> str:
    if kind is ConnectionLost:
        return "run the same command again: it looks at what became of it"
    if kind is LockTimeout:
        return "run the same command again"
    return "the server is read-only now (failover or full disk?)" if errno in READ_ONLY else ""
