"""A server of the matrix's own that may be killed, with its theatre, a second operator, and what each command does undisturbed."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pymysql
from sqlalchemy import make_url

from deploy.mysql_server import Server, provide, restart
from tests.faults import theatre
from tests.faults.executioner import Executioner
from tests.faults.points import Point, points
from tests.faults.theatre import Theatre

# Starts again in two seconds; what it has acknowledged is on the disk.
OPTIONS = ("--innodb-buffer-pool-size=32M", "--innodb-redo-log-capacity=16M", "--innodb-flush-log-at-trx-commit=1", "--sync-binlog=1",
           "--innodb-buffer-pool-load-at-startup=OFF", "--innodb-buffer-pool-dump-at-shutdown=OFF")
FAST_DISK = Path("/dev/shm")  # noqa: S108  # where there is none, the machine's folder for temporary files
PATIENCE_S = 30
COMMANDS = tuple(theatre.START)


@dataclass
class World:
    """Everything a fault may need. Made by :func:`opened`; the second operator is a process of its own, made when first asked for."""

    server: Server
    theatre: Theatre
    folder: Path
    environment: dict[str, str] | None = None
    _second: Executioner | None = None
    _known: dict[str, tuple[list[Point], dict[str, Any]]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """The database as the tool is told it. A kind that stands between the tool and the server says something else here."""
        return self.theatre.stage.url

    @property
    def more(self) -> dict[str, Any]:
        """What the disturbed command is given beside what its kind gives it."""
        return {}

    @property
    def second(self) -> Executioner:
        """Another operator: forks victims beside the first one's."""
        self._second = self._second or Executioner(self.folder / "second.log", self.environment)
        return self._second

    def known(self, command: str) -> tuple[list[Point], dict[str, Any]]:
        """The points that *command* passes outside its rehearsal, and how it ends, when nothing disturbs it; looked once."""
        if command not in self._known:
            names, ending = self.theatre.undisturbed(command)
            self._known[command] = points(command, "live", names), ending
        return self._known[command]

    def points(self, command: str) -> list[Point]:
        """All points of *command*, those of a first run's rehearsal among them."""
        clone = points(command, "clone", self.theatre.on_clone) if command == "run" else []
        return [*self.known(command)[0], *clone]

    def client(self, database: str | None = None) -> pymysql.connections.Connection:
        """A session of somebody else, autocommit, each answer bounded."""
        where = make_url(self.server.url)
        return pymysql.connect(host=where.host, port=where.port or 3306, user=where.username, password=str(where.password or ""),
                               database=self.theatre.stage.schema if database is None else database, autocommit=True,
                               charset="utf8mb4", read_timeout=PATIENCE_S)

    def kill_server(self) -> None:
        """As `kill -9` does; nobody answers until :meth:`start_server`."""
        assert self.server.pid
        os.kill(self.server.pid, signal.SIGKILL)

    def start_server(self) -> None:
        """The same folder, the same port; the application connects again."""
        self.server = restart(self.server)
        self.theatre.stage.reconnect()

    def close(self) -> None:
        if self._second:
            self._second.__exit__()


@contextmanager
def opened(environment: dict[str, str] | None = None, options: tuple[str, ...] = ()) -> Iterator[World]:
    """A world of its own; *environment* is the victims', *options* are mysqld's and win."""
    home = Path(tempfile.mkdtemp(prefix="faults-", dir=FAST_DISK if FAST_DISK.is_dir() else None))
    try:
        with provide(folder=home / "server", options=(*OPTIONS, *options)) as server, \
                theatre.opened(server.url, home, environment) as standing:
            world = World(server, standing, home, environment)
            try:
                yield world
            finally:
                world.close()
    finally:
        shutil.rmtree(home, ignore_errors=True)
