"""
Names of columns and indexes that a step would add and that the table has already for something else (1060, 1061).

A step may have been applied before there was a ledger; so a name counts as taken only where what stands there is not what the plan makes.
"""

from __future__ import annotations

import re

from steps.checks import changes, words
from steps.checks.changes import Change
from steps.checks.column_type import BLOBS, INTEGERS, TEMPORAL, TEXTS, Column
from steps.checks.finding import Look

SIZED = {"char", "varchar", "binary", "varbinary", "bit", "datetime", "timestamp", "time", "decimal"}
COMPARED = {*INTEGERS, *TEXTS, *BLOBS, *TEMPORAL, *SIZED, "json", "enum", "set"}
"""Types that SHOW CREATE TABLE writes as a plan does; of others the rehearsal tells."""

QUOTED = re.compile(r"`((?:[^`]|``)+)`")


def columns(look: Look) -> dict[tuple[str, str], str]:
    """By (step, folded column) what stands in the way of adding it: nothing where the ledger knows the plan, since the staircase judges."""
    if look.begun:
        return {}
    live, found = changes.live_columns(look), dict[tuple[str, str], str]()
    meant = _meant(look)
    leaving = {name.lower() for sql in words.steps_sql(look.plan).values() for name in words.removed_columns(sql)}
    for step, sql in words.steps_sql(look.plan).items():
        added = {change.column.lower() for change in changes.of(sql, look.collation) if change.does == "add"}
        half = bool(added - live.keys() - leaving)  # one ALTER adds all of its columns or none
        for name in added & live.keys():
            if half or not any(_alike(live[name], one) for one in meant[name]):
                found[step, name] = live[name].type
    return found


def _meant(look: Look) -> dict[str, list[Column]]:
    """Every definition that the plan's steps give a column."""
    found: dict[str, list[Column]] = {}
    made: list[Change] = [change for sql in words.steps_sql(look.plan).values() for change in changes.of(sql, look.collation)]
    for change in made:
        if change.column_type:
            found.setdefault(change.to.lower(), []).append(change.column_type)
    return found


def _alike(one: Column, other: Column) -> bool:
    """Whether both may be the same type; display widths and types that are written in several ways count as the same."""
    if other.kind not in COMPARED or (other.kind in {*TEXTS, *BLOBS} and other.arguments):
        return True
    if one.kind != other.kind or one.unsigned != other.unsigned:
        return False
    return one.length == other.length if one.kind in SIZED else True


def indexes(look: Look) -> list[tuple[str, str, str]]:
    """(step, index, its columns) where the table has an index of that name on other columns."""
    if look.begun:
        return []
    live = {name.lower(): [column.replace("``", "`") for column in QUOTED.findall(text)] for name, text in look.shape.indexes.items()}
    renamed = {rename.old.lower(): rename.new.lower() for rename in look.plan.renames}
    found = []
    for step, sql in words.steps_sql(look.plan).items():
        dropped = {words.bare(clause[2]).lower() for clause in words.clauses(sql)
                   if [word.upper() for word in clause[:2]] in (["DROP", "INDEX"], ["DROP", "KEY"]) and len(clause) > 2}  # noqa: PLR2004
        for name, wanted in _added(sql):
            there = live.get(name.lower())
            if there is not None and name.lower() not in dropped and _new(there, renamed) != _new(wanted, renamed):
                found.append((step, name, ", ".join(there)))
    return found


def _new(names: list[str], renamed: dict[str, str]) -> list[str]:
    return [renamed.get(name.lower(), name).lower() for name in names]


def _added(alter: str) -> list[tuple[str, list[str]]]:
    """Name and columns of each index that *alter* adds by name; those over expressions are left out."""
    found = []
    for clause in words.clauses(alter):
        upper = [word.upper() for word in clause]
        kind = next((at for at, word in enumerate(upper[:3]) if word in ("INDEX", "KEY")), 0)
        if upper[0] != "ADD" or not kind or set(upper[1:kind]) - {"UNIQUE"} or "(" not in clause or upper[kind + 1] in ("(", "USING"):
            continue
        end = len(clause) - clause[::-1].index(")") - 1
        listed = words.parts(clause[clause.index("(") + 1:end])
        if all(part[0] != "(" for part in listed):
            found.append((words.bare(clause[kind + 1]), [words.bare(part[0]) for part in listed]))
    return found
