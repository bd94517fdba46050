"""The server's own troubles in the middle of a run: told as what they are, stopped, and gone on with (cases C24, C26, C84)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from steps import ddl, server_trouble, verify
from steps.errors import ConnectionLost, LockTimeout, Refused, StatementFailed, Stopped, Unreachable
from steps.hold import Gap
from steps.ladder import Way
from steps.mysql import Session
from tests.cli.calling import DEPLOYED, PLAN, Call, phases
from tests.conftest import App

RUN = ("run", PLAN, "--no-prefect", "--by", "ann", "--reason", "it is due", *DEPLOYED)
SMALL_LOG = 65_536


@pytest.fixture
def log_of(admin: App) -> Iterator[Callable[[int], None]]:
    usual = admin.value("SELECT @@global.innodb_online_alter_log_max_size")

    def size(value: int) -> None:
        admin.run(f"SET GLOBAL innodb_online_alter_log_max_size = {value}")

    yield size
    size(usual)


def test_a_lost_index_build_names_the_servers_log_and_is_not_tried_again(here: Call, job: App, log_of: Callable[[int], None],
                                                                         monkeypatch: pytest.MonkeyPatch) -> None:
    job.run("ANALYZE TABLE AiAnalysisJob")
    log_of(SMALL_LOG)
    real, tries = ddl._send, []

    def overflown(session: Session, way: Way, gap: Gap | None, check_owner: Callable[[], None]) -> None:
        if "idx_userId_jobType_idempotencyKey" not in way.sql:
            return real(session, way, gap, check_owner)
        tries.append(gap)
        raise StatementFailed(way.sql, "MySQL error 1799: Creating index 'x' required more than 65536 bytes", "", 1799)

    monkeypatch.setattr(ddl, "_send", overflown)

    stopped = here(*RUN, "--set", "large_rows=5", "--accept", "space")

    assert stopped.code == 4, stopped.text
    assert "step 070_index_routing_and_keys: MySQL error 1799" in stopped.text
    assert f"(innodb_online_alter_log_max_size is {SMALL_LOG})" in stopped.text
    assert "this step changed nothing and those before it stand; run again at a quieter time" in stopped.text
    assert len(tries) == 1
    assert tries[0] is not None  # alone, outside any hold: only there do clients write meanwhile
    assert "idx_userId_jobType_idempotencyKey" not in job.create_table()
    assert job.triggers() == []
    assert job.rows("SELECT * FROM _rollout_owner") == []


def test_copies_and_builds_on_a_large_table_are_told_beforehand(here: Call, job: App, log_of: Callable[[int], None]) -> None:
    job.run("ANALYZE TABLE AiAnalysisJob")
    log_of(SMALL_LOG)

    large = here("check", PLAN, "--set", "large_rows=5")
    small = here("check", PLAN)

    assert large.code == 3, large.text
    assert "could not look [room] table AiAnalysisJob: is built anew by step 010_widen_job_type" in large.text
    assert "go on with --accept space" in large.text
    assert "innodb_online_alter_log_max_size keeps 0 MiB" in large.text
    assert (small.code, "[room]" in small.text) == (0, False), small.text


def test_a_server_that_turns_read_only_half_way_stops_the_run(here: Call, job: App, admin: App, monkeypatch: pytest.MonkeyPatch) -> None:
    real = verify._queries

    def then_read_only(*words: Any) -> None:
        admin.run("SET GLOBAL super_read_only = ON")
        real(*words)

    monkeypatch.setattr(verify, "_queries", then_read_only)
    try:
        stopped = here(*RUN)
    finally:
        admin.run("SET GLOBAL read_only = OFF")

    assert stopped.code == 4, stopped.text
    assert "the server is read-only now: a failover, or a managed server whose disk is full" in stopped.text
    monkeypatch.setattr(verify, "_queries", real)
    assert here(*RUN).code == 0
    assert set(phases(job).values()) == {"done"}


@pytest.mark.parametrize(("errno", "says"), [
    (1114, "the disk or the temporary folder is full"), (1021, "the disk or the temporary folder is full"),
    (1878, "the disk or the temporary folder is full"), (28, "the disk or the temporary folder is full"),
    (1799, "clients wrote more during the build than the server keeps"), (1226, "a limit of its own"),
    (1203, "takes no further connection"), (1040, "takes no further connection"), (1836, "is read-only now"), (1792, "is read-only now"),
    (3675, "the disk or the temporary folder is full"), (1026, "the disk or the temporary folder is full"),
    (1598, "cannot write its binary log"), (1290, "is read-only now"), (3, "the disk or the temporary folder is full"),
])
def test_each_trouble_stops_and_says_what_to_do(errno: int, says: str) -> None:
    with pytest.raises(Stopped, match=says) as stopped, server_trouble.stops("job"):
        raise StatementFailed("ALTER TABLE job", f"MySQL error {errno}: as the server says it", "", errno)

    assert stopped.value.exit_code == 4
    assert stopped.value.remedy.endswith("then run the same command again")


def test_before_a_run_has_begun_a_trouble_stops_too_and_a_closed_door_is_refused_as_ever() -> None:
    with pytest.raises(Stopped, match="is read-only now"), server_trouble.explains():
        raise StatementFailed("REPLACE INTO _rollout_owner", "MySQL error 1290", "", 1290)
    with pytest.raises(Unreachable), server_trouble.explains():
        raise Unreachable("server h:1/d", "MySQL error 2003: refused", "nothing was touched")


@pytest.mark.parametrize(("error", "expected"), [
    (StatementFailed("s", "r", "", 1290), True), (ConnectionLost("s", "r", "", 2013), True), (LockTimeout("s", "r", "", 1213), True),
    (Unreachable("s", "r"), True), (Stopped("s", "r"), True), (StatementFailed("s", "r", "", 1054), False), (Refused("s", "r"), False),
    (KeyError("k"), False)], ids=repr)
def test_what_the_same_command_can_go_on_from_is_an_interruption(error: Exception, expected: bool) -> None:
    assert server_trouble.interrupted(error) is expected


def test_errors_of_the_statement_itself_and_of_ours_pass() -> None:
    with pytest.raises(StatementFailed, match="1054"), server_trouble.stops("job"):
        raise StatementFailed("SELECT x", "MySQL error 1054: unknown column", "", 1054)
    with pytest.raises(ZeroDivisionError), server_trouble.stops("job"):
        raise ZeroDivisionError
    with pytest.raises(Stopped, match="what was done stands") as stopped, server_trouble.stops("job"):
        raise Unreachable("server h:1/d", "MySQL error 2003: refused", "nothing was touched")
    assert "nothing was touched" not in str(stopped.value)
