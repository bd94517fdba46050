"""
The ladder as the plan asks for it, before any server has answered: each rung's name, its way up and its way down as SQL.

First pre_deploy's steps, then cleanup's: tombstones (the old columns renamed, INSTANT and reversible), indexes on them, the
columns themselves. The rehearsal climbs them on a clone and so learns the rest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from steps.catalogue import Shape
from steps.checks import column_type, words
from steps.errors import Refused
from steps.mysql import LONGEST_NAME, quote
from steps.phase import Phase
from steps.plan import Plan, SchemaStep
from steps.quoted_names import column_of, has_name, parts

TOMBSTONE = "_gone_"
TOMBSTONES, DROP_INDEXES, DROP_COLUMNS = "cleanup_tombstones", "cleanup_drop_indexes", "cleanup_drop_columns"


@dataclass(frozen=True)
class Rung:
    """*up* is made from the shape it is climbed from, *down* from the same shape, so that it leads back there."""

    name: str
    up: Callable[[Shape], str]
    down: Callable[[Shape], str]
    phase: Phase
    after_first_pass: bool = False


def rungs(plan: Plan) -> list[Rung]:
    """pre_deploy's rungs, then cleanup's, in the order in which they are climbed."""
    expand = [Rung(step.name, lambda shape, step=step: _up(plan, step, shape),  # type: ignore[misc]
                   lambda _shape, step=step: _down(plan, step), Phase.PRE_DEPLOY,  # type: ignore[misc]
                   step.after is not None and not plan.plan.fills_late) for step in plan.schema_steps]
    if not plan.removed_columns:
        return expand
    return [*expand,
            Rung(TOMBSTONES, lambda shape: _bury(plan, shape), lambda _shape: _unbury(plan), Phase.CLEANUP),
            Rung(DROP_INDEXES, lambda shape: _drop_indexes(plan, shape), lambda shape: _add_indexes(plan, shape), Phase.CLEANUP),
            Rung(DROP_COLUMNS, lambda _shape: _drop_columns(plan), lambda shape: _add_columns(plan, shape), Phase.CLEANUP)]


def tombstone(column: str) -> str:
    """The name under which a column that cleanup takes away waits for its drop (case C20: never over 64 characters)."""
    name = TOMBSTONE + column
    return name if len(name) <= LONGEST_NAME else TOMBSTONE + hashlib.sha256(column.encode()).hexdigest()[:32]


def _supplied(definition: str) -> bool:
    """Whether an INSERT that does not name a column of this *definition* gets a value for it (case C31), whatever its comment says."""
    return column_type.parsed(words.spelled(definition), "").supplied


def _alter(plan: Plan, clauses: list[str]) -> str:
    return f"ALTER TABLE {quote(plan.table)} " + ", ".join(clauses) if clauses else ""


def _up(plan: Plan, step: SchemaStep, shape: Shape) -> str:
    if step.rename is None:
        return plan.sql_text[f"{step.ddl}.up.sql"]
    old, new = step.rename.old, step.rename.new
    definition = shape.columns.get(old)
    if definition is None:
        raise Refused(f"step {step.name}", f"column {old} does not exist", "correct the plan")
    if plan.plan.renames_in_place:
        return _alter(plan, [f"RENAME COLUMN {quote(old)} TO {quote(new)}"])
    if not _supplied(definition):
        raise Refused(f"step {step.name}", f"{old} is NOT NULL without a default, so a second column would refuse the old "
                      "application's INSERTs with 1364 whenever the triggers are off", f"give {old} a default first")
    return _alter(plan, [f"ADD COLUMN {quote(new)} {definition} AFTER {quote(old)}"])


def _down(plan: Plan, step: SchemaStep) -> str:
    if step.rename is None:
        return plan.sql_text[f"{step.ddl}.down.sql"]
    if plan.plan.renames_in_place:
        return _alter(plan, [f"RENAME COLUMN {quote(step.rename.new)} TO {quote(step.rename.old)}"])
    return _alter(plan, [f"DROP COLUMN {quote(step.rename.new)}"])


def _bury(plan: Plan, shape: Shape) -> str:
    """
    Raises:
        Refused: a column that new code would have to supply once the triggers are off, or that a key or CHECK still needs.
    """
    for column in plan.removed_columns:
        definition = shape.columns.get(column)
        if definition is None:
            raise Refused(f"cleanup of {column}", "the column does not exist", "correct cleanup.drop")
        if not _supplied(definition):
            raise Refused(f"cleanup of {column}", "is NOT NULL without a default, so every INSERT of the new application would fail with "
                          "1364 once it is buried", f"give {column} a default in a step of the plan")
        for name, text in {**shape.foreign_keys, **shape.checks}.items():
            if has_name(text, column):
                raise Refused(f"cleanup of {column}", f"{name} needs it", f"take {name} away in a step of the plan")
    return _alter(plan, [f"RENAME COLUMN {quote(c)} TO {quote(tombstone(c))}" for c in plan.removed_columns])


def _unbury(plan: Plan) -> str:
    return _alter(plan, [f"RENAME COLUMN {quote(tombstone(c))} TO {quote(c)}" for c in plan.removed_columns])


def _buried_indexes(plan: Plan, shape: Shape) -> dict[str, str]:
    """
    Indexes that stand on tombstones, by name; dropped by name, since MySQL would narrow them silently.

    Raises:
        Refused: one that other columns share and that `cleanup.drop_indexes` does not name.
    """
    gone = {tombstone(column) for column in plan.removed_columns}
    found = {}
    for name, text in shape.indexes.items():
        columns = [column_of(part) for part in parts(text)]
        on = [column for column in columns if column in gone]
        if on and len(on) < len(columns) and name not in plan.cleanup.drop_indexes:
            raise Refused(f"index {name}", "stands on a column that cleanup drops and on others, so MySQL would narrow it silently",
                          "build its successor in a step of the plan and name this one in cleanup.drop_indexes")
        if on:
            found[name] = text
    return found


def _drop_indexes(plan: Plan, shape: Shape) -> str:
    return _alter(plan, [f"DROP INDEX {quote(name)}" for name in _buried_indexes(plan, shape)])


def _add_indexes(plan: Plan, shape: Shape) -> str:
    return _alter(plan, ["ADD " + text.replace("INDEX", f"INDEX {quote(name)}", 1) for name, text in _buried_indexes(plan, shape).items()])


def _drop_columns(plan: Plan) -> str:
    return _alter(plan, [f"DROP COLUMN {quote(tombstone(column))}" for column in plan.removed_columns])


def _add_columns(plan: Plan, shape: Shape) -> str:
    """The tombstones again, each with its recorded definition and in its place."""
    gone, order = {tombstone(column) for column in plan.removed_columns}, list(shape.columns)
    return _alter(plan, [f"ADD COLUMN {quote(name)} {shape.columns[name]} " + (f"AFTER {quote(order[at - 1])}" if at else "FIRST")
                         for at, name in enumerate(order) if name in gone])
