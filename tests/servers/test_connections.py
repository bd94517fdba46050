"""Limits on connections: refused before the first change, stopped after it, and never more than stated (case C83)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import make_url

from deploy.mysql_server import Server
from steps import ddl, mysql, verify
from steps.checks import connections
from steps.mysql import Session
from steps.target import ENVIRONMENT
from tests.cli.calling import DEPLOYED, PLAN, Call, phases, standing
from tests.conftest import App

RUN = ("run", PLAN, "--no-prefect", "--by", "ann", "--reason", "it is due", *DEPLOYED)


@pytest.fixture
def limited(job: App, own: Server, admin: App, monkeypatch: pytest.MonkeyPatch) -> Iterator[App]:
    """The command line works as an account that may do everything; what it is limited to is the test's choice."""
    admin.run("CREATE USER few@'%' IDENTIFIED BY 'secret'")
    admin.run("GRANT ALL ON *.* TO few@'%'")
    schema = job.value("SELECT DATABASE()")
    url = make_url(own.url).set(username="few", password="secret", database=schema)
    monkeypatch.setenv(ENVIRONMENT, url.render_as_string(hide_password=False))
    yield admin
    admin.run("DROP USER few@'%'")


def test_a_run_never_has_more_connections_than_stated(here: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    most = []
    real = Session._set_up

    def counted(self: Session, *words: Any) -> None:
        real(self, *words)
        most.append(mysql.sessions_standing())

    monkeypatch.setattr(Session, "_set_up", counted)
    before = mysql.sessions_standing()

    assert here(*RUN).code == 0

    assert max(most) - before == connections.MOST


def test_too_few_connections_of_the_account_are_refused(limited: App, call: Call, job: App) -> None:
    limited.run("ALTER USER few@'%' WITH MAX_USER_CONNECTIONS 4")
    before = standing(job)

    answer = call(*RUN)

    assert answer.code == 3, answer.text
    assert "[connections] account few@%: has 3 of 4 connections in use (max_user_connections); a run needs 2 more" in answer.text
    assert standing(job) == before


def test_too_few_for_all_lanes_are_told_and_no_hindrance(limited: App, call: Call) -> None:
    limited.run("ALTER USER few@'%' WITH MAX_USER_CONNECTIONS 6")

    gentle = call("check", PLAN)
    fast = call("check", PLAN, "--set", "backfill.mode=full_speed")

    assert (gentle.code, "[connections]" in gentle.text) == (0, False), gentle.text
    assert fast.code == 0, fast.text
    assert "has 3 of 6 connections in use (max_user_connections); a run needs 5 more for all lanes of its passes" in fast.text


def test_fewer_than_even_a_look_needs_are_refused_too(limited: App, call: Call, job: App) -> None:
    limited.run("ALTER USER few@'%' WITH MAX_USER_CONNECTIONS 2")
    before = standing(job)

    answer = call(*RUN)

    assert (answer.code, "1226" in answer.text) == (3, True), answer.text
    assert standing(job) == before


def test_hourly_limits_are_refused(limited: App, call: Call) -> None:
    limited.run("ALTER USER few@'%' WITH MAX_QUERIES_PER_HOUR 100000")

    answer = call("check", PLAN)

    assert answer.code == 3
    assert "[connections] account few@%: has MAX_QUERIES_PER_HOUR 100000" in answer.text


def test_a_full_server_is_refused(limited: App, here: Call, job: App) -> None:
    most = limited.value("SELECT @@global.max_connections")
    before = standing(job)
    limited.run("SET GLOBAL max_connections = 6")  # this test's two, three of the look, and one more
    try:
        answer = here(*RUN)
    finally:
        limited.run(f"SET GLOBAL max_connections = {most}")

    assert answer.code == 3, answer.text
    assert "connections in use (max_connections); a run needs 2 more" in answer.text
    assert standing(job) == before


class Full:
    """Lets no further connection in, from the first time that what it wraps is called until it is told to."""

    def __init__(self, admin: App, real: Callable[..., Any]) -> None:
        self.admin, self.real = admin, real
        self.most = admin.value("SELECT @@global.max_connections")

    def __call__(self, *words: Any, **named: Any) -> Any:
        self.admin.run("SET GLOBAL max_connections = 1")
        return self.real(*words, **named)

    def over(self) -> None:
        self.admin.run(f"SET GLOBAL max_connections = {self.most}")


def test_a_limit_reached_half_way_stops_and_the_same_command_goes_on(here: Call, job: App, admin: App,
                                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    full = Full(admin, verify._queries)
    monkeypatch.setattr(verify, "_queries", full)
    try:
        stopped = here(*RUN)
    finally:
        full.over()

    assert stopped.code == 4, stopped.text
    assert "let no further session in: MySQL error 1040" in stopped.text
    assert "what was done stands" in stopped.text
    assert (phases(job)["backfill"], phases(job)["verify"]) == ("done", "running")
    assert job.rows("SELECT exit_code FROM _rollout_run") == [(4,)]
    monkeypatch.setattr(verify, "_queries", full.real)
    assert here(*RUN).code == 0
    assert set(phases(job).values()) == {"done"}


def test_a_limit_reached_before_the_first_hold_leaves_the_table_alone(here: Call, job: App, admin: App,
                                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    before = job.create_table()
    full = Full(admin, ddl.hold)
    monkeypatch.setattr(ddl, "hold", full)
    try:
        stopped = here(*RUN)
    finally:
        full.over()

    assert (stopped.code, "1040" in stopped.text) == (4, True), stopped.text
    assert job.create_table() == before
    assert job.triggers() == []
    assert job.rows("SELECT * FROM _rollout_owner") == []
