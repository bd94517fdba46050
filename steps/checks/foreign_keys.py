"""The foreign keys that the plan adds: both sides' definitions, their names, and cascades that no trigger sees (cases C18 to C20)."""

from __future__ import annotations

from collections.abc import Iterator

from steps.checks import changes, words
from steps.checks.column_type import Column
from steps.checks.finding import Finding, Look
from steps.mysql import VALUE
from steps.quoted_names import has_name

NAME = "foreign-keys"
SETTING = ("CASCADE", "SET NULL", "SET DEFAULT")


def run(look: Look) -> list[Finding]:
    """Reads the catalogue only; the server itself judges what is not compared here, in the rehearsal."""
    if not look.shape.columns:
        return []
    final = changes.final(look)
    found = []
    for step, table, key in _added(look):
        if key.refers_abroad(look.schema):
            continue
        mine = final if table == look.table else changes.columns_of(look, table)
        theirs = final if key.parent == look.table else changes.columns_of(look, key.parent)
        if mine:  # a leaf whose table is not there is not due
            found += _mismatches(step, table, key, mine, theirs)
    return found + _taken_names(look) + _cascades(look)


def _added(look: Look) -> Iterator[tuple[str, str, words.Key]]:
    """Foreign keys that do not stand yet, with step and table; a leaf's as well."""
    standing = {name.lower() for name in look.shape.foreign_keys}
    yield from ((step, table, key) for step, table, key in words.plan_keys(look.plan)
                if key.parent and not (table == look.table and key.name.lower() in standing))


def _mismatches(step: str, table: str, key: words.Key, mine: dict[str, Column], theirs: dict[str, Column]) -> list[Finding]:
    if not theirs:
        return [Finding(NAME, "refuse", f"step {step}", f"adds a foreign key to {key.parent}, which does not exist (1824)",
                        "create it first, or leave the step out")]
    found = []
    for (name, _length), other in zip(key.columns, key.parent_columns, strict=False):
        child, parent = mine.get(name.lower()), theirs.get(other.lower())
        if child and parent and not _compatible(child, parent):
            found.append(Finding(
                NAME, "refuse", f"column {table}.{name}",
                f"would be {child.definition}, and step {step} refers it to {key.parent}.{other}, which is {parent.definition}: MySQL "
                "refuses that (3780)",
                "give it the referenced column's type, sign, character set and collation; only lengths of strings may differ"))
    return found


def _compatible(child: Column, parent: Column) -> bool:
    if child.textual and parent.textual:
        unknown = not child.collation or not parent.collation
        return child.charset == parent.charset and (unknown or child.collation == parent.collation)
    if child.kind in ("binary", "varbinary") and parent.kind in ("binary", "varbinary"):
        return True
    digits = child.kind == "decimal" and child.arguments != parent.arguments
    return child.kind == parent.kind and child.unsigned == parent.unsigned and not digits


def _taken_names(look: Look) -> list[Finding]:
    """Names of foreign keys are one for the whole schema (1826), which a clone in a schema of its own cannot know."""
    wanted = {key.name.lower(): (step, table, key.name) for step, table, key in _added(look) if key.name}
    if not wanted:
        return []
    rows = look.session.query(
        "SELECT CONSTRAINT_NAME, TABLE_NAME FROM information_schema.TABLE_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = "
        f"{VALUE} AND CONSTRAINT_TYPE = 'FOREIGN KEY' AND CONSTRAINT_NAME IN ({', '.join([VALUE] * len(wanted))})", look.schema, *wanted)
    found = []
    for name, owner in rows:
        step, table, written = wanted[str(name).lower()]
        if str(owner).lower() != table.lower():
            found.append(Finding(NAME, "refuse", f"step {step}", f"calls its foreign key {written}, a name that {owner} of this schema has "
                                 "already (1826)", "choose another name, in the .down.sql as well"))
    return found


def _cascades(look: Look) -> list[Finding]:
    """A cascade writes without firing triggers, so a side that it sets leaves the other behind (case C19)."""
    pairs = {pair.old.lower(): pair.new for pair in look.plan.sync} | {pair.new.lower(): pair.old for pair in look.plan.sync}
    pairs |= {r.old.lower(): r.new for r in look.plan.dual_renames} | {r.new.lower(): r.old for r in look.plan.dual_renames}
    standing = {name: text.upper() for name, text in look.shape.foreign_keys.items()}
    coming = {key.name: sql.upper() for sql in words.steps_sql(look.plan).values() for key in words.keys(sql) if key.parent}
    found = []
    for name, text in {**coming, **standing}.items():
        sets = any(f"ON {event} {rule}" in " ".join(text.split()) for event in ("DELETE", "UPDATE") for rule in SETTING)
        own = {c.lower() for c in look.shape.columns if has_name(text.partition(" REFERENCES ")[0], c)}
        columns = own | {c.lower() for sql in words.steps_sql(look.plan).values() for key in words.keys(sql) if key.name == name
                         for c, _length in key.columns}
        found += [Finding(NAME, "warn", f"foreign key {name}", f"sets {column} by a cascade, which fires no trigger: {pairs[column]} would "
                          "keep its value and the two would not agree", "let the application write it, or leave it out of the pairs")
                  for column in sorted(columns & set(pairs)) if sets]
    return found
