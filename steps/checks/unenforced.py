"""
Unique indexes that make MySQL stop enforcing a foreign key: one whose columns such an index begins with, before one that may be NULL.

Measured on 9.7.4, whose foreign keys are the SQL layer's (`innodb_native_foreign_keys` OFF, a variable that 9.6 brought): with
UNIQUE (u, j, k) a row whose k is NULL may name a u that has no parent; with UNIQUE (j, u, k), or InnoDB's own keys, 1452 comes.
"""

from __future__ import annotations

import re

from steps.checks import changes, words
from steps.checks.column_type import Column
from steps.checks.finding import Finding, Look

NAME = "unenforced"
OF_KEY = re.compile(r"FOREIGN KEY \(([^)]*)\)")
COLUMN = re.compile(r"`((?:[^`]|``)+)`")


def run(look: Look) -> list[Finding]:
    """What the plan's unique indexes would do to the foreign keys that stand; reads the catalogue only."""
    native = look.session.query("SHOW GLOBAL VARIABLES LIKE 'innodb_native_foreign_keys'")
    if not native or str(native[0][1]).upper() in ("ON", "1"):
        return []
    columns = changes.final(look)
    return [_finding(look, step, key, name, [column for column, _ in key.columns if columns[column.lower()].nullable])
            for step, sql in words.steps_sql(look.plan).items() for key in words.keys(sql) if not key.parent
            for name, text in sorted(look.shape.foreign_keys.items()) if _hides(key, _columns(text), columns)]


def _columns(foreign_key: str) -> list[str]:
    found = OF_KEY.search(foreign_key)
    return [name.lower() for name in COLUMN.findall(found[1])] if found else []


def _hides(key: words.Key, child: list[str], columns: dict[str, Column]) -> bool:
    names = [name.lower() for name, _length in key.columns]
    return bool(child) and names[:len(child)] == child and any(
        name in columns and columns[name].nullable for name in names[len(child):])


def _finding(look: Look, step: str, key: words.Key, foreign_key: str, nullable: list[str]) -> Finding:
    return Finding(
        NAME, "warn", f"foreign key {look.table}.{foreign_key}",
        f"is no longer enforced by this server (innodb_native_foreign_keys is OFF) for rows whose {' or '.join(nullable)} is NULL once "
        f"step {step} has added the unique index {key.name}: a child may then be stored without its parent; parents stay protected",
        "start the server with innodb_native_foreign_keys = ON, or let another column come first in that index, or look for orphans in "
        "a query of verify")
