"""A PostgreSQL of our own: on a private folder and a free port of loopback, ended with its holder."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from deploy.mysql_server import keeper
from deploy.mysql_server.running import FOLDER, free_port
from deploy.postgres_server.installation import Installation, NoPostgresError, found, within

START_S = 60
NOBODY = 65534  # PostgreSQL refuses to run as root
READY_LINE = 8  # of postmaster.pid: what the server says of itself
SETTINGS = ("fsync=off", "synchronous_commit=off", "full_page_writes=off",  # a test's data need not survive a power cut
            "max_connections=60", "unix_socket_directories=", "listen_addresses=127.0.0.1")


@contextmanager
def provide(*, private: bool = False) -> Iterator[str]:
    """
    Yield the URL of a server, `postgresql+asyncpg://prefect:PASSWORD@127.0.0.1:PORT/postgres`; *private* takes the cache's packages.

    Its folder is made and removed; it ends with the context, and also when this process is killed.

    Raises:
        NoPostgresError: none can be had, or it does not start within a minute.
    """
    installation = found(private=private)
    home = Path(tempfile.mkdtemp(prefix="postgres-", dir=os.environ.get(FOLDER)))
    try:
        with _running(_reachable(installation, home), home) as url:
            yield url
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _reachable(installation: Installation, home: Path) -> Installation:
    """*installation*, where the user that the server runs as can read it: the cache of root is root's alone."""
    if os.geteuid() or not installation.prefix:
        return installation
    prefix = home / "prefix"
    subprocess.run(["cp", "-a", "--reflink=auto", installation.prefix, prefix], check=True)
    prefix.chmod(0o755)
    return within(prefix)


@contextmanager
def _running(installation: Installation, home: Path) -> Iterator[str]:
    password, port, data = secrets.token_hex(16), free_port(), home / "data"
    given = home / "password"
    given.touch(mode=0o600)
    given.write_text(password)
    log = home / "postgres.log"
    _given_over(home, given)
    environment = dict(os.environ)
    if installation.libraries:
        environment["LD_LIBRARY_PATH"] = str(installation.libraries)
    made = subprocess.run([*_as_nobody(), installation.programs / "initdb", f"--pgdata={data}", "--username=prefect", f"--pwfile={given}",
                           "--auth=scram-sha-256", "--encoding=UTF8", "--no-locale", "--no-sync"], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False, env=environment, cwd=home)
    if made.returncode:
        raise NoPostgresError(f"initdb failed: {made.stdout[-1000:]}", "mend what it names and try again")
    settings = [word for setting in (*SETTINGS, f"port={port}") for word in ("-c", setting)]
    with log.open("w") as lines:
        kept = subprocess.Popen([sys.executable, "-I", "-S", keeper.__file__, str(home), *_as_nobody(), installation.programs / "postgres",
                                 "-D", data, *settings], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=lines, text=True,
                                start_new_session=True, env=environment, cwd=home)
    try:
        _wait(kept, data, log)
        yield f"postgresql+asyncpg://prefect:{password}@127.0.0.1:{port}/postgres"
    finally:
        with suppress(BrokenPipeError):
            kept.communicate("stop")


def _as_nobody() -> list[str]:
    return [] if os.geteuid() else ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]


def _given_over(*paths: Path) -> None:
    if not os.geteuid():
        for path in paths:
            os.chown(path, NOBODY, NOBODY)


def _wait(kept: subprocess.Popen[str], data: Path, log: Path) -> None:
    deadline = time.monotonic() + START_S
    while kept.poll() is None and time.monotonic() < deadline:
        with suppress(OSError):
            lines = (data / "postmaster.pid").read_text().splitlines()
            if len(lines) >= READY_LINE and lines[READY_LINE - 1].strip() == "ready":
                return
        time.sleep(0.05)
    raise NoPostgresError(f"it did not start: {log.read_text(errors='replace')[-1000:]}", "mend what its log names and try again")
