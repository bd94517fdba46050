"""
Passes over rows: every row whose pair disagrees is brought to agree, by the side that :mod:`steps.fixes` lets decide.

Chunk by chunk along the primary key, values computed by the server from the row's current value (case C51), cursor and
counters committed with the chunk. Rows are picked FOR UPDATE SKIP LOCKED under READ COMMITTED and then updated by key, so a
pass never waits while it holds row locks; skipped rows get another sweep. Where an index on a filled column exists already,
each row is its own transaction (F15).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from steps import catalogue, fixes, waits
from steps.agreement import Pair
from steps.errors import Stopped
from steps.fixes import Fix
from steps.keyset import Key, Keyset, decode, encode, shown_key
from steps.ledger import Ledger
from steps.mysql import Session, quote
from steps.plan import Backfill

SHOWN_KEYS = 10
REST_SHARE = 0.25
LONGEST_REST_S = 0.5
SECOND_LOOK_S = 0.2


@dataclass(frozen=True)
class Progress:
    """How far a pass is: rows seen and changed so far, the server's estimate of all rows, the sweep."""

    name: str
    rows_examined: int
    rows_changed: int
    rows_estimated: int
    sweep: int


@dataclass(frozen=True)
class Disagreement:
    """How many rows disagree, in which pairs, and the keys of the first few; never their contents."""

    rows_examined: int
    count: int
    by_pair: dict[str, int]
    keys: tuple[str, ...]


@dataclass(frozen=True)
class Walk:
    """One table, its pairs and the way through it."""

    session: Session
    keyset: Keyset
    pairs: tuple[Pair, ...]
    settings: Backfill
    check: Callable[[], None] = lambda: None
    decided_by: tuple[Fix, ...] | None = None

    @property
    def fixes(self) -> tuple[Fix, ...]:
        """What this walk may set; the old side decides everywhere unless said otherwise."""
        return fixes.old_decides(self.pairs) if self.decided_by is None else self.decided_by

    def disagree(self) -> str:
        return "(" + " OR ".join(f"NOT {pair.agrees()}" for pair in self.pairs) + ")"

    def fixable(self) -> str:
        return fixes.any_of(self.fixes)


def fill(walk: Walk, ledger: Ledger, name: str, told: Callable[[Progress], None] = lambda _: None) -> Disagreement:
    """
    Run pass *name* from where the ledger left it until no row is left that its side can fix; return what remains.

    Safe to repeat and to kill anywhere: a finished pass looks once and changes nothing.

    Raises:
        Stopped: rows stay locked through `backfill.max_passes` sweeps.
    """
    ledger.start_pass(name)
    keep = catalogue.self_updating_columns(walk.session, walk.keyset.schema, walk.keyset.table)
    one_by_one = _filled_column_is_indexed(walk)
    for sweep in range(1, walk.settings.max_passes + 1):
        skipped = _sweep(walk, ledger, name, keep, one_by_one=one_by_one, told=told)
        left = disagreements(walk)
        fixable = left.count and _any_fixable(walk)
        ledger.end_sweep(name, finished=not fixable)
        if not fixable:
            return left
        waits.sleep_s(min(0.1 * sweep, 2))
    raise Stopped(f"pass {name} over {walk.keyset.table}", f"{skipped} rows stayed locked by the application through "
                  f"{walk.settings.max_passes} sweeps", "run the same command again, or raise backfill.max_passes")


def disagreements(walk: Walk, among: str = "TRUE") -> Disagreement:
    """
    Every row for which *among* holds and whose pairs disagree, exactly, chunk by chunk, each chunk a fresh read (case C64). Takes no lock.

    What disagrees is read once more after a moment before it counts, because a row may have been caught half-way.
    """
    examined, keys = 0, list[Key]()
    cursor: Key | None = None
    while chunk := walk.keyset.next_keys(walk.session, cursor, walk.settings.largest_chunk_rows):
        condition, values = _range(walk, cursor, chunk[-1])
        keys += walk.session.query(f"SELECT {walk.keyset.select} FROM {walk.keyset.name} WHERE {condition} AND {among} "
                                   f"AND {walk.disagree()}", *values)
        examined, cursor = examined + len(chunk), chunk[-1]
    if keys:
        waits.sleep_s(SECOND_LOOK_S)
    count, by_pair, shown = 0, dict.fromkeys((pair.name for pair in walk.pairs), 0), list[str]()
    for start in range(0, len(keys), walk.settings.largest_chunk_rows):
        condition, values = walk.keyset.among(keys[start:start + walk.settings.largest_chunk_rows])
        flags = ", ".join(f"NOT {pair.agrees()}" for pair in walk.pairs)
        for row in walk.session.query(f"SELECT {flags}, {walk.keyset.select} FROM {walk.keyset.name} WHERE {condition} "
                                      f"AND {among} AND {walk.disagree()}", *values):
            count += 1
            for pair, wrong in zip(walk.pairs, row, strict=False):
                by_pair[pair.name] += int(wrong)
            if len(shown) < SHOWN_KEYS:
                shown.append(shown_key(row[len(walk.pairs):]))
    return Disagreement(examined, count, {pair: n for pair, n in by_pair.items() if n}, tuple(shown))


