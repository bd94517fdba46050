"""
The exact look at every row: which pairs disagree, in which rows, by key and never by contents (case C64).

It reads chunk by chunk along the primary key and changes nothing. With a ledger it goes as gently as a pass: a person can pause,
limit and stop it, the server's health slows it and holds it up, and it rests between chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from steps import catalogue, waits
from steps.chunks import next_size
from steps.keyset import Key, shown_key
from steps.ledger import Ledger
from steps.pace import Pace, Progress
from steps.throttle import Throttle
from steps.walk import Walk

SHOWN_KEYS = 10
SECOND_LOOK_S = 0.2
COUNT_EVERY_S = 0.5
LOOKS = frozenset({"first look", "closing", "verify", "verify, all rows", "parity", "parity after cleanup"})
WATCH = "parity watch"


@dataclass(frozen=True)
class Wrong:
    """A row that disagrees: its key, in which pairs, and whether the walk may fix it."""

    key: Key
    pairs: tuple[str, ...]
    fixable: bool


@dataclass(frozen=True)
class Disagreement:
    """How many rows disagree, in which pairs, the keys of the first few (never their contents), and how many the walk may fix."""

    rows_examined: int
    count: int
    by_pair: dict[str, int]
    keys: tuple[str, ...]
    fixable: int = 0


class Brake:
    """How large the next chunk may be, the wait before it and the rest behind it."""

    def __init__(self, walk: Walk, throttle: Throttle, pace: Pace) -> None:
        self.throttle, self.pace = throttle, pace
        self._chunk_ms, self._largest = walk.settings.chunk_ms, walk.settings.largest_chunk_rows
        self._rows = walk.settings.first_chunk_rows

    def before(self) -> int:
        """Wait, holding nothing, until the next chunk may be read; return how many rows it may have. Raises what `Throttle.turn` does."""
        self.throttle.turn(self.pace, alone=True)
        return self.throttle.most_rows(self._rows, 1)

    def after(self, rows: int, rows_s: float, took_s: float) -> None:
        """A chunk was read, its rows in *rows_s*, in all in *took_s*: rest as passes do, and pay for it under a limit."""
        self._rows = next_size(self._rows, rows_s, self._chunk_ms, self._largest)
        self.throttle.did(self.pace, rows)
        self.throttle.rest(took_s)


class _Counted(Brake):
    """The brake of a look that is a pass of its own: told after each chunk, in the ledger twice a second, so that others see it too."""

    def begin(self) -> None:
        """Its row in the ledger, from nothing: a look that was ended half-way has proven nothing."""
        self.throttle.ledger.reset_pass(self.throttle.name)
        self.throttle.ledger.start_pass(self.throttle.name)
        self._written, self._written_s = 0, waits.now_s()

    def after(self, rows: int, rows_s: float, took_s: float) -> None:
        self.pace.did(rows, 0, took_s)
        super().after(rows, rows_s, took_s)
        if waits.now_s() - self._written_s >= COUNT_EVERY_S:
            self._write()
        self.pace.told(self.pace.progress())

    def end(self) -> None:
        self._write()
        self.throttle.ledger.end_sweep(self.throttle.name, finished=True)
        self.pace.ended()
        self.pace.told(self.pace.progress())

    def _write(self) -> None:
        ledger, seen = self.throttle.ledger, self.pace.examined
        ledger.move_pass(ledger.session, self.throttle.name, None, seen - self._written, 0)
        self._written, self._written_s = seen, waits.now_s()


def looked(walk: Walk, ledger: Ledger, name: str, told: Callable[[Progress], None] = lambda _: None, among: str = "TRUE") -> Disagreement:
    """
    :func:`disagreements` as a pass *name*, in the ledger and told while it goes. Takes no lock; safe to repeat, from the first row.

    Raises:
        Stopped: a person asked for it, or the server stayed unhealthy through `backfill.max_pause_s`.
    """
    pace = Pace(name, told)
    pace.begin(1, 0, 0, catalogue.estimated_rows(walk.session, walk.keyset.schema, walk.keyset.table))
    with Throttle(ledger, name, walk.settings) as throttle:
        brake = _Counted(walk, throttle, pace)
        brake.begin()
        found = disagreements(walk, among, brake)
        brake.end()
        return found


def disagreements(walk: Walk, among: str = "TRUE", brake: Brake | None = None) -> Disagreement:
    """
    Every row for which *among* holds and whose pairs disagree, exactly, chunk by chunk, each chunk a fresh read (case C64). Takes no
    lock; without a *brake* as fast as the server answers.

    What disagrees is read once more after a moment before it counts, because a row may have been caught half-way.
    """
    examined, keys = 0, list[Key]()
    cursor: Key | None = None
    while True:
        most = brake.before() if brake else walk.settings.largest_chunk_rows
        began = waits.now_s()
        chunk = walk.keyset.next_stretch(walk.session, cursor, most)
        if not chunk:
            return _second_look(walk, among, examined, keys)
        condition, values = walk.keyset.between(cursor, chunk.end)
        found_s = waits.now_s()
        keys += walk.session.query(f"SELECT {walk.keyset.select} FROM {walk.keyset.name} WHERE {condition} AND {among} "
                                   f"AND {walk.disagree()}", *values)
        examined, cursor = examined + chunk.rows, chunk.end
        if brake:
            brake.after(chunk.rows, waits.now_s() - found_s, waits.now_s() - began)


def still_wrong(walk: Walk, keys: list[Key], among: str = "TRUE") -> Iterator[Wrong]:
    """Which of the rows *keys* disagree now. Takes no lock; rows that are gone are not among them."""
    for start in range(0, len(keys), walk.settings.largest_chunk_rows):
        condition, values = walk.keyset.among(keys[start:start + walk.settings.largest_chunk_rows])
        flags = ", ".join([walk.fixable(), *(f"NOT {pair.agrees()}" for pair in walk.pairs)])
        for row in walk.session.query(f"SELECT {flags}, {walk.keyset.select} FROM {walk.keyset.name} WHERE {condition} "
                                      f"AND {among} AND {walk.disagree()}", *values):
            pairs = tuple(pair.name for pair, wrong in zip(walk.pairs, row[1:], strict=False) if wrong)
            yield Wrong(row[1 + len(walk.pairs):], pairs, bool(row[0]))


def counted(walk: Walk, examined: int, wrong: Iterable[Wrong]) -> Disagreement:
    """*wrong* rows of *examined*, as they are told."""
    count, fixable, by_pair, shown = 0, 0, dict.fromkeys((pair.name for pair in walk.pairs), 0), list[str]()
    for one in wrong:
        count, fixable = count + 1, fixable + int(one.fixable)
        for pair in one.pairs:
            by_pair[pair] += 1
        if len(shown) < SHOWN_KEYS:
            shown.append(shown_key(one.key))
    return Disagreement(examined, count, {pair: n for pair, n in by_pair.items() if n}, tuple(shown), fixable)


def _second_look(walk: Walk, among: str, examined: int, keys: list[Key]) -> Disagreement:
    """What of *keys* still disagrees after a moment."""
    if keys:
        waits.sleep_s(SECOND_LOOK_S)
    return counted(walk, examined, still_wrong(walk, keys, among))
