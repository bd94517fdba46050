"""A real replica of a real server, as the check `replicas` sees it (cases C65, C107)."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator

import pytest
from sqlalchemy import make_url

from deploy.mysql_server import Server, provide
from steps import plan_loader, waits
from steps.checks import Finding, Look, replicas
from steps.ledger import Ledger
from steps.mysql import Session
from steps.plan import Plan
from steps.replicas import watched
from steps.target import Target
from tests.conftest import App

WHERE = "REPLICA_ONE"


@pytest.fixture(scope="module")
def replica(own: Server) -> Iterator[App]:
    """A client of a second server that follows the first from now on."""
    with provide(options=("--report-host=127.0.0.1",)) as second:
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

    def look(*names: str, account: str = "", **settings: object) -> list[Finding]:
        plan: Plan = shipped.model_copy(update={"backfill": shipped.backfill.model_copy(update={"replicas": names, **settings})})
        url = make_url(own.url).set(database=job.value("SELECT DATABASE()"))
        target = Target(url.set(username=account, password="x") if account else url)
        with Session(target) as session:
            return replicas.run(Look(session, target, plan))

    return look


def test_a_replica_that_keeps_up_is_no_finding(looked: Callable[..., list[Finding]]) -> None:
    assert looked(WHERE) == []


def test_a_replica_that_is_neither_named_nor_lets_us_in_is_told(looked: Callable[..., list[Finding]]) -> None:
    for settings in ({}, {"find_replicas": False}):  # it has another password
        [finding] = looked(**settings)

        assert (finding.severity, finding.subject) == ("warn", "1 replicas follow this server")
        assert "root@127.0.0.1" in finding.what


def test_a_found_replica_that_lets_us_in_is_minded_by_a_pass_until_it_stands_still(job: App, own: Server, replica: App,
                                                                                    looked: Callable[..., list[Finding]]) -> None:
    account = f"both{uuid.uuid4().hex[:12]}"
    job.run(f"CREATE USER {account}@'%%' IDENTIFIED WITH caching_sha2_password BY 'x'")
    job.run(f"GRANT ALL ON *.* TO {account}@'%%'")
    until(lambda: replica.value(f"SELECT COUNT(*) FROM mysql.user WHERE User = '{account}' AND Super_priv = 'Y'"))
    assert looked(account=account) == []

    schema = job.value("SELECT DATABASE()")
    target = Target(make_url(own.url).set(database=schema, username=account, password="x"))
    told: list[str] = []
    with Session(target) as session:
        ledger = Ledger(session, schema, "AiAnalysisJob", "ai_analysis_job")
        ledger.create()
        until(lambda: replica.value(f"SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{schema}' "
                                    "AND TABLE_NAME = '_rollout_pace'"))
        settings = plan_loader.load("ai_analysis_job").backfill
        [found] = watched(ledger, "first", settings, told.append)
        beat(job)
        until(lambda: found.read().problem == "" and found.read().value == 0)
        replica.run("STOP REPLICA SQL_THREAD")
        try:
            beat(job, later_s=60)
            assert found.read().value == pytest.approx(60, abs=1)
        finally:
            replica.run("START REPLICA SQL_THREAD")
        found.close()

        named = settings.model_copy(update={"replicas": (WHERE,)})
        assert [one.address.label for one in watched(ledger, "first", named, told.append)] == [WHERE]
        assert watched(ledger, "first", settings.model_copy(update={"mode": "full_speed"}), told.append) == []
    assert told == []


def test_a_found_replica_that_does_not_let_us_in_is_told_once_and_not_minded(job: App, own: Server, replica: App) -> None:
    assert replica.connection.open
    told: list[str] = []
    with Session(Target(make_url(own.url).set(database=job.value("SELECT DATABASE()")))) as session:
        ledger = Ledger(session, str(session.schema), "AiAnalysisJob", "ai_analysis_job")
        settings = plan_loader.load("ai_analysis_job").backfill
        minded = [watched(ledger, "first", settings, told.append) for _ in range(2)]

    assert minded == [[], []]
    assert len(told) == 1
    assert "cannot be asked (MySQL error 1045" in told[0]


def beat(job: App, later_s: int = 0) -> None:
    """The pass's heartbeat, as the throttle writes it."""
    job.run("REPLACE INTO _rollout_pace VALUES (DATABASE(), 'AiAnalysisJob', 'ai_analysis_job', 'first', 0, 0, 0, 0, NULL, "
            f"UTC_TIMESTAMP(3) + INTERVAL {later_s} SECOND)")


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
