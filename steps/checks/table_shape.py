"""Whether the table is one that this plan and this tool can work on: name, engine, key, columns, room for what comes."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from steps import catalogue
from steps.checks import words
from steps.checks.finding import Finding, Look
from steps.mysql import VALUE

NAME = "table-shape"
MOST_COLUMNS = 1017
WALKABLE = {"tinyint", "smallint", "mediumint", "int", "bigint", "char", "varchar", "binary", "varbinary", "date", "datetime",
            "timestamp"}


def run(look: Look) -> list[Finding]:
    """Looks at the catalogue only. A table that is not there, or no base table, is told alone."""
    kind, engine = look.kind
    if not kind:
        return [_missing(look)]
    if is_no_base_table(look):
        return [_refuse(f"table {look.table}", f"is a {kind.lower()}", "name the table behind it in the plan")]
    columns = list(look.shape.columns)
    return [*_engine(look, engine), *_key(look), *_partitions(look), *_columns(look, columns), *_width(look, columns)]


def is_no_base_table(look: Look) -> bool:
    """Whether the plan's table is a view; every other check would tell nonsense of its columns."""
    return look.kind[0] not in ("", "BASE TABLE")


def _refuse(subject: str, what: str, remedy: str) -> Finding:
    return Finding(NAME, "refuse", subject, what, remedy)


def _nearest(name: str, names: Iterable[str]) -> str | None:
    """The one of *names* that was most likely meant."""
    folded = {other.lower(): other for other in names}
    close = difflib.get_close_matches(name.lower(), folded, 1)
    return folded[close[0]] if close else None


def _missing(look: Look) -> Finding:
    """The server itself folds case where lower_case_table_names says so (case C81)."""
    tables = [str(row[0]) for row in look.session.query(
        f"SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = {VALUE} ORDER BY 1 LIMIT 10000", look.schema)]
    nearest = _nearest(look.table, tables)
    return _refuse(
        f"table {look.table}",
        f"does not exist in {look.schema}" + (f"; {nearest} does" if nearest else ""),
        "correct plan.table (names are case-sensitive here) or the database in the URL")


def _engine(look: Look, engine: str) -> list[Finding]:
    if engine.lower() == "innodb":
        return []
    return [_refuse(
        f"table {look.table}",
        f"is stored in {engine}: no transactions, no change without blocking",
        "convert it to InnoDB first, in a maintenance window")]


def _key(look: Look) -> list[Finding]:
    """Passes walk the primary key and keep its value as a cursor (cases C57 to C59)."""
    key = catalogue.primary_key(look.session, look.schema, look.table)
    if not key:
        return [_refuse(f"table {look.table}", "has no primary key, so no pass can walk its rows", "add one first")]
    return [_refuse(
        f"column {look.table}.{column}",
        f"is part of the primary key and of type {kind}, whose values do not survive being written down and compared "
        "again",
        "give the table a key of integers, strings, bytes or dates")
        for column, kind in key if kind.lower() not in WALKABLE]


def _partitions(look: Look) -> list[Finding]:
    """1506, 1503 and 3855 would come only after the steps before were applied (case C29)."""
    expressions = look.session.query(
        "SELECT PARTITION_EXPRESSION, SUBPARTITION_EXPRESSION FROM information_schema.PARTITIONS WHERE TABLE_SCHEMA = "
        f"{VALUE} AND TABLE_NAME = {VALUE} AND PARTITION_NAME IS NOT NULL LIMIT 1", look.schema, look.table)
    if not expressions:
        return []
    named = words.names(" ".join(str(text) for text in expressions[0] if text))
    going = [*look.plan.removed_columns, *(rename.old for rename in look.plan.renames if look.plan.plan.renames_in_place)]
    return [_refuse(
        f"step {step}",
        f"adds {'a foreign key' if key.parent else 'the unique index'} {key.name} to {look.table}, which is "
        f"partitioned: MySQL refuses it ({1506 if key.parent else 1503})",
        "leave the step out, or remove the partitioning first")
        for step, table, key in words.plan_keys(look.plan)
        if table == look.table and (key.parent or not named <= {name.lower() for name, _length in key.columns})
    ] + [_refuse(
        f"column {look.table}.{column}",
        f"is part of the table's partitioning: MySQL renames and drops no such column (3855), and the plan removes {column}",
        "keep the column, or remove the partitioning first")
        for column in going if column.lower() in named]


def _columns(look: Look, columns: list[str]) -> list[Finding]:
    """
    Every column that the plan takes for given stands there before the first run, spelled as the plan does.

    To the server a column's name has no case; but what it shows is compared with the plan in many places, rows and definitions alike.
    """
    if look.begun:
        return []
    given = {pair.old: "[[sync]] old" for pair in look.plan.sync}
    given.update({rename.old: "a rename's from" for rename in look.plan.renames})
    given.update({name: "cleanup.drop" for name in look.plan.cleanup.drop if name not in given})
    there = {column.lower(): column for column in columns}
    found = []
    for name, key in given.items():
        if name not in columns and name.lower() in there:
            found.append(_refuse(
                f"column {look.table}.{name}", f"is called {there[name.lower()]}, and {key} of the plan spells it otherwise",
                "spell it as the table does"))
        elif name.lower() not in there:
            nearest = _nearest(name, columns)
            found.append(_refuse(
                f"column {look.table}.{name}",
                f"does not exist, but {key} of the plan names it"
                + (f"; {nearest} does" if nearest else ""),
                "correct the plan"))
    return found


def _width(look: Look, columns: list[str]) -> list[Finding]:
    coming = {name.lower() for sql in words.steps_sql(look.plan).values() for name in words.added_columns(sql)}
    coming |= {rename.new.lower() for rename in look.plan.renames}
    after = len({column.lower() for column in columns} | coming)
    if after <= MOST_COLUMNS:
        return []
    return [_refuse(
        f"table {look.table}",
        f"would have {after} columns; InnoDB holds {MOST_COLUMNS}",
        "remove columns nobody uses, or split the table")]
