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

from steps import catalogue, exact_look, lanes, quarantine, waits
from steps.cancellation import Cancelled
from steps.chunks import Fixer, filled_column_is_indexed, refuse_too_many, spared, update
from steps.errors import StatementFailed, Stopped
from steps.exact_look import Disagreement
from steps.keyset import Key, decode, encode
from steps.ledger import Ledger
from steps.mysql import Session
from steps.pace import Pace, Progress
from steps.throttle import Throttle
from steps.walk import Walk

__all__ = ["Progress", "Walk", "fill"]
SHOWN_KEYS = 10
SHOWN_ERRORS = 3


def fill(walk: Walk, ledger: Ledger, name: str, told: Callable[[Progress], None] = lambda _: None) -> Disagreement:
    """
    Run pass *name* from where the ledger left it until no row is left that its side can fix; return what remains.

    Safe to repeat and to kill anywhere: a finished pass looks once and changes nothing.

    Raises:
        Stopped: rows stay locked through `backfill.max_passes` sweeps, or the server refused rows; their keys are in the ledger.
    """
    ledger.start_pass(name)
    indexed, pace = filled_column_is_indexed(walk), Pace(name, told)
    keep = tuple(catalogue.self_updating_columns(walk.session, walk.keyset.schema, walk.keyset.table))
    statement = f"{update(walk, keep)} WHERE {walk.keyset.among_elided}"
    with nullcontext() if indexed else spared(walk), Throttle(ledger, name, walk.settings) as throttle:
        try:
            left = _sweeps(walk, throttle, pace, keep, indexed=indexed)
        except (Stopped, Cancelled):
            throttle.sum_up(pace, statement, "stopped")
            raise
        throttle.sum_up(pace, statement)
        return left


def _sweeps(walk: Walk, throttle: Throttle, pace: Pace, keep: tuple[str, ...], *, indexed: bool) -> Disagreement:
    ledger, name = throttle.ledger, throttle.name
    for sweep in range(1, walk.settings.max_passes + 1):
        quarantine.clear(ledger, name)
        skipped = _sweep(walk, throttle, pace, keep, indexed=indexed)
        left = exact_look.disagreements(walk, brake=exact_look.Brake(walk, throttle, pace))
        ledger.end_sweep(name, finished=not left.fixable)
        if not left.fixable:
            return left
        _stop_at_refused(walk, ledger, name)
        waits.sleep_s(min(0.1 * sweep, 2))
    raise Stopped(f"pass {name} over {walk.keyset.table}", f"{skipped} rows stayed locked by the application through "
                  f"{walk.settings.max_passes} sweeps", "run the same command again, or raise backfill.max_passes")


def _sweep(walk: Walk, throttle: Throttle, pace: Pace, keep: tuple[str, ...], *, indexed: bool) -> int:
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

    fixer = Fixer(walk, moved, refused, keep, one_by_one=indexed and walk.settings.mode == "gentle")
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
