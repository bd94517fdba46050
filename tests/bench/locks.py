"""
`make bench-locks`: what our locks cost clients, beside a plain ALTER, pt-online-schema-change and gh-ost, in one run.

First a session that keeps a transaction open on the table, and eight clients: how long is the longest request with each tool? Then
whole rollouts there and back under Prisma-like load: how many transactions did MySQL kill for our sake (1213 that InnoDB does not
count as its own), how long did the waits for a gap take, and how do both grow from 4 to 32 clients? `QUICK=1` makes all of it
small, `ROLLOUTS=32:24` asks for other numbers (clients:rollouts, …). One markdown table at the end. Loopback only, a private server.
"""

from __future__ import annotations

import importlib
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pymysql
from sqlalchemy import make_url

from deploy.mysql_server import provide
from flows import actions, cockpit
from flows.conductor import PlainConductor
from flows.demo.traffic import Fleet, seed
from flows.params import RollbackRequest, RunRequest, Through
from flows.params import Target as Goal
from steps import hold
from steps.errors import RolloutError
from steps.mysql import Session, Waits
from steps.target import Target

QUICK = bool(os.environ.get("QUICK"))
HELD_S = 6 if QUICK else 30
ASKED = os.environ.get("ROLLOUTS") or ("4:1,8:2,32:1" if QUICK else "4:4,8:22,32:4")
ROLLOUTS = {int(clients): int(count) for clients, count in (part.split(":") for part in ASKED.split(","))}
RATE_PER_CLIENT = 8.0
ROWS = 500
TABLE = "AiAnalysisJob"
SETTINGS = ["deploy.command=true", "deploy.rollback_command=true", "gap_wait_s=120"]


@dataclass
class Stall:
    """How one tool did beside the idle transaction: the longest request of any client, and how the tool ended."""

    way: str
    longest_ms: float
    seconds: float
    ended: str


@dataclass
class Load:
    """What whole rollouts cost beside *clients*: MDL kills, requests for an exclusive lock, waits for their gaps."""

    clients: int
    rollouts: int = 0
    requests: int = 0
    seconds: float = 0.0
    killed: int = 0
    failed: int = 0
    longest_ms: float = 0.0
    held_ms: float = 0.0
    waits_s: list[float] = field(default_factory=list)
    alone: list[str] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)

    def row(self) -> str:
        waits = sorted(self.waits_s) or [0.0]
        return (f"| {self.clients} | {self.requests / max(1, self.seconds):.0f} | {self.rollouts} | {self.killed} | {self.failed} | "
                f"{len(self.waits_s) / max(1, self.rollouts):.1f} | {len(self.alone)} | "
                f"{1000 * sum(waits) / len(waits):.0f} | {1000 * waits[-1]:.0f} | "
                f"{self.held_ms:.0f} | {self.longest_ms:.0f} | {self.seconds / max(1, self.rollouts):.1f} |")


@contextmanager
def traffic(database: Target, folder: Path, clients: int) -> Iterator[Fleet]:
    """*clients* of V0 in processes of at most eight, on a fresh database."""
    with Session(Target(database.url.set(database="mysql"))) as admin:
        admin.run(f"DROP DATABASE IF EXISTS {database.schema}")
    url = database.url.render_as_string(hide_password=False)
    seed(url, ROWS)
    with Fleet(url, folder) as fleet:
        for begun in range(0, clients, 8):
            some = min(8, clients - begun)
            fleet.start("v0", clients=some, rate_per_s=some * RATE_PER_CLIENT, seconds=1500)
        yield fleet
        fleet.stop("v0")


@contextmanager
def idle_transaction(database: Target, seconds: float) -> Iterator[None]:
    """A session that reads the table in a transaction and does nothing for *seconds*."""
    with Session(database) as session:
        session.run("START TRANSACTION")
        session.query(f"SELECT * FROM {TABLE} LIMIT 1")
        timer = threading.Timer(seconds, session.close)
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


def plain_alter(database: Target) -> str:
    with Session(database, waits=Waits(lock_wait_timeout_s=3600)) as session:
        session.run(f"ALTER TABLE {TABLE} ADD COLUMN bench INT NULL, ALGORITHM=INSTANT")
    return "done"


