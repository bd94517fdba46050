"""
Unique indexes that make MySQL stop enforcing a foreign key: one whose columns such an index begins with, before one that may be NULL.

Measured on 9.7.4 with its default, `innodb_native_foreign_keys` OFF; servers without that variable are passed over. With
UNIQUE (u, j, k) a row whose k is NULL may name a u that has no parent; with UNIQUE (j, u, k), or InnoDB's own keys, 1452 comes.
"""

from __future__ import annotations

from steps.checks import changes, words
from steps.checks.column_type import Column
from steps.checks.finding import Finding, Look
from steps.mysql import quote

NAME = "unenforced"


def run(look: Look) -> list[Finding]:
    """What the plan's unique indexes would do to the foreign keys that stand; reads the catalogue only."""
    native = look.session.query("SHOW GLOBAL VARIABLES LIKE 'innodb_native_foreign_keys'")
    if not native or str(native[0][1]).upper() in ("ON", "1"):
        return []
    columns = changes.final(look)
    standing = [key for name, text in sorted(look.shape.foreign_keys.items())
                for key in words.keys(f"ALTER TABLE t ADD CONSTRAINT {quote(name)} {text}")]
    return [_finding(look, step, unique, child, nullable)
            for step, table, unique in words.plan_keys(look.plan) if table == look.table and not unique.parent
            for child in standing if (nullable := _hiding(unique, child, columns))]


def _hiding(unique: words.Key, child: words.Key, columns: dict[str, Column]) -> list[str]:
    """The columns of *unique* that may be NULL behind those of the foreign key that it begins with; none where it does not."""
    names, begins = ([name for name, _length in key.columns] for key in (unique, child))
    if [name.lower() for name in names[:len(begins)]] != [name.lower() for name in begins]:
        return []
    return [name for name in names[len(begins):] if name.lower() in columns and columns[name.lower()].nullable]


def _finding(look: Look, step: str, unique: words.Key, child: words.Key, nullable: list[str]) -> Finding:
    return Finding(
        NAME, "warn", f"foreign key {look.table}.{child.name}",
        f"is no longer enforced by this server (innodb_native_foreign_keys is OFF) for rows whose {' or '.join(nullable)} is NULL once "
        f"step {step} has added the unique index {unique.name}: a child may then be stored without its parent; parents stay protected",
        "start the server with innodb_native_foreign_keys = ON, or let another column come first in that index, or look for orphans in "
        "a query of verify")
