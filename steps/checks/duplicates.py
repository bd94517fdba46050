"""Rows in the way of the plan's unique indexes and foreign keys, as far as their columns exist already (case C22; F7, F8)."""

from __future__ import annotations

import re

from steps.checks import changes, words
from steps.checks.finding import BOUNDED, Finding, Look
from steps.errors import StatementFailed
from steps.mysql import quote

NAME = "duplicates"
MOST = 1000
MIXED_COLLATIONS = 1267
COLLATION = re.compile(r"[a-z0-9_]+")


def run(look: Look) -> list[Finding]:
    """
    One bounded read for each key that does not stand yet. Says how many, never which values.

    Raises:
        StatementFailed: 3024 when a read took longer than a minute.
    """
    return [finding for step, table, key in words.plan_keys(look.plan) if _due(look, table, key)
            for finding in (_orphans(look, step, table, key) if key.parent else _doubles(look, step, table, key))]


def _due(look: Look, table: str, key: words.Key) -> bool:
    """Every column is there, and a key of that name is not; a parent in another schema is left to the rehearsal."""
    if key.refers_abroad(look.schema):
        return False
    sides = [(table, name) for name, _length in key.columns] + [(key.parent, name) for name in key.parent_columns]
    shape = look.shape_of(table)
    standing = shape.foreign_keys if key.parent else shape.indexes
    return key.name.lower() not in {name.lower() for name in standing} and all(
        name.lower() in {column.lower() for column in look.shape_of(owner).columns} for owner, name in sides)


def _doubles(look: Look, step: str, table: str, key: words.Key) -> list[Finding]:
    """Grouped under the collation that each column will have, as the index will compare; NULLs do not collide."""
    will_have = _new_collations(look) if table == look.table else {}
    parts = [(f"LEFT({quote(name)}, {length})" if length else quote(name)) + will_have.get(name.lower(), "")
             for name, length in key.columns]
    some = " AND ".join(f"{quote(name)} IS NOT NULL" for name, _length in key.columns)
    groups = (f"SELECT {', '.join(parts)}, COUNT(*) FROM {quote(look.schema)}.{quote(table)} WHERE {some} "
              f"GROUP BY {', '.join(parts)} HAVING COUNT(*) > 1")
    count = int(look.session.value(f"SELECT {BOUNDED} COUNT(*) FROM (SELECT 1 FROM {quote(look.schema)}.{quote(table)} "
                                   f"WHERE {some} GROUP BY {', '.join(parts)} HAVING COUNT(*) > 1 LIMIT {MOST}) found"))
    if not count:
        return []
    return [Finding(
        NAME, "refuse", f"table {table}",
        f"has {_many(count)} that rows share, as its collation compares them, where step {step} makes "
        f"({', '.join(name for name, _length in key.columns)}) unique (error 1062)",
        f"make them differ; find them with {groups}")]


def _new_collations(look: Look) -> dict[str, str]:
    """COLLATE clauses, by folded column, of columns that a step gives another collation of the same character set."""
    live, final = changes.live_columns(look), changes.final(look)
    return {name: f" COLLATE {final[name].collation}" for name, column in live.items()
            if column.charset == final[name].charset and column.collation != final[name].collation
            and COLLATION.fullmatch(final[name].collation)}


def _orphans(look: Look, step: str, table: str, key: words.Key) -> list[Finding]:
    columns = [name for name, _length in key.columns]
    same = " AND ".join(f"c.{quote(mine)} = p.{quote(theirs)}" for mine, theirs in zip(columns, key.parent_columns, strict=False))
    some = " AND ".join(f"c.{quote(name)} IS NOT NULL" for name in columns)
    orphans = (f"FROM {quote(look.schema)}.{quote(table)} c LEFT JOIN {quote(look.schema)}.{quote(key.parent)} p ON {same} "
               f"WHERE {some} AND p.{quote(key.parent_columns[0])} IS NULL")
    try:
        count = int(look.session.value(f"SELECT {BOUNDED} COUNT(*) FROM (SELECT 1 {orphans} LIMIT {MOST}) found"))
    except StatementFailed as error:
        if error.errno != MIXED_COLLATIONS:
            raise
        return []  # the foreign-keys check tells both definitions
    if not count:
        return []
    return [Finding(
        NAME, "refuse", f"table {table}",
        f"has {_many(count)} of ({', '.join(columns)}) without a row in {key.parent}, where step {step} adds a "
        "foreign key (error 1452)",
        f"correct or clear them; find them with SELECT c.* {orphans}")]


def _many(count: int) -> str:
    return f"{count} value{'' if count == 1 else 's'}" if count < MOST else f"{MOST} values or more"
