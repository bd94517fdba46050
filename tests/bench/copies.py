"""
`make bench-copies`: the widening of jobType under traffic, by MySQL's own copy and by hand-over, in one run.

A prober writes one row every few milliseconds: its longest wait between two successes is for how long writes were blocked.
One million rows, with QUICK=1 fifty thousand, or ROWS of them; either hand-over or traffic ends after half an hour at the latest.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pymysql
import structlog

from deploy.mysql_server import provide
from deploy.percona_toolkit import provide_pt_osc
from flows.demo.traffic import Fleet, Report, seed
from steps import catalogue, ddl, plan_loader
from steps.rollout import Person, opened
from steps.target import Target, target_of

ROWS = int(os.environ.get("ROWS") or (50_000 if os.environ.get("QUICK") else 1_000_000))
CLIENTS, RATE_PER_S = 8, 80.0
PROBE_S = 0.005
LONGEST_S = 1800


@dataclass
class Measured:
    """How long one way took, and for how long at most the prober's writes stood still."""

    seconds: float
    blocked_s: float
    detail: dict[str, object]


class Prober:
    """Writes one row again and again, beside the application's own traffic, and remembers its longest pause."""

    def __init__(self, target: Target) -> None:
        url = target.url
        self._connection = pymysql.connect(host=url.host, port=url.port or 3306, user=url.username, password=str(url.password or ""),
                                           database=url.database, autocommit=True)
        self._ended, self.longest_s = threading.Event(), 0.0
        self._thread = threading.Thread(target=self._probe, daemon=True)

    def _probe(self) -> None:
        with self._connection.cursor() as cursor:
            cursor.execute("SELECT id FROM AiAnalysisJob ORDER BY id LIMIT 1")
            [key] = cursor.fetchone() or [None]
            last = time.monotonic()
            while not self._ended.wait(PROBE_S):
                try:
                    cursor.execute("UPDATE AiAnalysisJob SET progress = 100 - progress WHERE id = %s", (key,))
                except pymysql.err.OperationalError as error:
                    if error.args[0] not in (1205, 1213):
                        raise
                    continue
                now = time.monotonic()
                self.longest_s, last = max(self.longest_s, now - last), now

    @contextmanager
    def watching(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._ended.set()
            self._thread.join()
            self._connection.close()


def moved(target: Target, to: int, *settings: str, probed: bool = True) -> Measured:
    """Bring the table to stair *to*, 0 or 1, as phase 1 does."""
    plan = plan_loader.load("ai_analysis_job", settings)
    with opened(plan, target, Person("bench", "make bench-copies"), frozenset()) as rollout:
        rollout.ledger.create()
        ladder, here = rollout.ladder(), rollout.position()
        rows = catalogue.estimated_rows(rollout.session, rollout.schema, rollout.table)
        [group] = ddl.grouped(ddl.moves(ladder, here, to, rows), rollout, rows, with_sync=False)
        prober = Prober(target)
        began = time.monotonic()
        if probed:
            with prober.watching():
                ddl.carry_out(rollout, group, ladder, "forward")
        else:
            ddl.carry_out(rollout, group, ladder, "back")
        return Measured(time.monotonic() - began, prober.longest_s, rollout.ledger.events()[-1]["detail"] or {})


def told(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> None:
    """Measure both ways on one table and print one line each."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    tool = provide_pt_osc()
    with provide() as server, tempfile.TemporaryDirectory() as folder:
        target = target_of(f"{server.url}bench_copies")
        seed(f"{server.url}bench_copies", ROWS)
        told(f"widening jobType on {ROWS:,} rows under {CLIENTS} V0 clients at {RATE_PER_S:.0f} requests/s, MySQL {server.version}")
        with Fleet(f"{server.url}bench_copies", Path(folder)) as fleet:
            fleet.label("copy by MySQL")
            fleet.start("v0", clients=CLIENTS, rate_per_s=RATE_PER_S, seconds=LONGEST_S)
            native = moved(target, 1, "plan.max_blocked_s=3600")
            fleet.label("between")
            fleet.stop("v0")
            moved(target, 0, "plan.max_blocked_s=3600", probed=False)
            fleet.label("hand-over")
            fleet.start("v0", clients=CLIENTS, rate_per_s=RATE_PER_S, seconds=LONGEST_S)
            handed = moved(target, 1, "plan.max_blocked_s=0", f"handover.command={tool}", f"handover.deadline_s={LONGEST_S}")
            fleet.stop("v0")
            report, wrong = fleet.report(), fleet.final_check(old_side_only=True)
        for way, found in (("copy by MySQL", native), ("hand-over", handed)):
            told(f"{way:>14}: blocked {found.blocked_s:6.2f} s, in all {found.seconds:6.1f} s; {_seen(report, way)}")
        told(f"of the hand-over: {', '.join(f'{key} {handed.detail[key]}' for key in ('copied_s', 'waited_for_gap_s', 'held_ms'))}")
        told(f"blocked {native.blocked_s / handed.blocked_s:.1f} times as long by MySQL's own copy; "
             f"in all {handed.seconds / native.seconds:.1f} times as long by hand-over; rows wrong afterwards: {len(wrong)}")


def _seen(report: Report, way: str) -> str:
    counts = report.phases[way]
    return (f"{counts.requests} requests, {counts.failures} failed, {counts.deadlocks} transactions killed by deadlock, "
            f"longest request {counts.longest_request_ms:.0f} ms")


if __name__ == "__main__":
    main()
