"""One fault at one point: the victim has stopped there, and whoever strikes has it, its sessions and the world around it at hand."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pymysql

from tests.faults.points import Point
from tests.faults.world import World

SEEN_WITHIN_S = 1.5
TOOL = ("SELECT p.ID FROM performance_schema.session_connect_attrs AS a JOIN information_schema.PROCESSLIST AS p "
        "ON p.ID = a.PROCESSLIST_ID WHERE a.ATTR_NAME = 'program_name' AND a.ATTR_VALUE = 'mysql-rollout'")
WAITS = " AND p.COMMAND = 'Query' AND p.STATE LIKE 'Waiting for %' AND p.INFO NOT LIKE '%SET heartbeat_at%'"


@dataclass
class Scene:
    """
    What a kind's `play` is given (:mod:`tests.faults.kinds`).

    *more* is for every command beside the usual. `told` is what the victim said when it stopped, `others` what other people's commands
    ended with. `wrong` collects what was seen to be wrong on the way. `hit` is False when the fault met nothing: no such connection,
    no statement that waited.
    """

    world: World
    point: Point
    settings: tuple[str, ...]
    more: dict[str, Any] = field(default_factory=dict)
    told: dict[str, Any] = field(default_factory=dict)
    ended: dict[str, Any] | None = None
    others: list[dict[str, Any]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    hit: bool = True
    _struck_s: float = 0.0
    noticed_s: float = 0.0
    _going: bool = False

    # The victim

    def begin(self) -> bool:
        """Start the command and let it come to the point; whether it did."""
        point, stage = self.point, self.world.theatre
        told = stage.executioner.started(point.command, self.world.url, series=point.series, name=point.name, at=point.nth,
                                         settings=[*self.settings],
                                         **{**stage.remembered(known=point.series == "live"), **self.more})
        self.told = told
        if not told.get("paused"):
            self.ended, self.hit = told, False
            if told.get("ended"):  # else it passed fewer points than before: a hold that was given back early makes more of them
                self.wrong.append(f"never came to {point.key} but ended with {told.get('ended')}: {told.get('said')}")
            return False
        self.struck()
        return True

    def struck(self) -> None:
        """The fault begins now: from here on it counts how long the tool takes to notice."""
        self._struck_s = time.monotonic()

    def goes_on(self) -> None:
        """Give the victim its word and return at once."""
        self.world.theatre.executioner.go_on()
        self._going = True

    def wait(self) -> dict[str, Any]:
        """Let the victim go on if it does not yet, and wait for its end. Safe to repeat."""
        if self.ended is None:
            if not self._going:
                self.goes_on()
            self.ended = self.world.theatre.executioner.heard()
            past_s = time.monotonic() - self._struck_s
            self.noticed_s = past_s if self.ended["ended"] else float(self.ended.get("next_s", past_s))
        return self.ended

    def kill(self) -> None:
        """As `kill -9` does."""
        self.send(signal.SIGKILL)

    def freeze(self) -> None:
        """The tool's machine stands still; its connections stay."""
        self.send(signal.SIGSTOP)

    def thaw(self) -> None:
        """Safe to repeat."""
        self.send(signal.SIGCONT)

    def send(self, number: int) -> None:
        """A victim that has ended already is passed over."""
        if self.ended is None:
            with suppress(ProcessLookupError):
                os.kill(self.told["pid"], number)

    # Other people

    @contextmanager
    def client(self) -> Iterator[Callable[..., list[Any]]]:
        """Somebody else's session, as a function that sends a statement and returns its rows; what it holds goes with it."""
        connection = self.world.client()

        def send(sql: str, *values: Any) -> list[Any]:
            with connection.cursor() as cursor:
                cursor.execute(sql, values or None)
                return list(cursor.fetchall())

        try:
            yield send
        finally:
            with suppress(pymysql.err.Error):  # it went with its server
                connection.close()

    def second_operator(self, command: str | None = None, settings: tuple[str, ...] = ()) -> dict[str, Any]:
        """Somebody runs *command*, the same one by default, on the same database, to its end."""
        told = self.world.second.run(command or self.point.command, self.world.url, settings=[*self.settings, *settings],
                                     **{**self.world.theatre.remembered(known=True), **self.more})
        self.others.append(told)
        return told

    def kill_connection(self, *names: str) -> None:
        """KILL the tool's connections of these names, `others` among them; those that are not there are passed over."""
        sessions = self.told["sessions"]
        numbers = [n for name in names for n in (sessions["others"] if name == "others" else [sessions.get(name)]) if n]
        self.kill_numbers(numbers)

    def kill_numbers(self, numbers: list[int]) -> None:
        with self.client() as send:
            for number in numbers:
                try:
                    send(f"KILL {number}")
                except pymysql.err.OperationalError as error:
                    if error.args[0] != 1094:  # it has ended by itself
                        raise

    # Inside a statement

    @contextmanager
    def writes_wait(self) -> Iterator[None]:
        """
        A backup holds up what writes: inside a hold every DDL statement (LOCK INSTANCE FOR BACKUP), elsewhere every write, DDL and
        COMMIT (FLUSH TABLES WITH READ LOCK, which would itself wait for a hold).
        """
        with self.client() as send:
            send("SET SESSION lock_wait_timeout = 1")
            try:
                send("LOCK INSTANCE FOR BACKUP" if self.point.in_hold else "FLUSH TABLES WITH READ LOCK")
            except pymysql.err.OperationalError as error:
                if error.args[0] != 1205:
                    raise
            yield

    def seen_waiting(self, within_s: float = SEEN_WITHIN_S) -> list[int]:
        """The tool's connections whose statement, no heartbeat's, is waiting for a lock, as soon as there is one; none after *within_s*."""
        deadline = time.monotonic() + within_s
        with self.client() as send:
            while time.monotonic() < deadline:
                found = [int(row[0]) for row in send(TOOL + WAITS)]
                if found:
                    return found
                time.sleep(0.005)
        return []
