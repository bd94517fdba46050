"""
Passes over rows: every row whose pair disagrees is brought to agree, by the side that :mod:`steps.fixes` lets decide.

Chunk by chunk along the primary key (:mod:`steps.chunks`), on one connection or several (:mod:`steps.lanes`); values are computed by
the server from the row's current value (case C51), cursor and counters are committed with the chunk. Skipped rows get another
sweep; rows that the server refuses are put aside by key and stop the pass at its end. A pass ends when a last exact look finds no
row that its side can fix, not when a cursor ends.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass

from steps import catalogue, lanes, quarantine, waits
from steps.cancellation import Cancelled
from steps.chunks import Fixer, filled_column_is_indexed, refuse_too_many, spared
from steps.errors import StatementFailed, Stopped
from steps.keyset import Key, decode, encode, shown_key
from steps.ledger import Ledger
from steps.mysql import Session
from steps.pace import Pace, Progress
from steps.throttle import Throttle
from steps.walk import Walk

__all__ = ["Disagreement", "Progress", "Walk", "disagreements", "fill", "looked"]
SHOWN_KEYS = 10
SHOWN_ERRORS = 3
SECOND_LOOK_S = 0.2


@dataclass(frozen=True)
class Disagreement:
    """How many rows disagree, in which pairs, the keys of the first few (never their contents), and how many the walk may fix."""

    rows_examined: int
    count: int
    by_pair: dict[str, int]
    keys: tuple[str, ...]
    fixable: int = 0


def fill(walk: Walk, ledger: Ledger, name: str, told: Callable[[Progress], None] = lambda _: None) -> Disagreement:
    """
    Run pass *name* from where the ledger left it until no row is left that its side can fix; return what remains.

    Safe to repeat and to kill anywhere: a finished pass looks once and changes nothing.

    Raises:
        Stopped: rows stay locked through `backfill.max_passes` sweeps, or the server refused rows; their keys are in the ledger.
    """
    ledger.start_pass(name)
    indexed, pace = filled_column_is_indexed(walk), Pace(name, told)
    with nullcontext() if indexed else spared(walk), Throttle(ledger, name, walk.settings) as throttle:
        try:
            left = _sweeps(walk, throttle, pace, indexed=indexed)
        except (Stopped, Cancelled):
            throttle.sum_up(pace, "stopped")
            raise
        throttle.sum_up(pace)
        return left


def _sweeps(walk: Walk, throttle: Throttle, pace: Pace, *, indexed: bool) -> Disagreement:
    ledger, name = throttle.ledger, throttle.name
    for sweep in range(1, walk.settings.max_passes + 1):
        quarantine.clear(ledger, name)
        skipped = _sweep(walk, throttle, pace, indexed=indexed)
        left = disagreements(walk, before_each=lambda _: throttle.turn(pace, alone=True))
        ledger.end_sweep(name, finished=not left.fixable)
        if not left.fixable:
            return left
        _stop_at_refused(walk, ledger, name)
        waits.sleep_s(min(0.1 * sweep, 2))
    raise Stopped(f"pass {name} over {walk.keyset.table}", f"{skipped} rows stayed locked by the application through "
                  f"{walk.settings.max_passes} sweeps", "run the same command again, or raise backfill.max_passes")


def looked(walk: Walk, ledger: Ledger, name: str, told: Callable[[Progress], None] = lambda _: None) -> Disagreement:
    """:func:`disagreements` as a pass *name* that a person and the server's health can hold up. Raises what :func:`fill` raises of that."""
    pace = Pace(name, told)
    pace.begin(1, 0, 0, catalogue.estimated_rows(walk.session, walk.keyset.schema, walk.keyset.table))

    def turn(examined: int) -> None:
        pace.examined = examined
        throttle.turn(pace, alone=True)

    with Throttle(ledger, name, walk.settings) as throttle:
        return disagreements(walk, before_each=turn)


