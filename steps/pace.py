"""How fast a pass goes and how far it is: counted while it works, never while it is paused, so that what is left can be told honestly."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from steps import waits
from steps.intervals import Chunk, intervals

RECENT_S = 20.0
LEAST_S = 1.0
BARS = "▁▂▃▄▅▆▇█"
MOST_BARS = 40


@dataclass(frozen=True)
class Progress:
    """
    How far a pass is: rows seen by this sweep, rows changed by all sweeps, the server's estimate of all rows, the sweep.

    *rows_per_s* is over the last twenty seconds of work, *paused_for* says why it does not work now, *limit* how many rows a second it
    may do at most. *ended*: nothing lies behind the last row seen; until then an estimate that was passed is known to be too low.
    """

    name: str
    rows_examined: int
    rows_changed: int
    rows_estimated: int
    sweep: int
    rows_per_s: float = 0.0
    paused_for: str = ""
    ended: bool = False
    limit: int | None = None

    @property
    def rows_left(self) -> int | None:
        """By the server's estimate; None where there are more rows than it says."""
        left = self.rows_estimated - self.rows_examined
        return 0 if self.ended else left if left > 0 else None

    @property
    def eta_s(self) -> float | None:
        """Seconds of work that are left of this sweep; None while nobody can know."""
        left, rate = self.rows_left, min(self.rows_per_s, self.limit or self.rows_per_s)
        return 0 if left == 0 else left / rate if left and rate else None


class Pace:
    """
    The counters of one pass in this run, shared by its lanes. Time in which it was paused is not time of work.

    *told* hears of each chunk on one connection; of several, whoever started the lanes tells it. *chunk_rows* is the size at which
    chunks take the time they should, 0 while nobody knows; *seen* are this run's rows, *examined* the sweep's, of all runs.
    """

    def __init__(self, name: str, told: Callable[[Progress], None]) -> None:
        self.name, self.told = name, told
        self.sweep = self.examined = self.changed = self.estimated = self.chunk_rows = self.seen = 0
        self.limit: int | None = None
        self._ended = False
        self.lock = threading.RLock()
        self.paused_for = ""
        self.chunks: list[Chunk] = []
        self._rows_at: dict[int, int] = {}
        self._began_s = waits.now_s()
        self._paused_at_s = self._paused_s = 0.0
        self._recent: deque[tuple[float, int]] = deque([(0.0, 0)])

    def begin(self, sweep: int, examined: int, changed: int, estimated: int) -> None:
        """A sweep begins, or goes on, from these counters; what was worked between sweeps is not the rows' time."""
        with self.lock:
            self.sweep, self.examined, self.changed, self.estimated, self._ended = sweep, examined, changed, estimated, False
            self._recent = deque([(self.worked_s(), 0)])

    def did(self, rows: int, changed: int, took_s: float) -> None:
        """Count one chunk."""
        with self.lock:
            self.examined, self.changed, self.seen = self.examined + rows, self.changed + changed, self.seen + rows
            self.chunks.append(Chunk(waits.now_s() - self._began_s, rows, took_s))
            now_s = self.worked_s()
            self._recent.append((now_s, rows))
            self._rows_at[int(now_s)] = self._rows_at.get(int(now_s), 0) + rows
            while len(self._recent) > 2 and self._recent[1][0] < now_s - RECENT_S:  # noqa: PLR2004  # the first one is where it began
                self._recent.popleft()

    def ended(self) -> None:
        """Nothing lies behind the last chunk: now the number of rows is known."""
        with self.lock:
            self.estimated, self._ended = self.examined, True

    def pause(self, why: str) -> None:
        """The clock of work stands still until :meth:`go_on`. Safe to repeat."""
        with self.lock:
            if not self.paused_for:
                self._paused_at_s = waits.now_s()
            self.paused_for = why

    def go_on(self) -> None:
        """Safe to repeat."""
        with self.lock:
            self._paused_s, self.paused_for = self.paused_s(), ""

    def paused_since_s(self) -> float:
        """How long the pause lasts by now; 0 without one."""
        return waits.now_s() - self._paused_at_s if self.paused_for else 0.0

    def paused_s(self) -> float:
        return self._paused_s + self.paused_since_s()

    def worked_s(self) -> float:
        """Seconds of work in this run, pauses not counted."""
        return waits.now_s() - self._began_s - self.paused_s()

    def progress(self) -> Progress:
        with self.lock:
            seconds = self._recent[-1][0] - self._recent[0][0]
            rows = sum(rows for _, rows in self._recent) - self._recent[0][1]
            measured = seconds >= LEAST_S or self._ended  # the first chunks are small, and say nothing of those that follow
            return Progress(self.name, self.examined, self.changed, self.estimated, self.sweep,
                            rows / seconds if measured and seconds > 0 else 0.0, self.paused_for, self._ended, self.limit)

    def summary(self) -> dict[str, Any]:
        """Rate, pauses and how long chunks took, for the audit trail; `intervals` is for charts (:mod:`steps.intervals`)."""
        with self.lock:
            took = sorted(chunk.took_s for chunk in self.chunks)
            found: dict[str, Any] = {"chunks": len(took), "worked s": round(self.worked_s(), 1),
                                                   "paused s": round(self.paused_s(), 1)}
            if took:
                found |= {"chunk ms, median": round(1000 * took[len(took) // 2]), "longest": round(1000 * took[-1])}
                found |= {"chunk times": chart(took), "rows/s": rate_chart(self._rows_at), "intervals": intervals(self.chunks)}
            return found


def rate_chart(rows_at: dict[int, int]) -> str:
    """Rows a second over the time of work (pauses left out), as at most forty bars of equal time, with the highest rate."""
    seconds = max(rows_at) + 1
    width_s = -(-seconds // MOST_BARS)
    rates = [sum(rows_at.get(second, 0) for second in range(start, start + width_s)) / min(width_s, seconds - start)
             for start in range(0, seconds, width_s)]
    most = max(rates) or 1
    return "".join(BARS[int((len(BARS) - 1) * rate / most)] for rate in rates) + f" each {width_s} s, up to {most:.0f}"


def chart(took_s: list[float]) -> str:
    """How many chunks took how long, as a line of bars: each bucket is twice as wide as the one before."""
    buckets: dict[int, int] = {}
    for seconds in took_s:
        limit_ms = 25
        while seconds * 1000 > limit_ms:
            limit_ms *= 2
        buckets[limit_ms] = buckets.get(limit_ms, 0) + 1
    most = max(buckets.values())
    return ", ".join(f"up to {limit} ms {BARS[(len(BARS) - 1) * count // most]} {count}" for limit, count in sorted(buckets.items()))
