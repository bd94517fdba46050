"""The sections of a plan, one model each: frozen, an unknown key is an error, impossible combinations are refused."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from steps.addresses import Address

PlanId = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
Name = Annotated[str, StringConstraints(min_length=1, max_length=64)]
FileStem = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]


class Part(BaseModel):
    """Base of every part of a plan: frozen, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class PlanTable(Part):
    """`[plan]`: identity, table and the limits that hold for every statement of ours."""

    id: PlanId
    table: Name
    title: str = ""
    path: Literal["zero_downtime", "adr"] = "zero_downtime"
    rename_mode: Literal["dual_column", "in_place"] | None = None
    sync_from: Literal["pre_deploy", "shadow_write"] | None = None
    backfill_from: Literal["pre_deploy", "backfill"] | None = None
    max_stall_ms: int = Field(default=1000, ge=100, le=60_000, description="longest stall any client may see from us")
    gap_wait_s: int = Field(default=120, ge=0, le=3600, description="how long to wait for a gap in the traffic (F24)")
    end_blockers_after_s: float = Field(default=10, ge=0, le=3600, description="--end-blockers: how old a blocker may get")
    max_blocked_s: float = Field(default=1, ge=0, le=3600, description="longest copy that may block writes")
    large_rows: int = Field(default=100_000, ge=1, description="from here on an index build stands alone, outside any hold")
    planned_s: dict[str, float] = Field(default={}, description="planned seconds by phase, told beside the actual ones")
    ledger_schema: Name | None = None
    rehearsal_schema: Name | None = None


    @property
    def renames_in_place(self) -> bool:
        """Whether a rename is one CHANGE of the column, with its cost for the other generation (F2)."""
        return (self.rename_mode or ("in_place" if self.path == "adr" else "dual_column")) == "in_place"

    @property
    def syncs_late(self) -> bool:
        """Whether the triggers come in phase 5 only, so that each generation writes only its own columns until then (F4)."""
        return (self.sync_from or ("shadow_write" if self.path == "adr" else "pre_deploy")) == "shadow_write"

    @property
    def fills_late(self) -> bool:
        """Whether history is filled in phase 3 only, beside a V1 that reads it as pending until then (F17)."""
        return (self.backfill_from or ("backfill" if self.path == "adr" else "pre_deploy")) == "backfill"


class Rename(Part):
    """A column that gets a new name: on the default path a second column, kept in step, until cleanup (F2)."""

    old: Name = Field(alias="from")
    new: Name = Field(alias="to")


class SchemaStep(Part):
    """One stair: a pair of SQL files, or a rename whose definition is read from the live column."""

    ddl: FileStem | None = None
    rename: Rename | None = None
    after: Literal["first_pass"] | None = None

    @model_validator(mode="after")
    def _one_of_two(self) -> SchemaStep:
        if (self.ddl is None) == (self.rename is None):
            raise ValueError("a step has either `ddl` or `rename`")
        return self

    @property
    def name(self) -> str:
        return self.ddl or (f"rename_{self.rename.old}_to_{self.rename.new}" if self.rename else "")


class Leaf(Part):
    """A step on another table, due once that table and column exist (F9)."""

    ddl: FileStem
    table: Name
    column: Name

    @property
    def name(self) -> str:
        return self.ddl


class PreDeploy(Part):
    step: tuple[SchemaStep, ...] = Field(min_length=1)
    leaf: tuple[Leaf, ...] = ()

    @model_validator(mode="after")
    def _ordered_and_unique(self) -> PreDeploy:
        names = [step.name for step in self.step] + [leaf.name for leaf in self.leaf]
        if len(set(names)) != len(names):
            raise ValueError("two steps have the same name")
        late = [step.after is not None for step in self.step]
        if late != sorted(late):
            raise ValueError('steps with `after = "first_pass"` come last: the ladder is climbed in order')
        return self


class ValueMap(Part):
    """`[[sync]]`: an old and a new column that hold the same thing in other words (ADR sections 3 and 4)."""

    old: Name
    new: Name
    to_new: dict[str, str]
    to_old: dict[str, str]
    keep_old: dict[str, tuple[str, ...]] = {}

    @model_validator(mode="after")
    def _maps_fit(self) -> ValueMap:
        if not self.to_new:
            raise ValueError("to_new is empty")
        for old, new in self.to_new.items():
            if new not in self.to_old:
                raise ValueError(f"to_new maps {old!r} to {new!r}, which to_old does not know")
            if self.to_old[new] != old and self.to_new.get(self.to_old[new]) != new:
                raise ValueError(f"{old!r} becomes {new!r} and comes back as {self.to_old[new]!r}, which is another value")
        for new, old in self.to_old.items():
            if old not in self.to_new:
                raise ValueError(f"to_old maps {new!r} to {old!r}, which to_new does not know")
        both = set(self.keep_old) & set(self.to_old)
        if both:
            raise ValueError(f"keep_old and to_old both speak of {sorted(both)}")
        unknown = {old for values in self.keep_old.values() for old in values} - set(self.to_new)
        if unknown:
            raise ValueError(f"keep_old allows {sorted(unknown)}, which to_new does not know")
        return self

    @property
    def agreeing(self) -> tuple[tuple[str, str], ...]:
        """Every (old, new) that agrees: new = to_new(old), or old = to_old(new), or old allowed beside new."""
        pairs = dict.fromkeys(self.to_new.items())
        pairs.update(dict.fromkeys((old, new) for new, old in self.to_old.items()))
        pairs.update(dict.fromkeys((old, new) for new, olds in self.keep_old.items() for old in olds))
        return tuple(pairs)


