"""A step: the smallest thing the runbook names. Phases are lists of steps; who calls them (Prefect, a terminal) is not their business."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from steps.phase import Outcome


@dataclass(frozen=True)
class Step:
    """*run* acts only where the catalogue or the ledger says that something is to do, and says what became of it."""

    name: str
    run: Callable[[], Outcome]
