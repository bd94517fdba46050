"""The application is in the way: rows locked, the table held, everything read-locked, a deadlock (cases C06, C60, C61)."""

from __future__ import annotations

import time
from collections.abc import Callable

import pymysql

from flows.demo.traffic.generations import TABLE
from tests.faults.kinds.kind import HURRY, Kind, in_a_statement, outside_holds
from tests.faults.points import Point
from tests.faults.scene import Scene

A_WHILE_S = 0.7
READS = (f"SELECT COUNT(*) FROM {TABLE}",)
LOCKS_ROWS = (f"SELECT id FROM {TABLE} FOR UPDATE SKIP LOCKED",)
DEADLOCK, LOCK_TIMEOUT = 1213, 1205
HEAVY_ROWS = 200  # the server ends the lighter of two


def held(*statements: str) -> Callable[[Scene], None]:
    """An open transaction that has sent *statements*, until the tool has ended."""
    def play(scene: Scene) -> None:
        with scene.client() as send:
            for statement in ("START TRANSACTION", *statements):
                send(statement)
            scene.wait()

    return play


def held_a_while(*statements: str) -> Callable[[Scene], None]:
    """The same, for less than the tool has patience."""
    def play(scene: Scene) -> None:
        with scene.client() as send:
            for statement in ("START TRANSACTION", *statements):
                send(statement)
            scene.goes_on()
            time.sleep(A_WHILE_S)
        scene.wait()

    return play


def read_locked(scene: Scene) -> None:
    """A backup's lock on everything, until the tool has ended."""
    with scene.writes_wait():
        scene.wait()


def deadlock(scene: Scene) -> None:
    """Somebody holds the pass's own row, waits until the chunk wants it, and then wants the chunk's rows: the tool's is the lighter."""
    with scene.client() as send:
        send("SET SESSION innodb_lock_wait_timeout = 3")
        send("START TRANSACTION")
        send("INSERT INTO `User` (id, email, updatedAt) VALUES "
             + ", ".join(f"('heavy{n}', 'heavy{n}@example.org', '2026-01-01')" for n in range(HEAVY_ROWS)))
        send("SELECT COUNT(*) FROM _rollout_pass FOR UPDATE")
        scene.goes_on()
        scene.hit = _waits_for_rows(scene)
        scene.struck()
        try:
            send(f"SELECT COUNT(*) FROM {TABLE} FOR UPDATE")
        except pymysql.err.OperationalError as error:
            if error.args[0] not in (DEADLOCK, LOCK_TIMEOUT):
                raise
            scene.hit = error.args[0] == DEADLOCK  # the other way round, or nobody but the chunk's end
        send("ROLLBACK")
    scene.wait()


def _waits_for_rows(scene: Scene) -> bool:
    deadline = time.monotonic() + 1
    with scene.client() as send:
        while time.monotonic() < deadline:
            if send("SELECT 1 FROM performance_schema.data_lock_waits LIMIT 1"):  # INNODB_TRX stands still while it is asked this often
                return True
            time.sleep(0.005)
    return False


def before_a_chunk(point: Point) -> bool:
    return point.name == "before a chunk" and point.series == "live"


def live(point: Point) -> bool:
    return outside_holds(point) and point.series == "live"


KINDS = (
    Kind("rows locked", held(*LOCKS_ROWS), live, settings=HURRY),
    Kind("rows locked for a while", held_a_while(*LOCKS_ROWS), live, points=3),
    Kind("table held by a reader", held(*READS), live, settings=HURRY),
    Kind("table held for a while", held_a_while(*READS), live, points=3),
    Kind("everything read-locked", read_locked, in_a_statement, points=3, settings=HURRY),
    Kind("deadlock", deadlock, before_a_chunk, points=3),
)
