"""One process's counters: what its clients asked for and what came of it, per phase label and generation that answered."""

import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from flows.demo.traffic.failure import DEADLOCK, SNAPSHOT_TOO_OLD, Kind


@dataclass
class Numbers:
    """The counters of one label; times in milliseconds. A gap is counted while it lasts, so also one that never ends."""

    requests: int = 0
    failed: Counter[Kind] = field(default_factory=Counter)
    deadlocks: int = 0
    snapshots: int = 0
    wrong: Counter[str] = field(default_factory=Counter)
    longest_request_ms: float = 0
    longest_gap_ms: float = 0

    def note_error(self, kind: Kind) -> None:
        """Count one failure: a deadlock, a snapshot too old, or *kind*."""
        if kind == DEADLOCK:
            self.deadlocks += 1
        elif kind == SNAPSHOT_TOO_OLD:
            self.snapshots += 1
        else:
            self.failed[kind] += 1


class Tally:
    """Counts under the label in force when a request began. Used by all threads of a process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers: dict[tuple[str, str], Numbers] = {}
        self._last_success: float | None = None

    def ended(self, label: str, generation: str, begun: float, kind: Kind | None) -> None:
        """Count a request begun at the monotonic second *begun* that *generation* answered now, with a failure of *kind* or well."""
        now = time.monotonic()
        with self._lock:
            numbers = self._of(label, generation)
            numbers.requests += 1
            numbers.longest_request_ms = max(numbers.longest_request_ms, (now - begun) * 1000)
            if self._last_success is not None:
                numbers.longest_gap_ms = max(numbers.longest_gap_ms, (now - self._last_success) * 1000)
            if kind is None:
                self._last_success = now
            else:
                numbers.note_error(kind)

    def wrong(self, label: str, generation: str, column: str, job: str) -> None:
        """Count a read that did not show what its own client wrote last."""
        with self._lock:
            self._of(label, generation).wrong[f"{job} {column}"] += 1

    def as_json(self) -> dict[str, Any]:
        """Return all counters, and for how long nothing has succeeded by now, as JSON takes them."""
        with self._lock:
            silent = 0.0 if self._last_success is None else (time.monotonic() - self._last_success) * 1000
            counts = [{"label": label, "answered": by, **vars(numbers)} for (label, by), numbers in self._numbers.items()]
            return {"silent_ms": silent, "counts": counts}

    def _of(self, label: str, generation: str) -> Numbers:
        return self._numbers.setdefault((label, generation), Numbers())