def _range(walk: Walk, cursor: Key | None, last: Key) -> tuple[str, Key]:
    after, after_values = walk.keyset.after(cursor)
    up_to, up_to_values = walk.keyset.up_to(last)
    return f"{after} AND {up_to}", (*after_values, *up_to_values)


def _any_fixable(walk: Walk) -> bool:
    cursor: Key | None = None
    while chunk := walk.keyset.next_keys(walk.session, cursor, walk.settings.largest_chunk_rows):
        condition, values = _range(walk, cursor, chunk[-1])
        if walk.session.query(f"SELECT 1 FROM {walk.keyset.name} WHERE {condition} AND {walk.fixable()} LIMIT 1", *values):
            return True
        cursor = chunk[-1]
    return False


def _filled_column_is_indexed(walk: Walk) -> bool:
    shape = catalogue.shape(walk.session, walk.keyset.schema, walk.keyset.table)
    return any(quote(fix.column) in definition for fix in walk.fixes for definition in shape.indexes.values())


def _sweep(walk: Walk, ledger: Ledger, name: str, keep: list[str], *, one_by_one: bool, told: Callable[[Progress], None]) -> int:
    """One way through the table from the ledger's cursor; returns how many rows were skipped because somebody held them."""
    standing = ledger.passes()[name]
    cursor, rows, skipped = decode(standing["cursor"]), walk.settings.first_chunk_rows, 0
    examined, changed = int(standing["rows_examined"]), int(standing["rows_changed"])
    estimate = catalogue.estimated_rows(walk.session, walk.keyset.schema, walk.keyset.table)
    while True:
        walk.check()
        began = waits.now_s()
        chunk = walk.keyset.next_keys(walk.session, cursor, rows)
        if not chunk:
            return skipped
        start = cursor

        def attempt(start: Key | None = start, chunk: list[Key] = chunk) -> tuple[int, int]:
            return _chunk(walk, ledger, name, keep, start, chunk, one_by_one=one_by_one)

        done, held = waits.retry(attempt, tries=10, first_wait_s=0.05, longest_wait_s=2)
        cursor, examined, changed, skipped = chunk[-1], examined + len(chunk), changed + done, skipped + held
        expected = examined if len(chunk) < rows else max(estimate, examined)  # a short chunk is the last one
        told(Progress(name, examined, changed, expected, int(standing["sweep"])))
        took_s = waits.now_s() - began
        rows = _next_size(rows, took_s, walk.settings)
        waits.sleep_s(min(took_s * REST_SHARE, LONGEST_REST_S))


def _next_size(rows: int, took_s: float, settings: Backfill) -> int:
    """Follow the time target, at most doubling or halving at a time."""
    factor = min(2.0, max(0.5, settings.target_ms / 1000 / max(took_s, 0.001)))
    return max(1, min(settings.largest_chunk_rows, int(rows * factor)))


def _chunk(walk: Walk, ledger: Ledger, name: str, keep: list[str], start: Key | None, chunk: list[Key], *,
           one_by_one: bool) -> tuple[int, int]:
    """Fix the rows of one chunk; return (changed, skipped). Cursor and counters are committed with the rows."""
    session = walk.session
    condition, values = _range(walk, start, chunk[-1])
    wanted = session.query(f"SELECT {walk.keyset.select} FROM {walk.keyset.name} WHERE {condition} AND {walk.fixable()}", *values)
    changed = 0
    if one_by_one:
        for key in wanted:
            with session.transaction():
                done = _fix(walk, keep, *walk.keyset.equals(key))
                ledger.move_pass(session, name, encode(key), 0, done)
            changed += done
    with session.transaction():
        if wanted and not one_by_one:
            changed = _fix(walk, keep, condition, values)
        ledger.move_pass(session, name, encode(chunk[-1]), len(chunk), 0 if one_by_one else changed)
    return changed, max(0, len(wanted) - changed)


def _fix(walk: Walk, keep: list[str], condition: str, values: Key) -> int:
    """Pick the fixable rows nobody holds, then update them by key: no wait while holding row locks (F15)."""
    session = walk.session
    picked = session.query(f"SELECT {walk.keyset.select} FROM {walk.keyset.name} WHERE {condition} AND {walk.fixable()} "
                           "FOR UPDATE SKIP LOCKED", *values)
    if not picked:
        return 0
    among, keys = walk.keyset.among(picked)
    session.run(f"UPDATE {walk.keyset.name} SET {fixes.assignments(walk.fixes, keep)} WHERE {among}", *keys)
    bad = session.warnings()
    if bad:
        raise Stopped(f"pass over {walk.keyset.table}", f"the server warned {', '.join(sorted(set(bad)))} on a chunk",
                      "nothing of this chunk was kept; correct the columns' types, then run the same command again")
    return len(picked)
