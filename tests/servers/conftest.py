"""Servers of their own for what must not disturb others: odd settings, limits used up, readers of the binary log."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import make_url

from deploy.mysql_server import Server, provide
from steps.target import ENVIRONMENT, Target
from tests.cli.calling import Call, caller
from tests.cli.conftest import quiet_afterwards  # noqa: F401  # used by being here
from tests.conftest import App, add_jobs, make_old_database


@contextmanager
def seeded_on(server: Server, name: str = "") -> Iterator[App]:
    """A client of a fresh schema with the old database and nine jobs; removed afterwards."""
    target = Target(make_url(server.url).set(database=name or f"t_{uuid.uuid4().hex[:20]}"))
    admin = App(target, "")
    admin.run(f"CREATE DATABASE `{target.schema}`")
    app = App(target)
    app.run("SET SESSION default_storage_engine = InnoDB, autocommit = 1, sql_mode = ''")
    make_old_database(app)
    add_jobs(app, 9)
    yield app
    app.close()
    admin.run(f"DROP DATABASE `{target.schema}`")
    admin.close()


@pytest.fixture(scope="module")
def own() -> Iterator[Server]:
    """A plain server that belongs to this module's tests alone."""
    with provide() as server:
        yield server


@pytest.fixture
def job(own: Server) -> Iterator[App]:
    """A client of a fresh schema on that server."""
    with seeded_on(own) as app:
        yield app


@pytest.fixture
def admin(own: Server) -> Iterator[App]:
    """Another client of that server, for what the test does to it."""
    client = App(Target(make_url(own.url)), "")
    yield client
    client.close()


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """The command line, with whatever database the test sets."""
    return caller(monkeypatch, capsys)


@pytest.fixture
def here(call: Call, job: App, own: Server, monkeypatch: pytest.MonkeyPatch) -> Call:
    """The command line on the fresh schema."""
    schema = job.value("SELECT DATABASE()")
    monkeypatch.setenv(ENVIRONMENT, make_url(own.url).set(database=schema).render_as_string(hide_password=False))
    return call
