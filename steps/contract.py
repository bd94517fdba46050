"""
The frozen schema of a plan's table (`contract.toml`, issue 274): every field, index, relation and state, and nothing else.

A plan without that file has no contract, and nothing is held against one.
"""

from __future__ import annotations

import re
from collections.abc import Container
from enum import StrEnum

from pydantic import Field as Bounded
from pydantic import ValidationError, model_validator

from steps import plan_files
from steps.catalogue import Shape
from steps.contract_sections import Field, Head, Index, OldSide, Relation, Scenario, State
from steps.errors import PlanInvalid
from steps.plan import Plan
from steps.plan_loader import _complaint
from steps.plan_sections import Part
from steps.rungs import tombstone

FILE = "contract.toml"
COLUMN = re.compile(
    r"^(?P<type>.+?)(?P<collation> CHARACTER SET \S+ COLLATE \S+)?(?P<generated> GENERATED ALWAYS AS \(.*\) (?:STORED|VIRTUAL))?"
    r" (?P<null>NOT NULL|NULL)"
    r"(?: DEFAULT (?P<default>'(?:[^']|'')*'|CURRENT_TIMESTAMP(?:\(\d\))?|\(.*\)|\S+))?(?P<more>.*)$", re.DOTALL)

PARENT = re.compile(r"(?<=REFERENCES )(?:`(?:[^`]|``)*`\.)?`(?:[^`]|``)*`")


class Stage(StrEnum):
    """How far the table has come: what of the old application is still on it."""

    EXPANDED = "expanded"  # both sides of every rename; the default path from phase 1 to 5
    RENAMED = "renamed"    # renamed in place, nothing dropped; path = "adr" from phase 1 to 5
    CLEANED = "cleaned"    # old sides and the fields of the cleanup stage are gone, or wait as tombstones for their drop


class Contract(Part):
    """The whole file."""

    contract: Head
    field: tuple[Field, ...] = Bounded(min_length=1)
    old_side: tuple[OldSide, ...] = ()
    index: tuple[Index, ...] = Bounded(min_length=1)
    relation: tuple[Relation, ...] = ()
    scenario: tuple[Scenario, ...] = ()
    state: tuple[State, ...] = ()

    @model_validator(mode="after")
    def _parts_fit_together(self) -> Contract:
        names, columns = [field.name for field in self.field], [field.column for field in self.field]
        for what, values in (("field", names), ("column", [*columns, *(side.column for side in self.old_side)]),
                             ("index", [index.name for index in self.index])):
            double = sorted({value for value in values if values.count(value) > 1})
            if double:
                raise ValueError(f"{what} {', '.join(double)} is there twice")
        wrong = {*self.contract.column_order} ^ {*columns, *(side.column for side in self.old_side)}
        if wrong or len(self.contract.column_order) != len(set(self.contract.column_order)):
            raise ValueError(f"column_order and the columns differ in {', '.join(sorted(wrong)) or 'a repeated name'}")
        lost = {side.of for side in self.old_side} - set(columns)
        if lost:
            raise ValueError(f"old_side speaks of {', '.join(sorted(lost))}, which is no column of a field")
        for index in self.index:
            if set(index.columns) - set(columns):
                raise ValueError(f"index {index.name} has a column that no field has")
        for field in self.field:
            within = {index.name for index in self.index if field.column in index.columns}
            if within != set(field.indexes):
                raise ValueError(f"field {field.name} and the indexes differ in {', '.join(sorted(within ^ set(field.indexes)))}")
        return self

    def fields(self, stage: Stage) -> tuple[Field, ...]:
        """The model's fields at *stage*, in the model's order."""
        gone = self.contract.cleanup_stage if stage is Stage.CLEANED else None
        return tuple(field for field in self.field if gone is None or field.deletion_stage != gone)

    def columns(self, stage: Stage) -> dict[str, Field]:
        """Every column at *stage*, in the table's order, with the field that defines it."""
        found = {field.column: field for field in self.fields(stage)}
        if stage is Stage.EXPANDED:
            found |= {side.column: found[side.of] for side in self.old_side}
        return {column: found[column] for column in self.contract.column_order if column in found}

    @property
    def foreign_keys(self) -> tuple[Relation, ...]:
        """The relations whose constraint is on the table itself."""
        return tuple(r for r in self.relation if r.child == self.contract.table and r.constraint and not r.arrives)


