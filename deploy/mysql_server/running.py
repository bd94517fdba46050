"""A mysqld of our own: started on a private folder and a free port, restarted there, ended with its holder."""

import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pymysql

from deploy.mysql_server import keeper
from deploy.mysql_server.errors import ServerFailedError
from deploy.mysql_server.installation import Installation
from deploy.mysql_server.server import Server, asked_version, server_url
from deploy.mysql_server.settings import SETTINGS

START_S = 60
# Below Linux's range for outgoing connections: a killed server finds its port free again.
FIRST_PORT, LAST_PORT = 20_000, 32_767
FOLDER = "ROLLOUT_PRIVATE_MYSQL_FOLDER"  # where private folders are made, instead of the system's place for temporary files
OURS = ("--port=", "--datadir=", "--socket=", "--pid-file=", "--bind-address=")

_running: dict[Path, "_Mysqld"] = {}


@contextmanager
def running(installation: Installation, folder: Path | None, options: Sequence[str]) -> Iterator[Server]:
    """
    Yield a server started from *installation*, with *options* after our own settings, so that they win.

    *folder* is created when missing and kept; data it already holds is used again. Without it a private folder is made
    and removed. mysqld ends with the context, and also when this process is killed.

    Raises:
        ValueError: an option would move the server away from its folder or port.
        ServerFailedError: mysqld cannot be initialised or does not answer within a minute.
    """
    moving = [option for option in options if option.startswith(OURS)]
    if moving:
        raise ValueError(f"option {moving[0]} is the provider's to choose; leave it out, or give a folder")
    made = None if folder else Path(tempfile.mkdtemp(prefix="mysql-", dir=os.environ.get(FOLDER)))
    home = (folder or made or Path()).resolve()
    mysqld = _Mysqld(installation, home, options, removed=made is not None)
    try:
        mysqld.prepare()
        mysqld.start(first=True)
        _running[home] = mysqld
        yield mysqld.server()
    finally:
        _running.pop(home, None)
        mysqld.stop()
        if made:
            shutil.rmtree(made, ignore_errors=True)


def restart(server: Server) -> Server:
    """
    Start *server* again on the same folder and port, ending it first when it runs; return it with its new pid.

    Safe to repeat. The password and so the URL stay. The context that provided *server* ends the new one too.

    Raises:
        LookupError: we did not start it in this process, or its context has ended.
        ServerFailedError: it does not answer within a minute.
    """
    mysqld = _running.get(server.folder) if server.folder else None
    if not mysqld:
        raise LookupError(f"{server.way} server in {server.folder} is not ours to restart; provide() one that is")
    mysqld.stop()
    mysqld.start()
    return mysqld.server()


class _Mysqld:
    """One mysqld on one folder; its keeper process ends it when this process is gone."""

    def __init__(self, installation: Installation, home: Path, options: Sequence[str], *, removed: bool) -> None:
        self._installation, self._home, self._options, self._removed = installation, home, options, removed
        self._password = secrets.token_hex(16)
        self._port = free_port()
        self._log = home / "mysqld.log"
        self._keeper: subprocess.Popen[str] | None = None
        self._pid = 0
        self._version = installation.version

    def prepare(self) -> None:
        """Lay out the folder with a copy of the template's data. Safe to repeat: data already there stays."""
        (self._home / "tmp").mkdir(parents=True, exist_ok=True)
        data = self._home / "data"
        if not data.exists():
            template = self._installation.template(self._options) / "data"
            subprocess.run(["cp", "-a", "--reflink=auto", template, data], check=True)

    def start(self, *, first: bool = False) -> None:
        """Start mysqld and wait until it answers over TCP; the first time it sets the root password."""
        init = self._home / "root.sql"
        if first:
            init.touch(mode=0o600)
            init.write_text(_password_sql(self._password))
        keeping = [sys.executable, "-I", "-S", keeper.__file__, str(self._home) if self._removed else ""]
        with self._log.open("a") as log:
            self._keeper = subprocess.Popen(
                [*keeping, *self._command([f"--init-file={init}"] if first else [])],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,  # Ctrl-C ends the holder, which then ends mysqld
            )
        assert self._keeper.stdout  # noqa: S101  # PIPE was asked for
        with self._keeper.stdout as told:
            self._pid = int(told.readline() or 0)  # no line: mysqld cannot be executed, as the log says
        self._wait(self._keeper)
        init.unlink(missing_ok=True)

    def stop(self) -> None:
        """End mysqld and wait for its end. Safe to repeat, and when it is dead already."""
        if self._keeper:
            with suppress(BrokenPipeError):  # the keeper has followed a mysqld that died
                self._keeper.communicate("stop")
            self._keeper = None

    def server(self) -> Server:
        """Describe the running server."""
        url = server_url("root", self._password, "127.0.0.1", self._port)
        return Server(url, self._installation.way, self._version, self._home, self._pid)

    def _command(self, first: Sequence[str]) -> list[str]:
        return [
            *self._installation.command,
            *SETTINGS,
            "--bind-address=127.0.0.1",
            "--mysqlx=0",
            f"--datadir={self._home / 'data'}",
            f"--tmpdir={self._home / 'tmp'}",
            f"--port={self._port}",
            f"--server-id={self._port}",
            "--socket=mysqld.sock",  # in the data folder; a path from the root may be longer than a socket allows
            "--pid-file=mysqld.pid",
            *first,
            *self._options,
        ]

    def _wait(self, kept: "subprocess.Popen[str]") -> None:
        deadline = time.monotonic() + START_S
        while kept.poll() is None and time.monotonic() < deadline:
            with suppress(pymysql.err.OperationalError):
                self._version = asked_version(server_url("root", self._password, "127.0.0.1", self._port))
                return
            time.sleep(0.05)
        self.stop()
        raise ServerFailedError(f"starting on port {self._port}", self._log.read_text(errors="replace")[-2000:])


def free_port() -> int:
    """Return a port of 127.0.0.1 nobody listens on; chosen at random, so that neighbours choose others."""
    while True:
        port = FIRST_PORT + secrets.randbelow(LAST_PORT - FIRST_PORT)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def _password_sql(password: str) -> str:
    changed = "ALTER USER 'root'@'{host}' IDENTIFIED WITH caching_sha2_password BY '{password}';"
    accounts = [changed.format(host=host, password=password) for host in ("localhost", "127.0.0.1")]
    return "\n".join(["SET SESSION sql_log_bin = 0;", *accounts, ""])
