"""
The three generations of the application: which columns their Prisma models name and which words they use.

Clients and judge speak of a job in one logical vocabulary: `state` in the words of `lifecycleStatus`, `finished` and
`error`; every other name is the physical column's. A generation translates.
"""

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import steps

TABLE = "AiAnalysisJob"
PLAN_FOLDER = Path(steps.__file__).resolve().parent.parent / "sql" / "ai_analysis_job"

V0_COLUMNS = (
    "id", "userId", "jobType", "sessionId", "answerId", "status", "progress", "errorMessage", "queuedAt", "startedAt",
    "completedAt", "createdAt", "updatedAt",
)  # fmt: skip
REMOVED_IN_V2 = ("sessionId", "answerId", "status")
V2_COLUMNS = (
    "id", "userId", "jobType", "triggerType", "queueName", "targetType", "targetId", "parentJobId", "idempotencyKey",
    "retriedFromJobId", "lifecycleStatus", "priority", "progress", "lockedBy", "lockedAt", "lockUntil", "startedAt",
    "finishedAt", "queuedAt", "cancelRequestedAt", "attemptCount", "maxAttempts", "timeoutMs", "inputRef",
    "inputSchemaVersion", "snapshotId", "promptKey", "promptVersion", "outputSchemaVersion", "credentialMode",
    "credentialId", "modelTier", "modelProvider", "modelName", "errorCode", "publicErrorMessage",
    "internalErrorMessage", "outputHash", "validatedOutput", "createdAt", "updatedAt",
)  # fmt: skip
V1_COLUMNS = (*V2_COLUMNS[:-2], *REMOVED_IN_V2, *V2_COLUMNS[-2:])

OLD_SIDE = {"state": "status", "finished": "completedAt", "error": "errorMessage"}
NEW_SIDE = {"state": "lifecycleStatus", "finished": "finishedAt", "error": "internalErrorMessage"}


@dataclass(frozen=True)
class Mapping:
    """The plan's map between `status` and `lifecycleStatus` (ADR-002 sections 3 and 4)."""

    to_new: dict[str, str]
    to_old: dict[str, str]
    keep_old: dict[str, list[str]]

    def old_words(self, state: str) -> frozenset[str]:
        """Return what `status` may say while `lifecycleStatus` says *state*; empty for an unknown state."""
        return frozenset([self.to_old[state]] if state in self.to_old else self.keep_old.get(state, []))

    def agree(self, old: str, new: str) -> bool:
        """Tell whether the pair agrees, byte by byte, as the plan defines it."""
        return self.to_new.get(old) == new or old in self.old_words(new)


@cache
def mapping() -> Mapping:
    """Return the shipped plan's map."""
    plan = tomllib.loads((PLAN_FOLDER / "plan.toml").read_text(encoding="utf-8"))
    (pair,) = (pair for pair in plan["sync"] if pair["old"] == "status")
    return Mapping(pair["to_new"], pair["to_old"], pair.get("keep_old", {}))


@dataclass(frozen=True)
class Generation:
    """One generation: the columns its model names, in order, and the side of the table it reads and writes."""

    name: str
    columns: tuple[str, ...]
    side: dict[str, str]
    job_types: tuple[str, ...]

    @property
    def is_old(self) -> bool:
        """Tell whether it speaks the words of `status`."""
        return self.side is OLD_SIDE

    def column(self, name: str) -> str:
        """Return the physical column of the logical *name*."""
        return self.side.get(name, name)

    def word(self, state: str) -> str:
        """Return how this generation writes *state*."""
        return mapping().to_old[state] if self.is_old else state

    def may_see(self, state: str) -> frozenset[str]:
        """Return the words in which this generation may read *state*, whoever wrote it."""
        return mapping().old_words(state) if self.is_old else frozenset([state])

    def physical(self, values: dict[str, Any]) -> dict[str, Any]:
        """Translate logical *values* to this generation's columns and words."""
        return {self.column(name): self.word(value) if name == "state" else value for name, value in values.items()}


OLD_TYPES = ("active-recall", "feynman-evaluation")
NEW_TYPES = (*OLD_TYPES, "quiz-generation", "knowledge-extraction")
GENERATIONS = {
    "v0": Generation("v0", V0_COLUMNS, OLD_SIDE, OLD_TYPES),
    "v1": Generation("v1", V1_COLUMNS, NEW_SIDE, NEW_TYPES),
    "v2": Generation("v2", V2_COLUMNS, NEW_SIDE, NEW_TYPES),
    # Clients of one address with any generation behind it: they ask in V0's words and read what each answer's generation says.
    "api": Generation("api", V0_COLUMNS, OLD_SIDE, OLD_TYPES),
}