def load(plan: Plan) -> Contract | None:
    """
    The contract beside *plan*, or None where there is none.

    Raises:
        PlanInvalid: the text is wrong, or speaks of another table; names file and line.
    """
    path = plan.folder / FILE
    if not path.exists():
        return None
    text = plan_files.inside(path, FILE, "the contract", 1)
    try:
        contract = Contract.model_validate(plan_files.parsed(path, text))
    except ValidationError as error:
        raise _complaint(path, text, error, ()) from None
    written = plan.table_as_written or plan.table
    if contract.contract.table != written:
        raise PlanInvalid(str(path), f"is about table {contract.contract.table}, the plan about {written}", "correct one of them")
    return contract


def deviations(contract: Contract, shape: Shape, stage: Stage | str, *, folds: bool = False) -> list[str]:
    """
    Everything in which *shape* is not what *contract* says of *stage*: one line an object, empty when it is.

    *folds* says that the server takes names of tables that differ only in case for one (case C81).

    Columns by type, collation, nullability, default and order; indexes, foreign keys; and whatever the contract does not know.
    """
    wanted = contract.columns(Stage(stage))
    found = [line for column, field in wanted.items() for line in _column(column, field, shape.columns.get(column))]
    waiting = {tombstone(column): column for column in contract.contract.column_order} if stage == Stage.CLEANED else {}
    found += _unknown("column", shape.columns, {**waiting, **wanted})
    common = [column for column in wanted if column in shape.columns]
    order = [column for column in shape.columns if column in wanted]
    moved = next(((have, want) for have, want in zip(order, common, strict=True) if have != want), None)
    if moved:
        found.append(f"column order: {moved[0]} stands where the contract has {moved[1]}")
    found += _objects("index", shape.indexes, {index.name: index.definition for index in contract.index})
    keys = {str(r.constraint): r.definition for r in contract.foreign_keys}
    found += _objects("foreign key", *(map(_folded, (shape.foreign_keys, keys)) if folds else (shape.foreign_keys, keys)))
    return found + _unknown("check", shape.checks, {})


def _column(name: str, field: Field, definition: str | None) -> list[str]:
    if definition is None:
        return [f"column {name}: is missing"]
    parts = COLUMN.match(definition)
    if parts is None:
        return [f"column {name}: is {definition}, which the contract cannot express"]
    default = field.default if field.default is None or field.default.startswith("CURRENT_TIMESTAMP") else f"'{field.default}'"
    pairs = (("type", parts["type"], field.type), ("nullability", parts["null"], "NULL" if field.nullable else "NOT NULL"),
             ("default", parts["default"], default), ("collation", (parts["collation"] or "").strip(), ""),
             ("definition", ((parts["generated"] or "") + parts["more"]).strip(), ""))
    return [f"column {name}: {what} is {have or 'none'}, the contract says {want or 'none'}" for what, have, want in pairs if have != want]


def _folded(keys: dict[str, str]) -> dict[str, str]:
    """Foreign keys with the names of their parents in lower case."""
    return {name: PARENT.sub(lambda found: found[0].lower(), definition) for name, definition in keys.items()}


def _objects(kind: str, have: dict[str, str], want: dict[str, str]) -> list[str]:
    found = [f"{kind} {name}: is {have.get(name, 'missing')}, the contract says {definition}" for name, definition in want.items()
             if have.get(name) != definition]
    return found + _unknown(kind, have, want)


def _unknown(kind: str, have: dict[str, str], want: Container[str]) -> list[str]:
    return [f"{kind} {name}: the contract knows no such {kind}" for name in have if name not in want]
