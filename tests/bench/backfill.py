"""
`make bench`: what the backfill costs beside what people run by hand, as ratios from one run, printed as one markdown table.

QUICK=1 takes minutes: fewer rows, the same measurements. Every figure is of this machine and this moment; ratios are what counts.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from sqlalchemy import make_url

from deploy.mysql_server import Server, provide
from flows.demo.traffic.generations import TABLE
from steps import control
from steps.ledger import Ledger
from steps.mysql import Session
from tests.bench import ground
from tests.bench.clients import Clients
from tests.bench.ground import PLAN, Ground, seconds

QUICK = os.environ.get("QUICK", "") not in ("", "0")
ROWS = 30_000 if QUICK else 1_000_000
BESIDE_ROWS = int(os.environ.get("BESIDE_ROWS", "15000" if QUICK else "250000"))
GROWTH = (10_000, 20_000, 40_000) if QUICK else (250_000, 1_000_000, 4_000_000)
BEFORE_S = 6 if QUICK else 30
LANES = 4
BIG = ("--innodb-buffer-pool-size=1G", "--innodb-redo-log-capacity=1G")
Line = tuple[str, str, str]


def speed(here: Ground) -> Iterator[Line]:
    """All pairs filled and both indexes built."""
    def hand(how: Callable[[Session], None], *, indexes_first: bool) -> float:
        with here.fresh("bench", ROWS, triggers=False) as session:
            took = seconds(lambda: ground.index(session)) if indexes_first else 0.0
            took += seconds(lambda: how(session))
            return took + (0.0 if indexes_first else seconds(lambda: ground.index(session)))

    found = {"one UPDATE, indexes in place": hand(ground.one_update, indexes_first=True),
             "one UPDATE, then indexes": hand(ground.one_update, indexes_first=False),
             "mysql-batch, then indexes": hand(ground.by_mysql_batch, indexes_first=False)}
    best = min(found.values())
    for mode, connections in (("full_speed", LANES), ("full_speed", 1)):
        with here.fresh("bench", ROWS, triggers=True) as session:
            took = seconds(lambda mode=mode, connections=connections: ground.fill(  # type: ignore[misc]
                session.target, mode=mode, connections=connections))
            found[f"ours, {mode}, {connections} connections, triggers on, then indexes"] = took + seconds(lambda: ground.index(session))
    for name, took in found.items():
        yield f"{ROWS:,} rows filled and indexed: {name}", f"{took:.1f} s", f"{took / best:.2f} × the best by hand"


def beside_traffic(here: Ground) -> Iterator[Line]:
    """Eight clients, half V0 and half V1."""
    ways: dict[str, Callable[[Session], None]] = {
        "ours, gentle": lambda session: ground.fill(session.target), "one UPDATE": ground.one_update,
        "mysql-batch": ground.by_mysql_batch}
    for name, way in ways.items():
        with here.fresh("bench", BESIDE_ROWS, triggers=name.startswith("ours")) as session:
            url = session.target.url
            keys = [key for (key,) in session.query(f"SELECT id FROM {TABLE} LIMIT 5000")]
            arguments = {"host": url.host, "port": url.port, "user": url.username, "password": url.password, "database": url.database}
            with Clients(arguments, keys) as clients:
                time.sleep(BEFORE_S + 2)
                began = time.time()
                failed = ""
                try:
                    way(session)
                except Exception as error:  # noqa: BLE001  # what people run by hand may die of the traffic; that is a result
                    failed = f"; itself failed ({type(error).__name__})"
                ended = time.time()
            seen = clients.seen
            before, during = seen.p99(began - BEFORE_S, began), seen.p99(began, ended)
            yield (f"beside 8 clients, {BESIDE_ROWS:,} rows: {name}",
                   f"{len(seen.errors)} failed, p99 {before:.0f} → {during:.0f} ms, longest {seen.longest(began, ended):.0f} ms",
                   f"p99 {during / max(before, 0.1):.2f} × before, {BESIDE_ROWS / (ended - began):,.0f} rows/s{failed}")


def growth(here: Ground) -> Iterator[Line]:
    """The same pass over more rows."""
    first = 0.0
    for rows in GROWTH:
        here.fresh("bench", rows, triggers=True).close()
        process, answer = elsewhere(here, {"mode": "full_speed", "connections": LANES})
        began = time.monotonic()
        process.start()
        peak_mb = answer.recv()
        process.join()
        rate = rows / (time.monotonic() - began)
        first = first or rate
        yield f"full_speed over {rows:,} rows", f"{rate:,.0f} rows/s, peak {peak_mb:.0f} MB", f"{rate / first:.2f} × the first rate"


def killed(here: Ground) -> Iterator[Line]:
    """Killed half-way, then the same again."""
    session = here.fresh("bench", ROWS, triggers=True)
    process, _ = elsewhere(here, {"mode": "full_speed", "connections": LANES})
    process.start()
    ledger = Ledger(session, session.target.schema, TABLE, PLAN.id)
    standing: dict[str, Any] = {}
    while standing.get("rows_examined", 0) < ROWS // 2 and process.is_alive():
        time.sleep(0.05)
        standing = ledger.passes().get("first", {})
    os.kill(process.pid or 0, signal.SIGKILL)
    process.join()
    time.sleep(1)  # the server ends what it left behind
    recorded, there = ledger.passes()["first"], ground.filled(session)
    took = seconds(lambda: ground.fill(session.target, mode="full_speed", connections=LANES))
    ended = ledger.passes()["first"]
    again = ended["rows_examined"] - ROWS
    yield (f"kill -9 at {recorded['rows_examined']:,} of {ROWS:,} rows, then the same again",
           f"{took:.1f} s for the rest, {ground.filled(session):,} rows filled", f"{again} rows done twice (filled when killed: {there:,})")
    session.close()


def replica(here: Ground, source: Server) -> Iterator[Line]:
    """A replica whose applier is stopped for a while."""
    with provide(options=("--innodb-buffer-pool-size=512M",)) as second, Session(here.target("mysql")) as root:
        copy = Session(ground.Target(make_url(second.url).set(database="mysql")))
        here.fresh("lagging", BESIDE_ROWS, triggers=True).close()
        name, position, *_ = root.one("SHOW BINARY LOG STATUS")
        url = make_url(source.url)
        copy.run("CREATE DATABASE lagging")
        copy.run("SET GLOBAL replica_parallel_workers = 1")
        copy.verbatim(f"CHANGE REPLICATION SOURCE TO SOURCE_HOST='{url.host}', SOURCE_PORT={url.port}, SOURCE_USER='{url.username}', "
                      f"SOURCE_PASSWORD='{url.password}', GET_SOURCE_PUBLIC_KEY=1, SOURCE_LOG_FILE='{name}', SOURCE_LOG_POS={position}")
        copy.verbatim("CHANGE REPLICATION FILTER REPLICATE_WILD_DO_TABLE = ('lagging.\\_rollout\\_%')")
        copy.verbatim("START REPLICA")
        os.environ["BENCH_REPLICA"] = make_url(second.url).set(database="lagging").render_as_string(hide_password=False)
        session = Session(here.target("lagging"))
        ledger = Ledger(session, "lagging", TABLE, PLAN.id)
        ledger.create()
        work = threading.Thread(target=lambda: ground.fill(here.target("lagging"), replicas=("BENCH_REPLICA",), max_replica_lag_s=2))
        control.limit(ledger, BESIDE_ROWS // 15)  # so that it lasts
        work.start()
        wait(lambda: ledger.passes().get("first", {}).get("rows_examined", 0) > BESIDE_ROWS // 10)
        copy.verbatim("STOP REPLICA SQL_THREAD")
        paused_s = wait(lambda: session.value("SELECT paused_for FROM _rollout_pace"))
        why = session.value("SELECT paused_for FROM _rollout_pace")
        seen = ledger.passes()["first"]["rows_examined"]
        time.sleep(2)
        held = ledger.passes()["first"]["rows_examined"] == seen
        copy.verbatim("START REPLICA SQL_THREAD")
        resumed_s = wait(lambda: not session.value("SELECT paused_for FROM _rollout_pace"))
        control.limit(ledger, None)
        work.join()
        yield ("replica's applier stopped (limit 2 s)", f"paused after {paused_s:.1f} s: {why}",
               f"{'stood still' if held else 'WENT ON'}, went on by itself {resumed_s:.1f} s after it moved again")


def wait(condition: Callable[[], object], most_s: float = 120) -> float:
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > most_s:
            raise TimeoutError("waited in vain")
        time.sleep(0.05)
    return time.monotonic() - began


def elsewhere(here: Ground, settings: dict[str, Any]) -> tuple[Any, Any]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    url = here.target("bench").url.render_as_string(hide_password=False)
    return context.Process(target=ground.fill_elsewhere, args=(url, settings, theirs), daemon=True), ours


@contextmanager
def told() -> Iterator[Callable[[Line], None]]:
    sys.stdout.write("\n| what | figure | against |\n|---|---|---|\n")

    def tell(line: Line) -> None:
        sys.stdout.write(f"| {' | '.join(line)} |\n")
        sys.stdout.flush()

    with suppress(KeyboardInterrupt):
        yield tell


def main() -> None:
    wanted = sys.argv[1:]
    with provide(options=BIG) as server, told() as tell:
        here = Ground(server.url, max(ROWS, *GROWTH) if not wanted or "growth" in wanted else ROWS)
        parts: dict[str, Callable[[], Iterator[Line]]] = {
            "speed": lambda: speed(here), "traffic": lambda: beside_traffic(here), "growth": lambda: growth(here),
            "killed": lambda: killed(here), "replica": lambda: replica(here, server)}
        for name, part in parts.items():
            if not wanted or name in wanted:
                for line in part():
                    tell(line)


if __name__ == "__main__":
    main()
