"""
A bounded sample of real rows on the clone: what an empty table cannot tell of steps, passes, smoke queries and ways back.

Rows are copied inside the server by INSERT … SELECT under READ COMMITTED, which reads the live table's rows without any lock on
them; half from each end of the primary key. Their values never leave the server, and go with the scratch schema.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise

from steps import catalogue, fixes, server_trouble, waits
from steps.agreement import Pair
from steps.catalogue import Shape
from steps.clone import Clone
from steps.errors import Refused, StatementFailed
from steps.mysql import VALUE, Session, quote
from steps.session_settings import SQL_MODE
from steps.unchecked import without_foreign_key_checks

KEPT = "_rollout_sample"
MOST_BYTES = 16 * 1024 * 1024


@dataclass
class Sample:
    """*rows* of the live table and their *columns*; what the first pass did to them, and how long it took without its commit."""

    rows: int
    columns: tuple[str, ...]
    changed: int = 0
    left: int = 0
    pass_ms: float | None = None
    queries_run: int = 0
    kept_key: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        return {"rows": self.rows, "rows_changed": self.changed, "rows_nobody_can_fix": self.left,
                "first_pass_ms": None if self.pass_ms is None else round(self.pass_ms, 1), "queries_run": self.queries_run}


def take(live: Session, clone: Clone, wanted: int) -> Sample | None:
    """
    Copy up to *wanted* rows onto the clone and keep a second copy beside it; None, with a note, where that is not possible.

    Waits at most the session's lock_wait_timeout for whoever holds the live table. Raises:
        LockTimeout: somebody holds it.
    """
    baseline = clone.shape()
    columns = tuple(name for name, text in baseline.columns.items() if "GENERATED ALWAYS AS" not in text)
    missing = set(columns) - set(catalogue.shape(live, clone.live_schema, clone.table).columns)
    key = tuple(name for name, _kind in catalogue.primary_key(live, clone.live_schema, clone.table))
    if missing or not key:
        why = f"column {min(missing)} is not on the live table now" if missing else "there is no primary key"
        clone.notes.append(f"no rows were sampled: {why}")
        return None
    try:
        with _loose(clone.session):
            rows = _copy(live, clone, key, columns, wanted)
    except StatementFailed as error:
        if server_trouble.interrupted(error):
            raise
        clone.notes.append(f"could not look: no rows could be sampled ({error.reason})")
        return None
    clone.sample_rows = rows
    return Sample(rows, columns, kept_key=key)


def _copy(live: Session, clone: Clone, key: tuple[str, ...], columns: tuple[str, ...], wanted: int) -> int:
    width = int(live.value(f"SELECT AVG_ROW_LENGTH FROM information_schema.TABLES WHERE TABLE_SCHEMA = {VALUE} AND TABLE_NAME = {VALUE}",
                           clone.live_schema, clone.table) or 0)
    most = max(1, min(wanted, MOST_BYTES // max(1, width)))
    source, keys, listed = f"{quote(clone.live_schema)}.{quote(clone.table)}", _list(key), _list(columns)
    ends = " UNION ".join(f"(SELECT {keys} FROM {source} FORCE INDEX (PRIMARY) ORDER BY {_list(key, order)} LIMIT {limit})"
                          for order, limit in (("", most - most // 2), (" DESC", most // 2)))
    clone.session.run(f"INSERT INTO {quote(clone.table)} ({listed}) SELECT {_list(columns, of='t')} FROM {source} AS t "
                      f"JOIN ({ends}) AS k ON {_equal(key, 't', 'k')}")
    clone.session.run(f"CREATE TABLE {quote(KEPT)} LIKE {quote(clone.table)}")
    return clone.session.run(f"INSERT INTO {quote(KEPT)} ({listed}) SELECT {listed} FROM {quote(clone.table)}")


def first_pass(clone: Clone, sample: Sample, pairs: tuple[Pair, ...]) -> None:
    """
    The first pass on the sample, beside the triggers. Values that no map knows are counted, not judged: `statuses` does that exactly.

    Raises:
        Refused: the server does not take what the maps say.
    """
    session, table = clone.session, quote(clone.table)
    decided = fixes.old_decides(pairs)
    began = waits.now_s()
    try:
        with session.transaction():
            sample.changed = _fix(clone, decided)
            sample.pass_ms = (waits.now_s() - began) * 1000
    except StatementFailed as error:
        if server_trouble.interrupted(error):
            raise
        raise Refused("first pass", f"does not work on {sample.rows} rows of the table: {error.reason}",
                      "correct the columns' types or the maps; nothing was touched") from None
    disagree = " OR ".join(f"NOT {pair.agrees()}" for pair in pairs)
    sample.left = int(session.value(f"SELECT COUNT(*) FROM {table} WHERE {disagree}"))
    if sample.left:
        clone.notes.append(f"{sample.left} of {sample.rows} sampled rows hold values that the plan's maps do not know")


def come_back(clone: Clone, sample: Sample, pairs: tuple[Pair, ...], removed: tuple[str, ...]) -> None:
    """
    What cleanup's way back does to rows: from the archive where no pair decides, else the new side decides (F13).

    Raises:
        Refused: values that the table holds could not be written again, zero dates for example.
    """
    paired = {pair.old for pair in pairs}
    alone = [column for column in removed if column not in paired and column in sample.columns]
    if not set(sample.kept_key) <= set(clone.shape().columns):
        clone.notes.append("the way back of cleanup's columns was not tried on rows: the plan renames the primary key")
        return
    keep = catalogue.self_updating_columns(clone.session, clone.schema, clone.table)
    if not alone and not pairs:
        return
    try:
        _put_back(clone, sample, alone, keep, pairs)
    except StatementFailed as error:
        if server_trouble.interrupted(error):
            raise
        raise Refused("cleanup", f"its way back cannot put the rows' values back: {error.reason}",
                      "correct the rows, or leave the column out of cleanup.drop; nothing was touched") from None


def _put_back(clone: Clone, sample: Sample, alone: list[str], keep: list[str], pairs: tuple[Pair, ...]) -> None:
    if alone:
        sets = ", ".join([f"t.{quote(c)} = k.{quote(c)}" for c in alone] + [f"t.{quote(c)} = t.{quote(c)}" for c in keep if c not in alone])
        clone.session.run(f"UPDATE {quote(clone.table)} AS t JOIN {quote(KEPT)} AS k ON {_equal(sample.kept_key, 't', 'k')} SET {sets}")
    if pairs:
        _fix(clone, fixes.new_decides(pairs))


def touch(clone: Clone) -> None:
    """Update and delete one row in a transaction that is rolled back, so that each trigger of the table has acted once."""
    session, table = clone.session, quote(clone.table)
    column = next((quote(name) for name, text in clone.shape().columns.items() if "GENERATED ALWAYS AS" not in text), None)
    with without_foreign_key_checks(session):
        session.run("START TRANSACTION")
        try:
            session.run(f"UPDATE {table} SET {column} = {column} LIMIT 1")
            session.run(f"DELETE FROM {table} LIMIT 1")
        finally:
            session.run("ROLLBACK")


def compare(clone: Clone, sample: Sample, pairs: tuple[Pair, ...], blamed: dict[str, str]) -> None:
    """
    Hold the sample at the bottom against the rows as they were, by bytes; *blamed* names the step that changes a column.

    A pair's old value that another one shares the new value with comes back as the maps say; that is told, not refused.

    Raises:
        Refused: the way back loses values; names step, column and how many rows, never a value.
    """
    wrong = [f"NOT (CAST(t.{quote(c)} AS BINARY) <=> CAST(k.{quote(c)} AS BINARY))" for c in sample.columns]
    sums = ", ".join(f"CAST(IFNULL(SUM({each}), 0) AS SIGNED)" for each in wrong)
    counts = clone.session.one(f"SELECT COUNT(*), {sums} FROM {quote(clone.table)} AS t JOIN {quote(KEPT)} AS k "
                               f"ON {_equal(sample.kept_key, 't', 'k')}")
    lost = {column: int(count) for column, count in zip(sample.columns, counts[1:], strict=True) if count}
    by_maps, busy = {pair.old for pair in pairs if pair.value_map}, clone.foreign_triggers_acted
    for column, count in lost.items():
        if column in by_maps:
            clone.notes.append(f"{column}: {count} of {sample.rows} sampled rows come back from cleanup as another value that the maps "
                               "hold equal")
        elif busy:
            clone.notes.append(f"{column}: {count} of {sample.rows} sampled rows come back changed; a trigger of the table may write it")
        else:
            raise Refused(f"step {blamed.get(column, 'unknown')}", f"its way back loses values: {count} of {sample.rows} sampled rows come "
                          f"back with another {column}", "keep the column until cleanup, or correct the step; nothing was touched")
    if int(counts[0]) != sample.rows:
        raise Refused(f"table {clone.table}", f"{sample.rows - int(counts[0])} of {sample.rows} sampled rows are gone after all ways back",
                      "correct the plan; nothing was touched")


def changed_by(shapes: list[tuple[str, Shape]]) -> dict[str, str]:
    """The first step that changes each column, from the bottom up."""
    found: dict[str, str] = {}
    for (_below, before), (name, after) in pairwise(shapes):
        for column in after.changed_since(before)["columns"]:
            found.setdefault(column, name)
    return found


def _fix(clone: Clone, decided: tuple[fixes.Fix, ...]) -> int:
    keep = catalogue.self_updating_columns(clone.session, clone.schema, clone.table)
    return clone.session.run(f"UPDATE {quote(clone.table)} SET {fixes.assignments(decided, keep)} WHERE {fixes.any_of(decided)}")


@contextmanager
def _loose(session: Session) -> Iterator[None]:
    """Rows as they are: zero dates and zero keys that the application's own mode allowed; parents stay behind."""
    session.run("SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO'")
    try:
        with without_foreign_key_checks(session):
            yield
    finally:
        session.run(f"SET SESSION sql_mode = {VALUE}", SQL_MODE)


def _list(columns: tuple[str, ...], order: str = "", *, of: str = "") -> str:
    return ", ".join((f"{of}." if of else "") + quote(column) + order for column in columns)


def _equal(key: tuple[str, ...], left: str, right: str) -> str:
    return " AND ".join(f"{left}.{quote(c)} = {right}.{quote(c)}" for c in key)
