"""What the tool waits for half a minute and longer, a victim waits for a moment: the order of things stays, a case takes seconds."""

from __future__ import annotations

from functools import wraps
from typing import Any

from steps import answers, hold, mysql
from steps.mysql import Session

ANSWER_S, SILENCE_S = 3, 2


def install() -> None:
    """In this process's own copy of the tool."""
    answers.ASK_AFTER_S, answers.ASK_EVERY_S, answers.SILENT_S = 1.0, 0.3, 5.0
    mysql.IN_TRANSACTION_S = hold.LONGEST_IDLE_S = SILENCE_S
    real: Any = Session.__init__

    @wraps(real)
    def made(self: Any, *args: Any, **more: Any) -> None:
        if more.get("read_timeout_s"):
            more["read_timeout_s"] = min(more["read_timeout_s"], ANSWER_S)
        real(self, *args, **more)

    Session.__init__ = made  # type: ignore[method-assign]
