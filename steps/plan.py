"""
The plan: what one rollout does to one table, as frozen, validated data (design section 3).

The loader (:mod:`steps.plan_loader`) adds file and line to every complaint.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from pathlib import Path
from typing import Any

from pydantic import Field, model_validator

from steps.plan_deploy import Deploy, Fleet
from steps.plan_gates import Gates
from steps.plan_sections import (
    Backfill,
    Cleanup,
    Handover,
    Leaf,
    Part,
    PlanTable,
    PreDeploy,
    Reconcile,
    Rehearsal,
    Rename,
    SchemaStep,
    ShadowWrite,
    ValueMap,
    Verify,
)

__all__ = ["Backfill", "Cleanup", "Deploy", "Fleet", "Gates", "Handover", "Leaf", "Plan", "PlanTable", "PreDeploy", "Reconcile",
           "Rehearsal", "Rename", "SchemaStep", "ShadowWrite", "ValueMap", "Verify"]


class Plan(Part):
    """A whole plan. `folder` is where its SQL lives; `sql_text` holds every file by name, so the identity covers it.

    `table_as_written` is set where the server spells the table's name otherwise (:mod:`steps.own_names`); `given` is what the plan was
    asked for by: a copy may have the id of a shipped one, and then a call by id runs that.
    """

    plan: PlanTable
    pre_deploy: PreDeploy
    sync: tuple[ValueMap, ...] = ()
    deploy: Deploy = Deploy()
    backfill: Backfill = Backfill()
    handover: Handover = Handover()
    verify: Verify = Verify()
    shadow_write: ShadowWrite = ShadowWrite()
    reconcile: Reconcile = Reconcile()
    cleanup: Cleanup = Cleanup()
    rehearsal: Rehearsal = Rehearsal()
    gates: Gates = Gates()
    fleet: Fleet | None = None
    folder: Path = Path()
    table_as_written: str | None = None
    given: str = ""
    sql_text: dict[str, str] = Field(default={})
    queries: dict[str, str] = Field(default={})

    @model_validator(mode="after")
    def _pairs_are_apart(self) -> Plan:
        sides = [(pair.old, pair.new) for pair in self.sync] + [(rename.old, rename.new) for rename in self.renames]
        columns = [name.lower() for side in sides for name in side]
        if len(set(columns)) != len(columns):
            raise ValueError("a column is in two pairs ([[sync]] and renames)")
        return self

    @model_validator(mode="after")
    def _shadow_write_has_two_sides(self) -> Plan:
        if self.shadow_write.enable_command and not self.filled_columns:
            raise ValueError("shadow_write.enable_command needs a pair ([[sync]] or a rename in two columns) to write both sides of")
        return self

    @property
    def id(self) -> str:
        return self.plan.id

    @property
    def called(self) -> str:
        """PLAN as a shell takes it, for the calls that messages and pages print."""
        return shlex.quote(self.given or self.id)

    @property
    def table(self) -> str:
        return self.plan.table

    @property
    def renames(self) -> tuple[Rename, ...]:
        return tuple(step.rename for step in self.pre_deploy.step if step.rename)

    @property
    def dual_renames(self) -> tuple[Rename, ...]:
        """The renames that are two columns kept in step until cleanup."""
        return () if self.plan.renames_in_place else self.renames

    @property
    def schema_steps(self) -> tuple[SchemaStep, ...]:
        """The ladder's order: renames in place come last, so that they alone can be reversed (F2, F3)."""
        steps = self.pre_deploy.step
        if not self.plan.renames_in_place:
            return steps
        return tuple(step for step in steps if step.ddl) + tuple(step for step in steps if step.rename)

    @property
    def removed_columns(self) -> tuple[str, ...]:
        """What cleanup takes away: the plan's own list and the old side of every rename that is two columns."""
        return self.cleanup.drop + tuple(rename.old for rename in self.dual_renames)

    @property
    def on_fail(self) -> str:
        """Where a failed verify goes; with renames in place V0 can only live once they are reversed."""
        return self.verify.on_fail or ("v0" if self.plan.renames_in_place else "pre_deploy")

    @property
    def filled_columns(self) -> tuple[str, ...]:
        """The columns that passes fill: the new side of every pair."""
        return tuple(pair.new for pair in self.sync) + tuple(rename.new for rename in self.dual_renames)

    def identity(self) -> dict[str, Any]:
        """What is fixed at the first run: table, steps, pairs, maps, path and the SQL itself (design section 2, ledger)."""
        return {
            "table": self.plan.table, "path": self.plan.path,
            "order": [self.plan.renames_in_place, self.plan.syncs_late, self.plan.fills_late],
            "steps": [step.model_dump(mode="json") for step in self.pre_deploy.step],
            "leaves": [leaf.model_dump(mode="json") for leaf in self.pre_deploy.leaf],
            "sync": [pair.model_dump(mode="json") for pair in self.sync],
            "drop": [*self.cleanup.drop, *self.cleanup.drop_indexes],
            "sql": {name: hashlib.sha256(text.encode()).hexdigest() for name, text in sorted(self.sql_text.items())},
        }

    def identity_hash(self) -> str:
        return hashlib.sha256(json.dumps(self.identity(), sort_keys=True).encode()).hexdigest()