def pt_osc_command() -> str | None:
    """pt-online-schema-change, from the PATH or from the archive by the project's own means; None where it cannot be had."""
    with suppress(ImportError):
        toolkit = importlib.import_module("deploy.percona_toolkit")
        with suppress(toolkit.NoToolError):
            return str(toolkit.provide_pt_osc())
    return shutil.which("pt-online-schema-change")


def pt_osc(database: Target) -> str:
    url, command = database.url, pt_osc_command()
    done = subprocess.run(
        [str(command), "--alter", "ADD COLUMN bench INT NULL", "--alter-foreign-keys-method", "auto", "--no-check-replication-filters",
         "--recursion-method", "none", "--no-version-check", "--execute",
         f"D={database.schema},t={TABLE},h={url.host},P={url.port},u={url.username}"],
        env={**os.environ, "MYSQL_PWD": str(url.password or "")}, input=str(url.password or "") + "\n", capture_output=True, text=True,
        timeout=240, check=False)
    last = (done.stderr.strip() or done.stdout.strip() or "-").splitlines()[-1][:90]
    return "done" if done.returncode == 0 else f"exit {done.returncode}: {last}"


def gh_ost(database: Target) -> str:
    url = database.url
    done = subprocess.run(
        ["gh-ost", "--allow-on-master", "--alter=ADD COLUMN bench INT NULL", f"--database={database.schema}", f"--table={TABLE}",
         f"--host={url.host}", f"--port={url.port}", f"--user={url.username}", f"--password={url.password or ''}", "--execute"],
        capture_output=True, text=True, timeout=240, check=False)
    last = (done.stderr.strip() or "-").splitlines()[-1][:90]
    return "done" if done.returncode == 0 else f"exit {done.returncode}: {last}"


def ours(database: Target) -> str:
    try:
        forward(database, Through.PRE_DEPLOY)
    except RolloutError as stopped:
        return f"exit {stopped.exit_code}"
    return "done"


def forward(database: Target, through: Through = Through.SHADOW_WRITE) -> None:
    request = RunRequest(plan="ai_analysis_job", by="bench", reason="bench", settings=SETTINGS, accept=["blockers"], through=through)
    with actions.desk(request, database) as desk:
        actions.run(desk, request, PlainConductor())


def back(database: Target) -> None:
    request = RollbackRequest(plan="ai_analysis_job", by="bench", reason="bench", settings=SETTINGS, to=Goal.V0, drop_added=True,
                              accept=["blockers", "discard-added"])
    with actions.desk(request, database) as desk:
        actions.rollback(desk, request, PlainConductor())


def stalls(database: Target, folder: Path) -> list[Stall]:
    """Each way beside the same idle transaction; the first row is the traffic alone."""
    found = []
    ways: list[tuple[str, Callable[[Target], str] | None]] = [
        ("no change at all", lambda _: "done"), ("plain ALTER", plain_alter),
        ("pt-online-schema-change", pt_osc if pt_osc_command() else None), ("gh-ost", gh_ost if shutil.which("gh-ost") else None),
        ("rollout, phase 1", ours)]
    for way, act in ways:
        if act is None:
            found.append(Stall(way, 0, 0, "not installed"))
            continue
        with traffic(database, folder / way.split(",", maxsplit=1)[0].replace(" ", "-"), 8) as fleet:
            time.sleep(2)
            with idle_transaction(database, HELD_S):
                fleet.label(way)
                time.sleep(0.5)
                began = time.monotonic()
                ended = act(database)
                seconds = time.monotonic() - began
                time.sleep(2)
                fleet.label("after")
                time.sleep(1)
        found.append(Stall(way, fleet.report().phases[way].longest_request_ms, seconds, ended))
        told(f"{way}: longest request {found[-1].longest_ms:.0f} ms, {seconds:.1f} s, {ended}")
    return found


def innodb_deadlocks(database: Target) -> int:
    with Session(database) as session:
        return int(session.value("SELECT COUNT FROM information_schema.INNODB_METRICS WHERE NAME = 'lock_deadlocks'") or 0)


