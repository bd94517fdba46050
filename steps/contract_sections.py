"""The sections of a contract, one model each: frozen, an unknown key is an error, impossible combinations are refused."""

from __future__ import annotations

import re

from pydantic import Field as Bounded
from pydantic import model_validator

from steps.mysql import quote
from steps.plan_sections import Name, Part

VARCHAR = re.compile(r"^varchar\((\d+)\)$")


class Field(Part):
    """One field of the model and its column. `prisma_*` say what the column alone cannot."""

    name: Name
    column: Name
    type: str
    length: int | None = Bounded(default=None, ge=1)
    nullable: bool
    default: str | None = None
    indexes: tuple[Name, ...] = ()
    write_source: str
    old_field: str
    deletion_stage: str | None = None
    prisma_generated: str | None = None
    prisma_type: str | None = None
    prisma_note: str | None = None

    @model_validator(mode="after")
    def _length_fits(self) -> Field:
        found = VARCHAR.match(self.type)
        if (int(found[1]) if found else None) != self.length:
            raise ValueError(f"length {self.length} is not what type {self.type} says")
        return self


class OldSide(Part):
    """The column that a rename leaves behind until cleanup; it has the definition of the field that it is the old side *of*."""

    column: Name
    of: Name


class Index(Part):
    name: Name
    columns: tuple[Name, ...] = Bounded(min_length=1)
    unique: bool
    why: str

    @property
    def definition(self) -> str:
        kind = "PRIMARY KEY" if self.name == "PRIMARY" else "UNIQUE INDEX" if self.unique else "INDEX"
        return f"{kind} ({', '.join(map(quote, self.columns))})"


class Relation(Part):
    """
    A child's column that points at a parent, and what becomes of the child when the parent is deleted.

    Without a constraint it is logical only. With `arrives` (an issue) it is due once that issue's table has the column (F9).
    """

    label: str
    child: Name
    column: Name
    parent: Name
    parent_column: Name = "id"
    constraint: Name | None = None
    on_delete: str | None = None
    on_update: str | None = None
    one: Name | None = None
    many: Name | None = None
    relation_name: Name | None = None
    arrives: str | None = None
    before: str
    why: str

    @model_validator(mode="after")
    def _rules_go_with_a_constraint(self) -> Relation:
        if len({value is None for value in (self.constraint, self.on_delete, self.on_update, self.one, self.many)}) > 1:
            raise ValueError("constraint, on_delete, on_update, one and many go together")
        return self

    @property
    def definition(self) -> str:
        return (f"FOREIGN KEY ({quote(self.column)}) REFERENCES {quote(self.parent)} ({quote(self.parent_column)}) "
                f"ON DELETE {self.on_delete} ON UPDATE {self.on_update}")


class Scenario(Part):
    """One row of the read/write matrix."""

    who: str
    reads: tuple[str, ...]
    writes: str
    sync: str
    until: str | None = None


class State(Part):
    """One state of the unified lifecycle; without `to_status` writing it leaves the old column alone (F11)."""

    lifecycle: str
    from_status: str | None = None
    from_runtime: str | None = None
    to_status: str | None = None
    means: str
    enters: str
    leaves: str


class Head(Part):
    table: Name
    model: Name
    cleanup_stage: str
    column_order: tuple[Name, ...]
