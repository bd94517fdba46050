"""
What is asked of a run, a rollback or a look: typed, bounded, the form in the Prefect UI. Names of targets only, never credentials.

The form shows each field by its title with the description under it, those of :data:`HOW` last.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from steps.phase import Phase

Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]
Said = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500, pattern=r"\S")]
"""Blanks alone are refused by the form already, before there is a run."""
NO_REASON = "none given"
BESIDE_A_REQUEST = frozenset({"flow_run", "gates"})
"""What the ledger keeps among a run's options that nobody asked for."""
FORM: Any = Field(json_schema_extra={"title": "What is asked"})
"""The one parameter of a flow; without it the form would stand under the parameter's name."""
HOW = ("database", "settings", "accept", "end_blockers", "deployed_by")
"""Fields that most people leave alone: below those that say what is wanted."""
LATE = 100


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


def _form(schema: dict[str, Any]) -> None:
    """
    The schema as Prefect's page shows it best: in order, and an optional choice as one list instead of two pages.

    Nothing given still means None. Keys to accept are the known ones, to be chosen from.
    """
    from flows.desk import ACCEPT_KEYS, UNSEEN  # noqa: PLC0415  # which opens the desk for what is asked here

    for position, (name, shown) in enumerate(schema.get("properties", {}).items()):
        shown["position"] = position + LATE * (name in HOW)
        kinds = [kind for kind in shown.get("anyOf", []) if kind != {"type": "null"}]
        if len(kinds) == 1 and len(shown["anyOf"]) > 1:
            del shown["anyOf"]
            shown.update(kinds[0])
            if shown.get("default", "") is None:
                del shown["default"]
        if name == "accept":
            shown["items"] = {"type": "string", "enum": sorted(ACCEPT_KEYS) + sorted(UNSEEN)}


class Asked(BaseModel):
    """What every look and every change needs to know."""

    model_config = ConfigDict(frozen=True, extra="forbid", json_schema_extra=_form)

    plan: Words = Field(title="Plan", examples=["ai_analysis_job"], description="A shipped plan's name, such as `ai_analysis_job`, or "
                        "a plan folder or file on the worker's disk.")
    by: Said = Field(title="Who asks", examples=["ann"], description="Your name. It stands in the audit trail.")


class Request(Asked):
    """What every changing command needs to know."""

    reason: Said = Field(title="Why", examples=["CHG-1234"], description="A reason or the number of a change. It stands in the audit "
                         "trail.")
    database: Words = Field(default="env", title="Database", description="`env` for ROLLOUT_DATABASE_URL of the worker, or `secret:NAME` "
                            "for a Prefect Secret block. Never a URL: parameters are stored in clear.", examples=["env", "secret:shop"],
                            pattern=r"^(env|secret:[a-z0-9-]+|command line)$")
    settings: list[Words] = Field(default=[], title="Plan values to set", max_length=50, examples=[["deploy.command=./deploy.sh v1"]],
                                  description="As KEY=VALUE, one a line; only for this run.")
    accept: list[Words] = Field(default=[], title="Findings that are acknowledged", max_length=50, examples=[["cleanup"]],
                                description="Keys that findings and confirmations name, such as `cleanup`. Recorded.")
    end_blockers: bool = Field(default=False, title="End sessions in the way", description="End sessions that keep the table from a gap "
                               "for longer than end_blockers_after_s; never heavy transactions, LOCK TABLES, DDL or backups.")
    deployed_by: Words | None = Field(default=None, title="Deploy confirmed by", description="Only where a person deploys: who confirms "
                                      "that the deploy (or its rollback) is done.")


class RunRequest(Request):
    """Take the table and its application forward."""

    first: Through | None = Field(default=None, title="First phase", description="Those before it must be done. Left out: from where the "
                                  "rollout stands.")
    through: Through = Field(default=Through.SHADOW_WRITE, title="Last phase", description="The run ends well after it. `cleanup` takes "
                             "the old columns away and is always asked for.")


class UndoPreDeploy(Request):
    """Take phase pre_deploy back."""

    drop_added: bool = Field(default=False, title="Also drop what was added", description="Also take the added columns, indexes and keys "
                             "away. Only with pre_deploy or V0; otherwise they stay, unseen by the old application.")


class RollbackRequest(UndoPreDeploy):
    """Go back: one phase, or to the end of a phase, or to V0."""

    phase: Through | None = Field(default=None, title="Undo this phase", description="The latest that stands; refused while a later one "
                                  "stands. Give this or the next, not both.")
    to: Target | None = Field(default=None, title="Or go back to the end of", description="The state at the end of this phase; `v0` undoes "
                              "everything.")


class LookRequest(Asked):
    """Look, and change nothing."""

    database: Words = Field(default="env", title="Database", description="`env` for ROLLOUT_DATABASE_URL of the worker, or `secret:NAME` "
                            "for a Prefect Secret block.", examples=["env", "secret:shop"], pattern=r"^(env|secret:[a-z0-9-]+)$")
    settings: list[Words] = Field(default=[], title="Plan values to set", max_length=50, examples=[["cleanup.min_age_s=0"]],
                                  description="As KEY=VALUE, one a line; only for this look.")

    def asked(self) -> Request:
        """The same, as the desk is opened for: a look needs no reason."""
        return Request(reason=NO_REASON, **self.model_dump())


class CheckRequest(LookRequest):
    """Look for everything that would refuse a run."""

    accept: list[Words] = Field(default=[], title="Findings that are acknowledged", max_length=50, examples=[["blockers"]],
                                description="Keys that findings name; such a finding refuses nothing.")
