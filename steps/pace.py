"""How fast a pass goes and how far it is: counted while it works, never while it is paused, so that what is left can be told honestly."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from steps import waits

RECENT_S = 20.0


@dataclass(frozen=True)
class Progress:
    """
    How far a pass is: rows seen and changed so far, the server's estimate of all rows, the sweep.

    *rows_per_s* is over the last twenty seconds of work, *paused_for* says why it does not work now.
    """

    name: str
    rows_examined: int
    rows_changed: int
    rows_estimated: int
    sweep: int
    rows_per_s: float = 0.0
    paused_for: str = ""

    @property
    def rows_left(self) -> int:
        return max(0, self.rows_estimated - self.rows_examined)

    @property
    def eta_s(self) -> float | None:
        """Seconds of work that are left of this sweep; None while nobody can know."""
        return self.rows_left / self.rows_per_s if self.rows_per_s else None


class Pace:
    """The counters of one sweep, shared by its lanes. *told* hears of each chunk unless lanes are at work; then their master asks."""

    def __init__(self, name: str, sweep: int, examined: int, changed: int, estimated: int, told: Callable[[Progress], None]) -> None:
        self.name, self.sweep, self.told = name, sweep, told
        self.examined, self.changed, self.estimated = examined, changed, estimated
        self.lock = threading.RLock()
        self.began_s = waits.now_s()
        self._recent: deque[tuple[float, int]] = deque([(0.0, 0)])

    def did(self, rows: int, changed: int, *, last: bool) -> None:
        """Count one chunk; *last* says that nothing lies behind it."""
        with self.lock:
            self.examined, self.changed = self.examined + rows, self.changed + changed
            self.estimated = self.examined if last else max(self.estimated, self.examined)
            now_s = self.worked_s()
            self._recent.append((now_s, rows))
            while len(self._recent) > 2 and self._recent[1][0] < now_s - RECENT_S:  # noqa: PLR2004  # the first one is where it began
                self._recent.popleft()

    def worked_s(self) -> float:
        """Seconds of work since this sweep, or this run of it, began."""
        return waits.now_s() - self.began_s

    def progress(self) -> Progress:
        with self.lock:
            seconds = self._recent[-1][0] - self._recent[0][0]
            rows = sum(rows for _, rows in self._recent) - self._recent[0][1]
            return Progress(self.name, self.examined, self.changed, self.estimated, self.sweep, rows / seconds if seconds > 0 else 0.0)
