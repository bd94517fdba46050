"""The six phases of a rollout (ADR-002 section 8) and the words for what became of a step."""

from __future__ import annotations

from enum import StrEnum


class Phase(StrEnum):
    """A phase, in the order in which the runbook takes them."""

    PRE_DEPLOY = "pre_deploy"
    DEPLOY = "deploy"
    BACKFILL = "backfill"
    VERIFY = "verify"
    SHADOW_WRITE = "shadow_write"
    CLEANUP = "cleanup"

    @property
    def number(self) -> int:
        """1 for pre_deploy to 6 for cleanup, as the ADR counts."""
        return list(Phase).index(self) + 1

    @property
    def label(self) -> str:
        return f"{self.number}. {self.value}"


FORWARD = tuple(Phase)
STANDS = frozenset({"done", "running", "cooling", "going back", "fail", "inconclusive"})  # recorded states that leave something to undo
DEFAULT_THROUGH = Phase.SHADOW_WRITE


class Outcome(StrEnum):
    """What became of a step or a phase."""

    DONE = "done"
    ALREADY_DONE = "already done"
    NOT_DUE = "not yet due"


class Verdict(StrEnum):
    """Three answers, because could not look is never clean (design section 1, promise 5)."""

    PASS = "pass"  # noqa: S105  # a verdict
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