def longest_hold_ms(database: Target) -> float:
    with Session(database) as session:
        return float(session.value("SELECT MAX(CAST(detail->>'$.held_ms' AS DECIMAL(12, 1))) FROM _rollout_event") or 0)


def under_load(database: Target, folder: Path, clients: int, rollouts: int) -> Load:
    """*rollouts* whole rollouts there and back to the baseline beside *clients*."""
    load = Load(clients)
    with traffic(database, folder / f"load-{clients}", clients) as fleet, gaps_timed(load.waits_s, load.alone):
        before, began = innodb_deadlocks(database), time.monotonic()
        fleet.label("rollouts")
        for _ in range(rollouts):
            try:
                forward(database)
                back(database)
            except RolloutError as stopped:
                load.stopped.append(str(stopped)[:200])
                continue
            load.rollouts += 1
            told(f"{clients} clients: {load.rollouts} rollouts in {time.monotonic() - began:.0f} s")
        load.held_ms = longest_hold_ms(database)
        load.seconds = time.monotonic() - began
        fleet.label("after")
        time.sleep(1)
        own = innodb_deadlocks(database) - before
    counts = fleet.report().phases["rollouts"]
    load.requests, load.killed, load.failed = counts.requests, max(0, counts.deadlocks - own), counts.failures
    load.longest_ms = counts.longest_request_ms
    told(f"{clients} clients: {load.rollouts} rollouts, {counts.deadlocks} of 1213, {own} of them InnoDB's own; stopped: {load.stopped}")
    return load


@contextmanager
def gaps_timed(into: list[float], alone: list[str]) -> Iterator[None]:
    """Note how long each request for an exclusive lock waited for its gap; the statement's own time is not part of it."""
    real = hold.Gap.fire

    def fire(gap: hold.Gap, statement: str, *, is_long: bool = False, before_try: Callable[[], None] = lambda: None) -> float:
        tries = [time.monotonic()]

        def noted() -> None:
            tries.append(time.monotonic())
            before_try()

        seconds = real(gap, statement, is_long=is_long, before_try=noted)
        into.append(tries[-1] - tries[0] if is_long else seconds)
        alone.extend([statement] if is_long else [])
        return seconds

    hold.Gap.fire = fire  # type: ignore[method-assign]
    try:
        yield
    finally:
        hold.Gap.fire = real  # type: ignore[method-assign]


def table(found: list[Stall], loads: list[Load]) -> str:
    """Everything as markdown; stalls as multiples of ours."""
    mine = next(stall.longest_ms for stall in found if stall.way.startswith("rollout"))
    lines = [f"A transaction idle for {HELD_S} s on the table, eight clients:", "",
             "| way | longest request, ms | times ours | took, s | ended |", "|---|---|---|---|---|"]
    lines += [f"| {s.way} | {s.longest_ms:.0f} | {s.longest_ms / mine:.1f} | {s.seconds:.1f} | {s.ended} |" if s.longest_ms
              else f"| {s.way} | - | - | - | {s.ended} |" for s in found]
    lines += ["", "Whole rollouts, to shadow_write and back to the baseline:", "",
              ("| clients | requests/s | rollouts | killed by 1213 (MDL) | failed | exclusive requests each | of all, outside a hold | "
               "wait for a gap, mean ms | longest ms | longest hold, ms | longest request, ms | seconds each |"),
              "|---|---|---|---|---|---|---|---|---|---|---|---|"]
    return "\n".join(lines + [load.row() for load in loads])


def told(text: str) -> None:
    sys.stderr.write(text + "\n")


def main() -> int:
    """Exit code 1 when a transaction was killed by our locks, a request failed, or fewer rollouts ended than asked for."""
    cockpit.log_to(sys.stderr, level=logging.WARNING)
    with tempfile.TemporaryDirectory(prefix="rollout-bench-") as name, provide() as server, suppress(pymysql.err.InterfaceError):
        database = Target(make_url(server.url).set(database="bench_locks"))
        found = stalls(database, Path(name))
        loads = [under_load(database, Path(name), clients, rollouts) for clients, rollouts in ROLLOUTS.items()]
    sys.stdout.write(table(found, loads) + "\n")
    return int(any(load.killed or load.failed or load.stopped for load in loads))


if __name__ == "__main__":
    sys.exit(main())
