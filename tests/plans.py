"""Small plans on a test's own tables, written to a folder as a user's plan is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from steps import plan_loader
from steps.plan import Plan

STATE = "ADD COLUMN `state` VARCHAR(32) NOT NULL DEFAULT 'pending'"
SYNC = """
[[sync]]
old = "status"
new = "state"
to_new = { pending = "pending", processing = "running", completed = "succeeded", failed = "failed" }
to_old = { pending = "pending", running = "processing", succeeded = "completed", failed = "failed", cancelled = "failed" }
keep_old = { locked = ["pending", "processing"] }
"""


@dataclass(frozen=True)
class Ddl:
    """A step whose files hold `ALTER TABLE <table> <up>` and the same with *down*."""

    name: str
    up: str
    down: str
    late: bool = False


@dataclass(frozen=True)
class Renamed:
    """A rename step."""

    old: str
    new: str


ADD_STATE = Ddl("010_add_state", STATE, "DROP COLUMN `state`")


def written(folder: Path, *, table: str = "job", steps: Sequence[Ddl | Renamed] = (ADD_STATE,), head: str = "", tail: str = SYNC) -> Path:
    """A plan called `small` in *folder*; *head* goes into `[plan]`, *tail* behind everything."""
    parts = [f'[plan]\nid = "small"\ntable = "{table}"\n{head}\n']
    for step in steps:
        if isinstance(step, Renamed):
            parts.append(f'[[pre_deploy.step]]\nrename = {{ from = "{step.old}", to = "{step.new}" }}\n')
            continue
        after = 'after = "first_pass"\n' if step.late else ""
        parts.append(f'[[pre_deploy.step]]\nddl = "{step.name}"\n{after}')
        for direction, clause in (("up", step.up), ("down", step.down)):
            (folder / f"{step.name}.{direction}.sql").write_text(f"ALTER TABLE `{table}` {clause}\n")
    (folder / "plan.toml").write_text("\n".join([*parts, tail]))
    return folder


def small(folder: Path, *, table: str = "job", steps: Sequence[Ddl | Renamed] = (ADD_STATE,), head: str = "", tail: str = SYNC,
          overrides: Sequence[str] = ()) -> Plan:
    """The plan that :func:`written` writes, loaded and deployed by a command that does nothing."""
    written(folder, table=table, steps=steps, head=head, tail=tail)
    return plan_loader.load(str(folder), ("deploy.command=true", "deploy.rollback_command=true", *overrides))
