"""A real replica of a real server, as the check `replicas` sees it (cases C65, C107)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest
from sqlalchemy import make_url

from deploy.mysql_server import Server, provide
from steps import plan_loader, waits
from steps.checks import Finding, Look, replicas
from steps.mysql import Session
from steps.plan import Plan
from steps.target import Target
from tests.conftest import App

WHERE = "REPLICA_ONE"


@pytest.fixture(scope="module")
def replica(own: Server) -> Iterator[App]:
    """A client of a second server that follows the first from now on."""
    with provide() as second:
        source, client = App(Target(make_url(own.url)), ""), App(Target(make_url(second.url)), "")
        url, (log, position, *_) = make_url(own.url), source.rows("SHOW BINARY LOG STATUS")[0]
        client.run(f"CHANGE REPLICATION SOURCE TO SOURCE_HOST='{url.host}', SOURCE_PORT={url.port}, SOURCE_USER='{url.username}', "
                   f"SOURCE_PASSWORD='{url.password}', GET_SOURCE_PUBLIC_KEY=1, SOURCE_LOG_FILE='{log}', SOURCE_LOG_POS={position}")
        client.run("START REPLICA")
        until(lambda: source.value("SELECT COUNT(*) FROM performance_schema.threads WHERE PROCESSLIST_COMMAND LIKE 'Binlog Dump%%'"))
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(WHERE, make_url(second.url).set(database="mysql").render_as_string(hide_password=False))
            yield client
        client.run("STOP REPLICA")
        source.close()
        client.close()


def until(condition: Callable[[], object]) -> None:
    deadline = waits.now_s() + 20
    while not condition():
        assert waits.now_s() < deadline, "waited in vain"
        threading.Event().wait(0.05)


@pytest.fixture
def looked(job: App, own: Server, replica: App) -> Callable[..., list[Finding]]:
    """Run the check, with the replica named in the plan or not."""
    assert replica.connection.open
    shipped = plan_loader.load("ai_analysis_job")

    def look(*names: str, **settings: object) -> list[Finding]:
        plan: Plan = shipped.model_copy(update={"backfill": shipped.backfill.model_copy(update={"replicas": names, **settings})})
        target = Target(make_url(own.url).set(database=job.value("SELECT DATABASE()")))
        with Session(target) as session:
            return replicas.run(Look(session, target, plan))

    return look


def test_a_replica_that_keeps_up_is_no_finding(looked: Callable[..., list[Finding]]) -> None:
    assert looked(WHERE) == []


def test_a_replica_that_the_plan_does_not_name_is_told(looked: Callable[..., list[Finding]]) -> None:
    [finding] = looked()

    assert (finding.severity, finding.subject) == ("warn", "1 replicas follow this server")
    assert "root@127.0.0.1" in finding.what


def test_a_replica_that_stands_still_is_refused(looked: Callable[..., list[Finding]], replica: App) -> None:
    replica.run("STOP REPLICA SQL_THREAD")
    try:
        [finding] = looked(WHERE)
    finally:
        replica.run("START REPLICA SQL_THREAD")

    assert (finding.severity, finding.accept) == ("refuse", None)
    assert finding.what.startswith("stands still (receiver Yes, applier No)")


def test_a_replica_that_lags_is_told_and_waited_for(looked: Callable[..., list[Finding]], job: App, replica: App) -> None:
    schema = job.value("SELECT DATABASE()")
    until(lambda: replica.value(f"SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{schema}'"))
    job.run("CREATE TABLE later (n INT PRIMARY KEY)")
    until(lambda: replica.value(f"SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_NAME = 'later' AND TABLE_SCHEMA = '{schema}'"))
    replica.run(f"LOCK TABLES `{schema}`.later READ")
    try:
        job.run("INSERT INTO later VALUES (1)")
        findings: list[Finding] = []
        until(lambda: findings.extend(looked(WHERE, max_replica_lag_s=0.5)) or findings)
    finally:
        replica.run("UNLOCK TABLES")

    assert (findings[0].severity, findings[0].what.split(" s behind, over 0.5 s")[1:]) == (
        "warn", [": passes will wait until it has caught up"])


def test_a_server_that_follows_nobody_is_no_replica(looked: Callable[..., list[Finding]], monkeypatch: pytest.MonkeyPatch) -> None:
    with provide() as third:
        monkeypatch.setenv(WHERE, make_url(third.url).set(database="mysql").render_as_string(hide_password=False))

        [refused] = [finding for finding in looked(WHERE) if finding.severity == "refuse"]

    assert refused.what.startswith("follows no source")
