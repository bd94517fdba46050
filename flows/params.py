"""What a run or a rollback is asked for: typed, bounded, the form in the Prefect UI. Names of targets only, never credentials."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from steps.phase import Phase

Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]


class Through(StrEnum):
    """A phase, as one may ask for it; cleanup is always asked for by name."""

    PRE_DEPLOY = Phase.PRE_DEPLOY.value
    DEPLOY = Phase.DEPLOY.value
    BACKFILL = Phase.BACKFILL.value
    VERIFY = Phase.VERIFY.value
    SHADOW_WRITE = Phase.SHADOW_WRITE.value
    CLEANUP = Phase.CLEANUP.value

    @property
    def phase(self) -> Phase:
        return Phase(self.value)


class Target(StrEnum):
    """Where a rollback goes: the end of a phase, or all the way to V0."""

    V0 = "v0"
    PRE_DEPLOY = Phase.PRE_DEPLOY.value
    DEPLOY = Phase.DEPLOY.value
    BACKFILL = Phase.BACKFILL.value
    VERIFY = Phase.VERIFY.value
    SHADOW_WRITE = Phase.SHADOW_WRITE.value

    @property
    def phase(self) -> Phase | None:
        return None if self is Target.V0 else Phase(self.value)


class Request(BaseModel):
    """What every changing command needs to know."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    plan: Words = Field(description="A shipped plan's name, or a plan folder or file on the worker's disk.", examples=["ai_analysis_job"])
    by: Words = Field(description="Who asks for this. Recorded in the audit trail.")
    reason: Words = Field(description="Why. Recorded in the audit trail.")
    database: Words = Field(default="env", description="`env` for ROLLOUT_DATABASE_URL of the worker, or `secret:NAME` for a Prefect "
                            "Secret block. Never a URL: parameters are stored in clear.", pattern=r"^(env|secret:[a-z0-9-]+|command line)$")
    settings: list[Words] = Field(default=[], description="Plan values to set, as KEY=VALUE.", max_length=50)
    accept: list[Words] = Field(default=[], description="Keys of findings that are acknowledged.", max_length=50)
    end_blockers: bool = Field(default=False, description="End sessions that keep the table from a gap longer than "
                               "end_blockers_after_s; never heavy transactions, LOCK TABLES, DDL or backups. Accepts `blockers`.")
    deployed_by: Words | None = Field(default=None, description="Who confirms that a manual deploy (or its rollback) is done.")


class RunRequest(Request):
    """Take the table and its application forward."""

    first: Through | None = Field(default=None, description="First phase; those before it must be done.")
    through: Through = Field(default=Through.SHADOW_WRITE, description="Last phase of this run.")


class RollbackRequest(Request):
    """Go back: one phase, or to the end of a phase, or to V0."""

    phase: Through | None = Field(default=None, description="Undo this phase; refused while a later one stands.")
    to: Target | None = Field(default=None, description="Return to the state at the end of this phase, or to V0.")
    drop_added: bool = Field(default=False, description="With V0 or pre_deploy: also take the added columns, indexes and keys away.")
