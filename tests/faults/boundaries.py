"""Where a fault may strike: every point at which the tool has just done something, or is about to, counted in order."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from flows.conductor import PlainConductor
from steps import archive, ddl, hold, leaves, rehearsal, scratch, sync_install
from steps.ledger import Ledger
from steps.mysql import Session
from steps.ownership import Ownership
from steps.rollout import Rollout
from steps.step import Step
from tests.faults import tool_sessions

CHUNK_ROWS = 4
LEDGER = ("create", "remember_plan", "extend_ladder", "end_plan", "forget_plan", "set_phase", "start_pass", "reset_pass", "end_sweep",
          "end_run")
WRITES_OF = {"restore from the archive": "a restored chunk", "archive": "an archived chunk"}  # else a pass's, which fix rows and move it
ITS_SCHEMA = re.compile(r"`k_\w+`\.")
CHANGES = ("DELETE ", "DROP ", "CREATE ")


class Boundaries:
    """
    Counts what is passed, in two series: what happens on the clone, and everything else. At number *at* of *series*, or of those points
    alone that are called *name*, it calls *reached* with the point's name, and *next_word* at the point after that, of whatever series.

    Numbers move where a busy machine makes a hold give way and begin anew; a name and its number hardly do. Only the main thread
    counts: heartbeat and watchdog have no order.
    """

    def __init__(self, series: str, at: int, reached: Callable[[str], None], next_word: Callable[[], None] = lambda: None, *,
                 name: str = "") -> None:
        self.series, self.at, self.reached, self.next_word, self.name = series, at, reached, next_word, name
        self._was_there = False
        self.passed: dict[str, list[str]] = {"live": [], "clone": []}
        self.on_clone = self.in_hold = False
        self.step = ""

    def __call__(self, name: str) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        series = "clone" if self.on_clone else "live"
        names = self.passed[series]
        names.append(("[hold] " if self.in_hold else "") + name)
        if self._was_there:
            self._was_there = False
            self.next_word()
        wanted = names[-1] == self.name if self.name else True
        if series == self.series and wanted and (names.count(self.name) if self.name else len(names)) == self.at:
            self.reached(names[-1])
            self._was_there = True


def install(point: Boundaries) -> None:
    """Wrap this process's own copy of the tool; nothing in it knows."""
    archive.ROWS = CHUNK_ROWS
    _steps(point)
    _timed(point)
    _holds(point)
    _sessions(point)
    _clone(point)
    for name in LEDGER:
        _around(Ledger, name, point, before=False)
    for name in ("take", "release"):
        _around(Ownership, name, point, before=True)


def _around(owner: Any, name: str, point: Boundaries, *, before: bool) -> None:
    real = getattr(owner, name)

    @wraps(real)
    def wrapped(self: Any, *args: Any, **more: Any) -> Any:
        what = " ".join([name, *(str(part)[:24] for part in args if isinstance(part, str))])
        if before:
            point(f"before {what}")
        result = real(self, *args, **more)
        point(f"after {what}")
        return result

    setattr(owner, name, wrapped)


def _steps(point: Boundaries) -> None:
    real = PlainConductor.phase

    def watched(step: Step) -> Step:
        def run() -> Any:
            point(f"before step {step.name}")
            outcome = step.run()
            point(f"after step {step.name}")
            return outcome

        return Step(step.name, run)

    def phase(self: PlainConductor, name: str, steps: list[Step], rollout: Rollout) -> None:
        real(self, name, [watched(step) for step in steps], rollout)

    PlainConductor.phase = phase  # type: ignore[method-assign]


def _timed(point: Boundaries) -> None:
    real = Rollout.timed

    @contextmanager
    def timed(self: Rollout, phase: Any, step: str, **more: Any) -> Iterator[dict[str, Any]]:
        with real(self, phase, step, **more) as facts:
            point.step = step
            point(f"before {step}")
            yield facts
            point(f"done, not recorded: {step}")
        point(f"recorded: {step}")

    Rollout.timed = timed  # type: ignore[method-assign]


def _holds(point: Boundaries) -> None:
    real = hold.hold

    @contextmanager
    def held(*args: Any) -> Iterator[Any]:
        point("before the hold")
        with real(*args) as found:
            point.in_hold = True
            point("the tables are held")
            try:
                yield found
                point("about to let the tables go")
            finally:
                point.in_hold = False
        point("the tables are free")

    for module in (ddl, sync_install, leaves):
        module.hold = held  # type: ignore[attr-defined]


def _sessions(point: Boundaries) -> None:
    transaction, run, verbatim = Session.transaction, Session.run, Session.verbatim

    @contextmanager
    def committed(self: Session) -> Iterator[None]:
        what = "the ledger's transaction" if tool_sessions.is_the(self, "ledger") else WRITES_OF.get(point.step, "a chunk")
        point(f"before {what}")
        with transaction(self):
            yield
            point(f"before {what}'s COMMIT")
        point(f"after {what}")

    def changed(self: Session, sql: str, *values: Any) -> int:
        result = run(self, sql, *values)
        if sql.startswith(CHANGES):
            point(f"after {ITS_SCHEMA.sub('', sql)[:40]}")
        return result

    def sent(self: Session, sql: str) -> int:
        result = verbatim(self, sql)
        if point.on_clone:
            point(f"after {sql[:40]}")
        return result

    Session.transaction, Session.run, Session.verbatim = committed, changed, sent  # type: ignore[method-assign,assignment]


def _clone(point: Boundaries) -> None:
    real = scratch.scratch

    @contextmanager
    def made(*args: Any) -> Iterator[Session]:
        point.on_clone = True
        try:
            with real(*args) as session:
                yield session
        finally:
            point.on_clone = False

    rehearsal.scratch = made  # type: ignore[attr-defined]
