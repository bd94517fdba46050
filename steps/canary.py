"""
The canary: before any client can meet the triggers, it writes as each generation in a transaction that is rolled back.

It never starts a transaction by statement, because START TRANSACTION inside a hold would release the table lock.
"""

from __future__ import annotations

import itertools
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from steps import server_trouble, waits
from steps.agreement import Pair
from steps.errors import CanaryFailed, LockTimeout, LockWaited, Refused, StatementFailed
from steps.mysql import VALUE, Session, quote
from steps.unchecked import without_foreign_key_checks

SAMPLES: dict[str, Any] = {
    "date": "2001-02-03", "datetime": "2001-02-03 04:05:06", "timestamp": "2001-02-03 04:05:06", "time": "04:05:06",
    "year": 2001, "json": "{}", "bit": 1, "float": 1, "double": 1, "decimal": 1, "enum": 1, "set": "",
}
NUMBERS = itertools.count(secrets.randbelow(30_000))
"""From a start drawn by lot, so that no two rows of a canary meet in a unique column."""
TRIES = 3
DEADLOCK = 1213
ACCENTED, PLAIN = "é'canary", "'canary"
NO_FRACTION = re.compile(r"\.0+$")
WHOLE_NUMBERS = {"tinyint", "smallint", "mediumint", "int", "bigint"}
TEXTUAL = {"char", "varchar", "tinytext", "text", "mediumtext", "longtext"}
COMPARABLE = TEXTUAL | WHOLE_NUMBERS | {"date", "datetime", "timestamp"}
BINARY = {"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"}


def sing(session: Session, table: str, schema: str, pairs: tuple[Pair, ...], *, in_hold: bool = False) -> tuple[str, ...]:
    """
    Write as the old and as the new generation, look at both sides, roll back. Safe to repeat; holds row locks on rows that
    exist for nobody else, for milliseconds. A deadlock or a lock wait of at most 1 s (a foreign trigger may write anywhere) is tried
    again, three times in all; *in_hold*, where every client waits, only the deadlock.

    Returns notes on what was written. Raises:
        CanaryFailed: the triggers do something else than the plan says.
        LockWaited: each try met a deadlock or waited for a lock in vain (1213, 1205).
        Refused: could not look: the server would not take the canary's rows.
    """
    tried = 0

    def attempt() -> tuple[str, ...]:
        nonlocal tried
        tried += 1
        try:
            return _sung(session, table, schema, pairs)
        except LockTimeout as error:
            if tried < TRIES and (error.errno == DEADLOCK or not in_hold):
                raise
            cause = "met a deadlock with" if error.errno == DEADLOCK else "waited in vain for a lock of"
            often = f"each of {tried} tries" if tried > 1 else "its only try inside a hold"
            raise LockWaited(f"canary on {table}", f"{cause} another transaction in {often}: {error.reason}",
                             "a trigger of the table writes rows that somebody holds; run the same command again") from None

    return waits.retry(attempt, tries=TRIES, first_wait_s=0.02, longest_wait_s=0.2)


def _sung(session: Session, table: str, schema: str, pairs: tuple[Pair, ...]) -> tuple[str, ...]:
    required = _required(session, schema, table)
    with _rolled_back(session):
        try:
            texts = _texts(session, schema, table)
            written = sum(_write_as(side, session, table, pairs, required, texts) for side in ("old", "new"))
        except StatementFailed as error:
            if server_trouble.interrupted(error):
                raise
            raise Refused(f"canary on {table}", f"could not look: {error.reason}",
                          "make the table accept a plain row, or acknowledge with --accept canary") from None
    return (f"canary wrote {written} rows as both generations and rolled them back",)


@contextmanager
def _rolled_back(session: Session) -> Iterator[None]:
    patience_s = int(session.value("SELECT @@session.innodb_lock_wait_timeout"))
    session.run("SET SESSION autocommit = 0")
    session.run("SET SESSION innodb_lock_wait_timeout = 1")
    try:
        with without_foreign_key_checks(session):
            try:
                yield
            finally:
                session.run("ROLLBACK")
    finally:
        session.run("SET SESSION autocommit = 1")
        session.run(f"SET SESSION innodb_lock_wait_timeout = {VALUE}", patience_s)


def _required(session: Session, schema: str, table: str) -> list[tuple[str, str, int]]:
    """(column, data type, length) of every column an INSERT has to name."""
    return [(str(name), str(kind).lower(), int(length or 0)) for name, kind, length in session.query(
        "SELECT COLUMN_NAME, DATA_TYPE, CHARACTER_MAXIMUM_LENGTH FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = "
        f"{VALUE} AND TABLE_NAME = {VALUE} AND IS_NULLABLE = 'NO' AND COLUMN_DEFAULT IS NULL AND EXTRA NOT LIKE {VALUE} "
        f"AND EXTRA NOT LIKE {VALUE} AND EXTRA NOT LIKE {VALUE} ORDER BY ORDINAL_POSITION",
        schema, table, "%auto_increment%", "%DEFAULT_GENERATED%", "% GENERATED%")]


