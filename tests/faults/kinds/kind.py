"""What a kind of fault is."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from tests.faults.points import Point
from tests.faults.scene import Scene
from tests.faults.world import World

HURRY = ("gap_wait_s=1",)
"""For kinds that hold the table, or a backup's lock, until the tool has ended: it looks for a gap for two minutes, else."""

STOPPED = frozenset({0, 4})
KILLED = frozenset({0, 4, -9})


def anywhere(_: Point) -> bool:
    return True


def owned(point: Point) -> bool:
    """Where the tool holds its table: between taking it and giving it back."""
    return point.owned


def outside_holds(point: Point) -> bool:
    return not point.in_hold


def in_holds(point: Point) -> bool:
    return point.in_hold


def in_a_statement(point: Point) -> bool:
    """Where a statement can be met at work: one that a backup holds up comes soon."""
    return point.waits_for_backup


@dataclass(frozen=True)
class Kind:
    """
    One kind of fault. *play* is told in :mod:`tests.faults.kinds`; *fits* says at which points it makes sense.

    *points* is how many points of each command are tried beside the drawn ones. *settings* are plan keys that the command gets beside
    those of every victim, *more* is for the victim (:func:`tests.faults.victim.child`). *ends* are the codes that the disturbed
    command may end with; 3 is one more of them before the table was taken. *keeps_sessions*: the server does not learn that its client
    is gone, so a session that sleeps may be left; what it holds may not.
    """

    name: str
    play: Callable[[Scene], None]
    fits: Callable[[Point], bool] = anywhere
    points: int = 4
    settings: tuple[str, ...] = ()
    ends: frozenset[int] = STOPPED
    more: dict[str, Any] = field(default_factory=dict)
    keeps_sessions: bool = False
    around: Callable[[World], AbstractContextManager[World]] | None = None
