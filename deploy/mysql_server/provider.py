"""One provider of a real MySQL server for the demo, the tests and the benchmarks."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import pymysql
from sqlalchemy.engine import make_url

from deploy.mysql_server.errors import NoServerError, WayClosedError
from deploy.mysql_server.installation import on_path, unpacked
from deploy.mysql_server.running import running
from deploy.mysql_server.server import Server, asked_version

Opened = AbstractContextManager[Server]

URL_NAME = "ROLLOUT_TEST_DATABASE_URL"
WAY_NAME = "ROLLOUT_MYSQL_WAY"


@contextmanager
def provide(way: str | None = None, *, folder: Path | None = None, options: Sequence[str] = ()) -> Iterator[Server]:
    """
    Yield a MySQL server that answers over TCP as root, and end it with the context when we started it.

    The first open way is taken: the server named by ROLLOUT_TEST_DATABASE_URL ("url"), a Docker engine ("docker"),
    the mysqld on the PATH ("path"), MySQL's packages from this machine's archive in a cache folder ("private").
    *way*, or else ROLLOUT_MYSQL_WAY, takes one of them only. *options* are mysqld options and win over ours; *folder*
    is kept and, given again, so is the data in it. Neither can be had from "url", nor a folder from "docker".

    Safe to repeat, and at the same time: every call starts a server of its own, except that "url" names one server.

    Raises:
        WayClosedError: the one way asked for is closed.
        NoServerError: every way is closed; says why, way by way.
        ServerFailedError: mysqld does not start; carries the end of its log.
    """
    with _opened(way or os.environ.get(WAY_NAME), folder, options) as server:
        yield server


def _by_url(folder: Path | None, options: Sequence[str]) -> Opened:
    named = os.environ.get(URL_NAME)
    if not named:
        raise WayClosedError("url", f"{URL_NAME} is not set", "set it to mysql+pymysql://root:PASSWORD@HOST:PORT/")
    if folder or options:
        raise WayClosedError("url", "a running server takes no folder and no options", f"unset {URL_NAME}")
    url = make_url(named).set(drivername="mysql+pymysql", database="").render_as_string(hide_password=False)
    try:
        return nullcontext(Server(url, "url", asked_version(url), None, None))
    except pymysql.err.OperationalError as refused:
        reason = f"{make_url(url)!r} refused: {refused}"
        raise WayClosedError("url", reason, f"start it or unset {URL_NAME}") from refused


def _by_docker(folder: Path | None, options: Sequence[str]) -> Opened:
    if folder:
        raise WayClosedError("docker", "a container keeps its data inside", "ask for no folder")
    try:
        from deploy.mysql_server.container import contained  # noqa: PLC0415  # an extra, and slow to import
    except ImportError as missing:
        remedy = "pip install 'mysql-rollout[test]'"
        raise WayClosedError("docker", f"{missing.name} is not installed", remedy) from missing
    return contained(options)


def _by_path(folder: Path | None, options: Sequence[str]) -> Opened:
    return running(on_path(), folder, options)


def _by_packages(folder: Path | None, options: Sequence[str]) -> Opened:
    return running(unpacked(), folder, options)


WAYS: dict[str, Callable[[Path | None, Sequence[str]], Opened]] = {
    "url": _by_url,
    "docker": _by_docker,
    "path": _by_path,
    "private": _by_packages,
}


def _opened(way: str | None, folder: Path | None, options: Sequence[str]) -> Opened:
    if way:
        if way not in WAYS:
            raise WayClosedError(way, "no such way", f"choose one of {', '.join(WAYS)}")
        return WAYS[way](folder, options)
    closed = []
    for name, open_way in WAYS.items():
        try:
            return open_way(folder, options)
        except WayClosedError as why:
            if name == "url" and os.environ.get(URL_NAME) and not (folder or options):
                raise  # it was named on purpose: another server would be a surprise
            closed.append(why)
    raise NoServerError(tuple(closed))
