"""Which of the tool's connections is for what, told from inside a victim."""

from __future__ import annotations

from functools import wraps
from typing import Any

from steps import mysql
from steps.mysql import Session
from steps.ownership import Ownership
from steps.rollout import Rollout

_known: dict[str, Session] = {}


def install() -> None:
    """Note them as they are made."""
    _after(Rollout, lambda rollout: {"worker": rollout.session, "ledger": rollout.ledger.session, "watchdog": rollout.watchdog.session})
    _after(Ownership, lambda owner: {"lock": owner._session})


def _after(kind: Any, sessions_of: Any) -> None:
    real = kind.__init__

    @wraps(real)
    def made(self: Any, *args: Any, **more: Any) -> None:
        real(self, *args, **more)
        _known.update(sessions_of(self))

    kind.__init__ = made


def is_the(session: Session, name: str) -> bool:
    """Whether *session* is the one of that name."""
    return _known.get(name) is session


def told() -> dict[str, Any]:
    """Connection ids by name; `others` are those of holds, rehearsals and lanes."""
    standing = list(mysql._standing)
    named = {name: session.connection_id for name, session in _known.items() if session in standing}
    others = [session.connection_id for session in standing if hasattr(session, "connection_id")]
    return {**named, "others": sorted(set(others) - {*named.values()})}