class Verify(Part):
    """`[verify]`: smoke queries, an optional command (the team's own E2E suite), and what follows a failure."""

    queries: tuple[str, ...] = ()
    command: str | None = None
    deadline_s: int = Field(default=900, ge=1, le=86_400)
    on_fail: Literal["pre_deploy", "v0", "stop"] | None = None


class Backfill(Part):
    """`[backfill]`: how the passes over rows go."""

    mode: Literal["gentle", "full_speed"] = Field(default="gentle", description="full_speed: the table is idle or the load is irrelevant")
    connections: int | None = Field(default=None, ge=1, le=16, description="by default 1 when gentle, 4 at full speed")
    target_ms: int | None = Field(default=None, ge=1, le=5000, description="how long the statements on one chunk's rows should take; "
                                  "by default 8 when gentle, 200 at full speed")
    rows_per_s: int | None = Field(default=None, ge=1, le=1_000_000_000, description="a limit from the first pass on; "
                                   "`rollout backfill PLAN limit` goes over it")
    first_chunk_rows: int = Field(default=200, ge=1, le=100_000)
    largest_chunk_rows: int = Field(default=5000, ge=1, le=100_000)
    max_passes: int = Field(default=20, ge=1, le=1000)
    most_refused: int = Field(default=100, ge=0, le=10_000, description="rows that the server may refuse before the pass stops at once")
    replicas: tuple[str, ...] = Field(default=(), description="environment variables that hold the URLs of replicas to spare")
    find_replicas: bool = Field(default=True, description="mind those too that tell the server their report_host and let our account in")
    max_replica_lag_s: float = Field(default=5, ge=0.1, le=3600)
    max_threads_running: int = Field(default=50, ge=0, description="0: do without this signal; so with the next three")
    max_history_length: int = Field(default=1_000_000, ge=0)
    max_redo_percent: float = Field(default=75, ge=0, le=100)
    max_commit_ms: float = Field(default=250, ge=0)
    max_pause_s: int = Field(default=3600, ge=1, le=86_400, description="how long the server may stay unhealthy before the pass stops")
    changed_at: Name | None = Field(default=None, description="A column that every writer sets; tells rows written since the backfill")

    @property
    def chunk_ms(self) -> int:
        """How long the statements on one chunk's rows should take: whoever shares a core with them waits about so long."""
        return self.target_ms or {"gentle": 8, "full_speed": 200}[self.mode]

    @property
    def lanes(self) -> int:
        """How many connections a pass asks for."""
        return self.connections or {"gentle": 1, "full_speed": 4}[self.mode]


class Handover(Part):
    """`[handover]`: who copies a table when the server's own copy would block writes for longer than `max_blocked_s` (F5, case C09)."""

    use: Literal["when_needed", "never"] = "when_needed"
    command: str = Field(default="pt-online-schema-change", min_length=1, description="a name on the PATH, or a path")
    deadline_s: int = Field(default=86_400, ge=1, le=2_592_000)
    chunk_ms: int | None = Field(default=None, ge=10, le=5000, description="how long one chunk should take; if absent target_ms or 200")
    max_threads_running: int = Field(default=25, ge=1, description="the copy pauses while more threads are running")
    critical_threads_running: int = Field(default=200, ge=1, description="the copy gives up when more threads are running")
    max_lag_s: int = Field(default=1, ge=1, description="the copy pauses while a replica lags more")
    replica: str | None = Field(default=None, pattern=r"^[A-Za-z0-9_.-]+(:\d+)?$", description="HOST:PORT of the replica to watch; "
                                "all that the server knows of if not given")
    compare_rows: bool = Field(default=True, description="compare every row of the copy before it takes the table's place")


class ShadowWrite(Part):
    """`[shadow_write]`: how the application is told to write both sides itself (ADR section 4, M-AI-02-10), and to stop."""

    enable_command: str | None = Field(default=None, min_length=1)
    disable_command: str | None = Field(default=None, min_length=1)
    deadline_s: int = Field(default=900, ge=1, le=86_400, description="how long either command may take")

    @model_validator(mode="after")
    def _on_and_off(self) -> ShadowWrite:
        if (self.enable_command is None) != (self.disable_command is None):
            raise ValueError("enable_command and disable_command go together: what is switched on must be switched off on the way back")
        return self


class Reconcile(Part):
    """`[reconcile]`: what to do with rows that both generations wrote while nothing kept them in step (F4)."""

    conflict: Literal["refuse", "new", "old"] = "refuse"


class Rehearsal(Part):
    """`[rehearsal]`: what the clone holds beside structure."""

    sample_rows: int = Field(default=200, ge=0, le=10_000, description="real rows copied onto the clone inside the server; 0: none")


class Cleanup(Part):
    """`[cleanup]`: which columns go, who puts V2 out, and how long each wait is."""

    drop: tuple[Name, ...] = ()
    drop_indexes: tuple[Name, ...] = ()
    deploy: str | None = None
    rollback_deploy: str | None = None
    health_command: str | None = None
    health_url: Address | None = None
    min_age_s: int = Field(default=86_400, ge=0, description="shortest time between verify and cleanup")
    observe_s: int = Field(default=60, ge=0, le=604_800, description="how long nobody may be seen using the old columns")
    archive_keep_s: int = Field(default=2_592_000, ge=0, description="how long the archive is kept after the drop")
    cooling_s: int = Field(default=604_800, ge=0, description="time between tombstones and the drop")
