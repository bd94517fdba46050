"""What the tool waits for half a minute and longer, a victim waits for a moment: the order of things stays, a case takes seconds."""

from __future__ import annotations

from functools import wraps
from typing import Any

from steps import answers, hold, mysql, ownership
from steps.mysql import Session
from steps.ownership import Ownership

ANSWER_S, SILENCE_S, HEARTBEAT_S = 3, 2, 0.5


def install() -> None:
    """In this process's own copy of the tool."""
    answers.ASK_AFTER_S, answers.ASK_EVERY_S, answers.SILENT_S = 1.0, 0.3, 5.0
    mysql.IN_TRANSACTION_S = hold.LONGEST_IDLE_S = SILENCE_S
    ownership.BEATS_MISSED = SILENCE_S / HEARTBEAT_S
    _with(Session, lambda more: {"read_timeout_s": min(more["read_timeout_s"], ANSWER_S)} if more.get("read_timeout_s") else {})
    _with(Ownership, lambda _: {"heartbeat_s": HEARTBEAT_S})


def _with(owner: Any, given: Any) -> None:
    real = owner.__init__

    @wraps(real)
    def made(self: Any, *args: Any, **more: Any) -> None:
        real(self, *args, **{**more, **given(more)})

    owner.__init__ = made
