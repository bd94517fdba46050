"""
What the clauses of a step's ALTER TABLE do, each as one change, and the columns as the steps before it leave them.

Read from the text, so that all steps are judged at once and before any of them runs anywhere; what the server makes of them is
learned in the rehearsal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from steps import catalogue
from steps.checks import words
from steps.checks.column_type import Column, parsed
from steps.checks.finding import Look

KEYS = {"INDEX", "KEY", "UNIQUE", "FULLTEXT", "SPATIAL"}


@dataclass(frozen=True)
class Change:
    """
    One clause. *does* is add, drop, modify, rename, index, search index, primary key, foreign key, check, default or other.

    *column* is the column as it was called, *to* its name afterwards, *column_type* its definition afterwards.
    """

    does: str
    column: str = ""
    to: str = ""
    column_type: Column | None = None

    @property
    def algorithm_class(self) -> str:
        """What MySQL needs at best: `instant`, `in place` (an index), `foreign key`, `copy`, or nothing known."""
        if self.column_type and "STORED" in self.column_type.said:
            return "copy"
        return {"add": "instant", "drop": "instant", "rename": "instant", "default": "instant", "index": "in place",
                "foreign key": "foreign key", "modify": "copy", "primary key": "copy", "search index": "copy"}.get(self.does, "")


def of(alter: str, table_collation: str) -> list[Change]:
    """The changes that *alter* makes, in its order."""
    return [change for clause in words.clauses(alter) for change in _changes(clause, table_collation)]


def simulated(look: Look) -> Iterator[tuple[str, dict[str, Column], list[Change]]]:
    """Each step of the plan's own SQL with the columns (by folded name) as the live table and the steps before it leave them."""
    columns = live_columns(look)
    for step, sql in words.steps_sql(look.plan).items():
        changes = of(sql, look.collation)
        yield step, dict(columns), changes
        for change in changes:
            if change.does in ("drop", "rename", "modify"):
                there = columns.pop(change.column.lower(), None)
                after = change.column_type or there
                if change.does != "drop" and after:
                    columns[change.to.lower()] = after
            elif change.does == "add" and change.column_type:
                columns.setdefault(change.column.lower(), change.column_type)


def live_columns(look: Look) -> dict[str, Column]:
    """The live table's columns by folded name."""
    return _columns(look.shape, look.collation)


def columns_of(look: Look, table: str) -> dict[str, Column]:
    """The columns of another table of the schema by folded name; none where there is no such table."""
    shape = look.shape_of(table)
    return _columns(shape, catalogue.table_collation(look.session, look.schema, table)) if shape.columns else {}


def _columns(shape: catalogue.Shape, collation: str) -> dict[str, Column]:
    return {name.lower(): parsed(words.spelled(text), collation) for name, text in shape.columns.items()}


def final(look: Look) -> dict[str, Column]:
    """The columns, by folded name, once all of the plan's own SQL has been applied; second columns of renames among them."""
    columns = live_columns(look)
    for _step, before, changes in simulated(look):
        columns |= before
        columns |= {change.to.lower(): change.column_type for change in changes if change.column_type}
    for rename in look.plan.dual_renames:
        if rename.old.lower() in columns:
            columns.setdefault(rename.new.lower(), columns[rename.old.lower()])
    return columns


def _changes(clause: list[str], collation: str) -> list[Change]:
    upper = [word.upper() for word in clause]
    verb, at = upper[0], 2 if upper[1:2] == ["COLUMN"] else 1
    rest = clause[at:]
    of_a_column = bool(rest) and (at > 1 or upper[1] not in words.NOT_COLUMNS)
    if verb == "ADD":
        return _added(clause, upper, at, collation)
    if not of_a_column:
        return [Change("primary key" if upper[:2] == ["DROP", "PRIMARY"] else "other")]
    name = words.bare(rest[0])
    if verb == "MODIFY":
        return [Change("modify", name, name, parsed(rest[1:], collation))]
    if verb == "CHANGE":
        return [Change("modify", name, words.bare(rest[1]), parsed(rest[2:], collation))]
    if verb == "RENAME" and at > 1:
        return [Change("rename", name, words.bare(rest[2]))]
    return [Change({"DROP": "drop", "ALTER": "default"}.get(verb, "other"), name)]


def _added(clause: list[str], upper: list[str], at: int, collation: str) -> list[Change]:
    named = upper[at - 1:at] == ["COLUMN"]
    if not named and (upper[1] in words.NOT_COLUMNS):
        for word, does in (("FOREIGN", "foreign key"), ("PRIMARY", "primary key"), ("CHECK", "check")):
            if word in upper[1:4]:
                return [Change(does)]
        if set(upper[1:4]) & {"FULLTEXT", "SPATIAL"}:
            return [Change("search index")]
        return [Change("index" if set(upper[1:4]) & KEYS else "other")]
    rest = clause[at:]
    parts = words.parts(rest[1:-1]) if rest[0] == "(" else [rest]
    return [Change("add", words.bare(part[0]), words.bare(part[0]), parsed(part[1:], collation))
            for part in parts if part[0].upper() not in words.NOT_COLUMNS]