def disagreements(walk: Walk, among: str = "TRUE", before_each: Callable[[int], None] = lambda _: None) -> Disagreement:
    """
    Every row for which *among* holds and whose pairs disagree, exactly, chunk by chunk, each chunk a fresh read (case C64). Takes no lock.
    *before_each* is called before each chunk with the rows seen until then, holding nothing.

    What disagrees is read once more after a moment before it counts, because a row may have been caught half-way.
    """
    examined, keys = 0, list[Key]()
    cursor: Key | None = None
    while chunk := walk.keyset.next_stretch(walk.session, cursor, walk.settings.largest_chunk_rows):
        before_each(examined)
        condition, values = walk.keyset.between(cursor, chunk.end)
        keys += walk.session.query(f"SELECT {walk.keyset.select} FROM {walk.keyset.name} WHERE {condition} AND {among} "
                                   f"AND {walk.disagree()}", *values)
        examined, cursor = examined + chunk.rows, chunk.end
    if keys:
        waits.sleep_s(SECOND_LOOK_S)
    count, fixable, by_pair, shown = 0, 0, dict.fromkeys((pair.name for pair in walk.pairs), 0), list[str]()
    for start in range(0, len(keys), walk.settings.largest_chunk_rows):
        condition, values = walk.keyset.among(keys[start:start + walk.settings.largest_chunk_rows])
        flags = ", ".join([walk.fixable(), *(f"NOT {pair.agrees()}" for pair in walk.pairs)])
        for row in walk.session.query(f"SELECT {flags}, {walk.keyset.select} FROM {walk.keyset.name} WHERE {condition} "
                                      f"AND {among} AND {walk.disagree()}", *values):
            count, fixable = count + 1, fixable + int(row[0] or 0)
            for pair, wrong in zip(walk.pairs, row[1:], strict=False):
                by_pair[pair.name] += int(wrong)
            if len(shown) < SHOWN_KEYS:
                shown.append(shown_key(row[1 + len(walk.pairs):]))
    return Disagreement(examined, count, {pair: n for pair, n in by_pair.items() if n}, tuple(shown), fixable)


def _sweep(walk: Walk, throttle: Throttle, pace: Pace, *, indexed: bool) -> int:
    """One way through the table from the ledger's cursor; returns how many rows were skipped because somebody held them."""
    ledger, name = throttle.ledger, throttle.name
    standing = ledger.passes()[name]
    estimate = catalogue.estimated_rows(walk.session, walk.keyset.schema, walk.keyset.table)
    pace.begin(int(standing["sweep"]), int(standing["rows_examined"]), int(standing["rows_changed"]), estimate)

    def moved(session: Session, cursor: Key, examined: int, changed: int) -> None:
        ledger.move_pass(session, name, encode(cursor), examined, changed)

    def refused(session: Session, key: Key, error: StatementFailed) -> None:
        count = quarantine.put(ledger, session, name, key, error.reason)
        refuse_too_many(walk.keyset.table, count, walk.settings.most_refused)

    keep = catalogue.self_updating_columns(walk.session, walk.keyset.schema, walk.keyset.table)
    fixer = Fixer(walk, moved, refused, tuple(keep), one_by_one=indexed and walk.settings.mode == "gentle")
    cursor = decode(standing["cursor"])
    crew = lanes.Lanes(fixer, throttle, pace, cursor, spare_checks=not indexed)
    count = lanes.how_many(walk)
    if count > 1:
        return crew.run(count)
    crew.finish_what_was_begun()
    return crew.skipped + lanes.along(fixer, cursor, None, pace, throttle)


def _stop_at_refused(walk: Walk, ledger: Ledger, name: str) -> None:
    """Rows that the server refused are never passed over in silence."""
    rows = quarantine.rows(ledger, name)
    if rows:
        keys, errors = [row["key"] for row in rows[:SHOWN_KEYS]], sorted({row["error"] for row in rows})
        raise Stopped(f"pass {name} over {walk.keyset.table}",
                      f"the server refused {len(rows)} rows (keys: {', '.join(keys)}): {'; '.join(errors[:SHOWN_ERRORS])}",
                      "all other rows are filled; correct these rows or what refuses them, then run the same command again")
