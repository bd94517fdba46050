"""
Before each chunk: may the pass go on? It waits while a person or the server's health says so, and says why: log, ledger, status.

Nothing is held while it waits, no transaction and no row lock. One throttle serves all lanes of a pass; its reads go through the
ledger's session, one thread at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Self

import structlog

from steps import control, health, replicas, waits
from steps.control import Wish
from steps.errors import Stopped
from steps.ledger import Event, Ledger
from steps.mysql import VALUE
from steps.pace import Pace
from steps.plan import Backfill

LOOK_EVERY_S = 0.5
HEALTH_EVERY_S = 1.0
POLL_S = 0.25
STRAINED = 0.7
LONGEST_REST_S = 0.5
PHASES = {"first": "pre_deploy", "first look": "pre_deploy", "backfill": "backfill", "closing": "backfill", "verify": "verify",
          "verify, all rows": "verify", "reconcile": "shadow_write", "parity": "shadow_write", "parity watch": "shadow_write"}
log: structlog.stdlib.BoundLogger = structlog.get_logger("rollout")


class Throttle:
    """
    Use as a context manager around one pass. *edge* is called before each look, also while the pass waits, and ends it by raising.

    A pass of nobody's rollout, such as a look beside it, does not heed a stop: that is for the run at work, which must find it.
    """

    def __init__(self, ledger: Ledger, name: str, settings: Backfill, *, edge: Callable[[], None] = lambda: None,
                 heeds_stop: bool = True) -> None:
        self.ledger, self.name, self.settings, self.edge, self.heeds_stop = ledger, name, settings, edge, heeds_stop
        self.replicas = replicas.watched(ledger, name, settings, lambda what: self._told("not seen", what))
        self.signals = [*(replica.read for replica in self.replicas), *health.signals(ledger, settings)]
        self.wish = Wish()
        self._looked_s = self._judged_s = float("-inf")
        self._problem = ""
        self._strained = False
        self._free_s = 0.0
        self._unhealthy_since_s = waits.now_s()

    def turn(self, pace: Pace, *, alone: bool = False) -> None:
        """
        Return when the next chunk may begin; called before each, holding nothing. *alone*: nobody else tells how far the pass is.

        Raises:
            Stopped: a person asked for it, or the server stayed unhealthy through `backfill.max_pause_s`.
        """
        while True:
            self.edge()
            with pace.lock:
                why = self._why_not(pace)
                if why and not pace.paused_for:
                    self._told("paused", why)
                if pace.paused_for and not why:
                    self._told("resumed", pace.paused_for, pace.paused_since_s())
                pace.pause(why) if why else pace.go_on()
                pace.limit = self.limit
                wait_s = POLL_S if why else min(POLL_S, self._free_s - waits.now_s()) if self.limit else 0
                if not self._problem or why == self.person:
                    self._unhealthy_since_s = waits.now_s()  # a person may pause it for as long as they like
                if waits.now_s() - self._unhealthy_since_s > self.settings.max_pause_s:
                    raise Stopped(f"pass {self.name}", f"waited {self.settings.max_pause_s} s: {why}", "nothing is half done; run the "
                                  "same command again when it is better, or raise the limit in [backfill]")
            if wait_s <= 0:
                return
            if why and alone:
                pace.told(pace.progress())
            waits.sleep_s(wait_s)

    def most_rows(self, rows: int, lanes: int) -> int:
        """*rows* for the next chunk, or fewer: a limit must hold within a second, so a chunk is no more than half a second of it."""
        limit = self.limit
        return rows if not limit else max(1, min(rows, limit // (2 * lanes)))

    def did(self, pace: Pace, rows: int) -> None:
        """Under a limit the next chunk has to wait until these *rows* are paid for."""
        limit = self.limit
        with pace.lock:
            self._free_s = max(self._free_s, waits.now_s()) + min(rows / limit, 1.0) if limit else 0.0  # 1: the chunk before the limit

    def rest(self, took_s: float) -> None:
        """Give others their turn after a chunk that took *took_s*."""
        share = 0.0 if self.settings.mode == "full_speed" else 2.0 if self._strained else 1.0
        waits.sleep_s(min(took_s * share, LONGEST_REST_S))

    @property
    def limit(self) -> int | None:
        """Most rows a second: what a person asked for last, else the plan's."""
        return self.wish.rows_per_s or self.settings.rows_per_s

    @property
    def person(self) -> str:
        return f"paused: {self.wish.said}" if self.wish.wanted == control.PAUSE else ""

    def _why_not(self, pace: Pace) -> str:
        """Look, not more often than need be; a reason to wait, or nothing."""
        now_s = waits.now_s()
        if now_s - self._looked_s >= LOOK_EVERY_S:
            self._looked_s = now_s
            self.wish = control.wish(self.ledger)
            if self.wish.wanted == control.STOP and self.heeds_stop:
                control.obeyed(self.ledger)
                raise Stopped(f"pass {self.name}", f"stopped: {self.wish.said}", "nothing is half done; run the same command again")
        if now_s - self._judged_s >= HEALTH_EVERY_S:
            self._judged_s = now_s
            self._beat(pace)
            readings = [signal() for signal in self.signals]
            self._problem = "; ".join(reading.problem for reading in readings if reading.problem)
            self._strained = any(reading.strain >= STRAINED for reading in readings)
        return self.person or self._problem

    def _beat(self, pace: Pace) -> None:
        """Write down how fast it goes; the same row is the heartbeat that replicas are measured by."""
        self.ledger.session.run(
            f"INSERT INTO {self.ledger.table('pace')} VALUES ({', '.join([VALUE] * 9)}, UTC_TIMESTAMP(3)) ON DUPLICATE KEY UPDATE "
            "working_ms = VALUES(working_ms), paused_ms = VALUES(paused_ms), rows_estimated = VALUES(rows_estimated), rows_per_s = "
            "VALUES(rows_per_s), paused_for = VALUES(paused_for), at = VALUES(at)", *self.ledger.key, self.name,
            int(pace.worked_s() * 1000), int(pace.paused_s() * 1000), pace.estimated, pace.progress().rows_per_s, pace.paused_for or None)

    def _told(self, what: str, why: str, after_s: float | None = None) -> None:
        log.info("pass", what=what, table=self.ledger.key[1], plan=self.ledger.key[2], name=self.name, why=why)
        self.ledger.record(Event(self.phase, f"pass {self.name}", what, detail={"why": why},
                                 duration_ms=None if after_s is None else after_s * 1000))

    def sum_up(self, pace: Pace, statement: str, outcome: str = "done") -> None:
        """Put rows, rate, chunk times and the form of its *statement* into the audit trail, where this run has changed something."""
        if pace.changed:
            rate = round(pace.seen / pace.worked_s()) if pace.worked_s() > 0 else 0
            self.ledger.record(Event(self.phase, f"pace of pass {self.name}", outcome, statement=statement, rows=pace.seen,
                                     duration_ms=pace.worked_s() * 1000, detail={"rows per s": rate} | pace.summary()))

    @property
    def phase(self) -> str:
        return PHASES.get(self.name, "cleanup")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for replica in self.replicas:
            replica.close()