def _sample(kind: str, length: int) -> Any:
    if kind in TEXTUAL:
        return ("canary-" + secrets.token_hex(16))[: length or 40]
    if kind in BINARY:
        return secrets.token_bytes(min(length or 16, 16))
    if kind in WHOLE_NUMBERS:
        number = next(NUMBERS)
        return number % 100 if kind == "tinyint" else 1 + number % 30_000
    return SAMPLES.get(kind)


def _insert(session: Session, table: str, required: list[tuple[str, str, int]], values: dict[str, Any]) -> tuple[str, tuple[Any, ...]]:
    """Insert one row; return a WHERE clause that finds it, with its values."""
    row = {name: _sample(kind, length) for name, kind, length in required} | values
    session.run(f"INSERT INTO {quote(table)} ({', '.join(map(quote, row))}) VALUES ({', '.join([VALUE] * len(row))})",
                *row.values())
    key = session.query(f"SHOW KEYS FROM {quote(table)} WHERE Key_name = 'PRIMARY'")
    columns = [str(part[4]) for part in key]
    found = [row[c] if c in row else session.value("SELECT LAST_INSERT_ID()") for c in columns]
    return " AND ".join(f"{quote(c)} = {VALUE}" for c in columns), tuple(found)


def _texts(session: Session, schema: str, table: str) -> dict[str, str]:
    """For each text column a text that it can hold: an accent where its character set has one, never longer than the column."""
    return {str(name): (ACCENTED if str(charset).startswith("utf8") else PLAIN)[:int(length)] for name, length, charset in session.query(
        "SELECT COLUMN_NAME, CHARACTER_MAXIMUM_LENGTH, CHARACTER_SET_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = "
        f"{VALUE} AND TABLE_NAME = {VALUE} AND CHARACTER_SET_NAME IS NOT NULL", schema, table)}


def _steps_of(pair: Pair, side: str, texts: dict[str, str]) -> list[tuple[Any, set[Any]]]:
    """What this generation writes, and which values the other side may then hold."""
    if pair.value_map is None:
        sample = texts[pair.new] if pair.data_type in TEXTUAL else str(_sample(pair.data_type, 12))
        return [(sample, {sample})]
    if side == "old":
        return [(old, {new}) for old, new in pair.value_map.to_new.items()]
    agreeing = pair.value_map.agreeing
    # A value without counterpart leaves the old side alone, so it is written over one that allows it.
    news = [new for kept, olds in pair.value_map.keep_old.items() for new in (pair.value_map.to_new[olds[0]], kept)]
    news += pair.value_map.to_old
    return [(new, {old for old, other in agreeing if other == new}) for new in news]


def _write_as(side: str, session: Session, table: str, pairs: tuple[Pair, ...], required: list[tuple[str, str, int]],
              texts: dict[str, str]) -> int:
    """Every value by INSERT, then every value by UPDATE of one row; after each, the other side must have followed."""
    script = {pair: _steps_of(pair, side, texts) for pair in pairs if pair.value_map or pair.data_type in COMPARABLE}
    longest = max((len(steps) for steps in script.values()), default=0)
    where, key = _insert(session, table, required, {})
    written = 1
    for turn in range(longest):
        values = {pair: steps[turn % len(steps)] for pair, steps in script.items()}
        named = {getattr(pair, side): value for pair, (value, _) in values.items()}
        inserted_where, inserted_key = _insert(session, table, required, named)
        _look(side, "INSERT", session, table, values, inserted_where, inserted_key)
        session.run(f"UPDATE {quote(table)} SET {', '.join(f'{quote(c)} = {VALUE}' for c in named)} WHERE {where}",
                    *named.values(), *key)
        _look(side, "UPDATE", session, table, values, where, key)
        written += 2
    return written


def _look(side: str, verb: str, session: Session, table: str, values: dict[Pair, tuple[Any, set[Any]]], where: str,
          key: tuple[Any, ...]) -> None:
    other = "new" if side == "old" else "old"
    for pair, (wrote, allowed) in values.items():
        mine, theirs = (f"CAST(CONVERT({quote(getattr(pair, s))} USING utf8mb4) AS BINARY)" for s in (side, other))
        row = session.query(f"SELECT {mine}, {theirs} FROM {quote(table)} WHERE {where}", *key)
        got = tuple(None if v is None else NO_FRACTION.sub("", v.decode()) for v in row[0]) if row else (None, None)
        if got[0] != wrote or got[1] not in allowed:
            raise CanaryFailed(f"triggers on {table}", f"{verb} as the {side} generation set {getattr(pair, side)} to {wrote!r} and "
                               f"left {getattr(pair, other)} at {got[1]!r}, expected {sorted(map(str, allowed))}",
                               "another trigger interferes, or the plan's maps are wrong; our triggers were removed again")
