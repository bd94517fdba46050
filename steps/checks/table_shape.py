"""Whether the table is one that this plan and this tool can work on: name, engine, key, columns, room for what comes."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from steps import catalogue
from steps.checks import server, words
from steps.checks.finding import Finding, Look, could_not_look, unavailable
from steps.errors import StatementFailed
from steps.mysql import VALUE

NAME = "table-shape"
MOST_COLUMNS = 1017
ROW_VERSIONS = 64
ROW_VERSIONS_FROM_9_1 = 255
WALKABLE = {"tinyint", "smallint", "mediumint", "int", "bigint", "char", "varchar", "binary", "varbinary", "date", "datetime",
            "timestamp"}


def run(look: Look) -> list[Finding]:
    """Looks at the catalogue only. A table that is not there, or no base table, is told alone."""
    rows = look.session.query("SELECT TABLE_NAME, TABLE_TYPE, ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = "
                              f"{VALUE} AND TABLE_NAME = {VALUE}", look.schema, look.table)
    if not rows:
        return [_missing(look)]
    name, kind, engine = map(str, rows[0])
    if kind != "BASE TABLE":
        return [_refuse(f"table {look.table}", f"is a {kind.lower()}", "name the table behind it in the plan")]
    columns = list(catalogue.shape(look.session, look.schema, look.table).columns)
    return [*_engine(look, engine), *_key(look), *_partitions(look), *_columns(look, columns), *_width(look, columns),
            *_row_versions(look, name)]


def _refuse(subject: str, what: str, remedy: str, accept: str | None = None) -> Finding:
    return Finding(NAME, "refuse", subject, what, remedy, accept)


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
    """1506 and 1503 would come only after the steps before were applied (case C29)."""
    if not look.session.value("SELECT COUNT(*) FROM information_schema.PARTITIONS WHERE TABLE_SCHEMA = "
                              f"{VALUE} AND TABLE_NAME = {VALUE} AND PARTITION_NAME IS NOT NULL", look.schema, look.table):
        return []
    adding = {step: words.keys(sql) for step, sql in words.steps_sql(look.plan).items()}
    return [_refuse(
        f"step {step}",
        f"adds {'a foreign key' if key.parent else 'the unique index'} {key.name} to {look.table}, which is "
        f"partitioned: MySQL refuses it ({1506 if key.parent else 1503})",
        "leave the step out, or remove the partitioning first")
        for step, keys in adding.items() for key in keys]


def _columns(look: Look, columns: list[str]) -> list[Finding]:
    """Every column that the plan takes for given stands there before the first run; names of columns have no case."""
    if look.begun:
        return []
    given = {pair.old: "[[sync]] old" for pair in look.plan.sync}
    given.update({rename.old: "a rename's from" for rename in look.plan.renames})
    given.update({name: "cleanup.drop" for name in look.plan.cleanup.drop if name not in given})
    there = {column.lower() for column in columns}
    found = []
    for name, key in given.items():
        if name.lower() not in there:
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


def _row_versions(look: Look, table: str) -> list[Finding]:
    """Each instant step takes one, and so does its way back; 4092 would come half-way (case C12)."""
    limit = ROW_VERSIONS_FROM_9_1 if server.facts(look.session).number >= (9, 1) else ROW_VERSIONS
    stored = f"{_file_name(look.schema)}/{_file_name(table)}"
    try:
        used = look.session.value("SELECT MAX(TOTAL_ROW_VERSIONS) FROM information_schema.INNODB_TABLES "
                                  f"WHERE NAME = {VALUE} OR LEFT(NAME, {VALUE}) = {VALUE}",
                                  stored, len(stored) + 3, f"{stored}#p#")
    except StatementFailed as error:
        if not unavailable(error):
            raise
        return [could_not_look(NAME, f"row versions of {look.table}", error, "warn")]
    needed = 2 * len(look.plan.pre_deploy.step)
    if used is None or used + needed <= limit:
        return []
    return [_refuse(
        f"table {look.table}",
        f"has used {used} of {limit} row versions; the plan and its way back may need {needed}",
        "rebuild the table first (ALTER TABLE … FORCE, in place), or go on with --accept row-versions",
        "row-versions")]


def _file_name(name: str) -> str:
    """*name* as InnoDB stores it; letters outside ASCII have codes of MySQL's own, and such tables are not found."""
    return re.sub(r"[^A-Za-z0-9_]", lambda found: f"@{ord(found[0]):04x}", name)
