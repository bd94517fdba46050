"""Replicas, readers of the binary log and its format (cases C36, C65, C66)."""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Iterator

import pymysql
import pytest
from sqlalchemy import make_url

from deploy.mysql_server import Server
from steps import plan_loader, waits
from steps.checks import Look, replication
from steps.mysql import Session
from steps.plan import Plan
from steps.target import Target
from tests.cli.calling import DEPLOYED, PLAN, Call, standing
from tests.conftest import App

RUN = ("run", PLAN, "--no-prefect", "--by", "ann", "--reason", "it is due", "--through", "pre_deploy")
DUMP, FIRST_EVENT = 0x12, 4


@pytest.fixture
def read_the_log(own: Server, admin: App) -> Iterator[Callable[..., None]]:
    """Clients that follow the binary log, as a change-data-capture tool does; *program* and more are their attributes."""
    opened = []

    def follow(program: str, role: str | None = None) -> None:
        url = make_url(own.url)
        client = pymysql.connect(host=url.host, port=url.port or 3306, user=url.username, password=str(url.password), program_name=program,
                                 defer_connect=True)
        if role:
            client._connect_attrs["_client_role"] = role  # type: ignore[attr-defined]  # as the server's own replicas say it
        client.connect()
        with client.cursor() as cursor:
            cursor.execute("SET @source_binlog_checksum = 'NONE', @master_binlog_checksum = 'NONE'")
        log = str(admin.rows("SHOW BINARY LOGS")[0][0])
        client._execute_command(DUMP, struct.pack("<IHI", FIRST_EVENT, 0, 4000 + len(opened)) + log.encode())  # type: ignore[attr-defined]
        opened.append(client)
        deadline = waits.now_s() + 10
        while followers(admin) < len(opened):
            assert waits.now_s() < deadline, "nobody follows"
            threading.Event().wait(0.01)

    yield follow
    for client in opened:
        admin.run(f"KILL {client.thread_id()}")
    while followers(admin):
        threading.Event().wait(0.01)


def followers(admin: App) -> int:
    return int(admin.value("SELECT COUNT(*) FROM performance_schema.threads WHERE PROCESSLIST_COMMAND LIKE 'Binlog Dump%%'"))


def checked(job: App, own: Server, plan: Plan) -> list[tuple[str, str | None, bool]]:
    target = Target(make_url(own.url).set(database=job.value("SELECT DATABASE()")))
    with Session(target) as session:
        return [(f.severity, f.accept, f.could_not_look) for f in replication.run(Look(session, target, plan))]


def test_a_reader_that_is_no_replica_needs_an_acknowledgement(here: Call, job: App, read_the_log: Callable[..., None]) -> None:
    read_the_log("debezium")
    before = standing(job)

    refused = here(*RUN)

    assert refused.code == 3, refused.text
    assert "[replication] readers of the binary log: 1 follow it: connection" in refused.text
    assert "(root@127.0.0.1); the plan adds columns between others and renames some, and binlog_row_metadata is MINIMAL" in refused.text
    assert standing(job) == before
    assert here("check", PLAN, "--accept", "cdc").code == 0


def test_a_replica_follows_such_a_change_and_is_no_finding(here: Call, read_the_log: Callable[..., None]) -> None:
    read_the_log("mysqld", "binary_log_listener")

    answer = here("check", PLAN)

    assert (answer.code, "[replication]" in answer.text) == (0, False), answer.text


def test_a_reader_minds_only_plans_that_move_columns(job: App, own: Server, plan: Plan, read_the_log: Callable[..., None]) -> None:
    read_the_log("debezium")
    text = "ALTER TABLE AiAnalysisJob ADD COLUMN z INT NULL"
    at_the_end = plan.model_copy(update={"sync": (), "cleanup": plan.cleanup.model_copy(update={"drop": ()}), "pre_deploy":
                                         plan.pre_deploy.model_copy(update={"step": plan.pre_deploy.step[:1], "leaf": ()}),
                                         "sql_text": {f"{plan.pre_deploy.step[0].name}.up.sql": text}})
    between = at_the_end.model_copy(update={"sql_text": dict.fromkeys(at_the_end.sql_text, f"{text} AFTER id")})

    assert checked(job, own, at_the_end) == []
    assert checked(job, own, between) == [("refuse", "cdc", False)]


def test_a_replica_is_refused_though_it_can_be_written_to(here: Call, job: App, admin: App) -> None:
    admin.run("CHANGE REPLICATION SOURCE TO SOURCE_HOST = 'primary.example.org', SOURCE_PORT = 3307")
    before = standing(job)
    try:
        refused = here(*RUN)
        accepted = here("check", PLAN, "--accept", "replica")
    finally:
        admin.run("RESET REPLICA ALL")

    assert refused.code == 3, refused.text
    assert "is a replica of primary.example.org:3307" in refused.text
    assert standing(job) == before
    assert accepted.code == 0, accepted.text


@pytest.mark.parametrize(("variable", "usual", "odd", "said"), [
    ("binlog_format", "ROW", "STATEMENT", "binlog_format is STATEMENT: every pass would fail with error 1665"),
    ("read_only", "OFF", "ON", "is read-only (read_only ON)"),
    ("super_read_only", "OFF", "ON", "is read-only (read_only, super_read_only ON)"),
    ("transaction_read_only", "OFF", "ON", "is read-only (transaction_read_only ON)"),
])
def test_a_server_that_would_refuse_our_writes_is_refused(here: Call, job: App, admin: App, variable: str, usual: str, odd: str,
                                                          said: str) -> None:
    before = standing(job)
    admin.run(f"SET GLOBAL {variable} = {odd}")
    try:
        refused = here(*RUN)
    finally:
        admin.run(f"SET GLOBAL {variable} = {usual}")
        admin.run("SET GLOBAL read_only = OFF")

    assert refused.code == 3, refused.text
    assert said in refused.text
    assert standing(job) == before


def test_the_mixed_format_carries_a_whole_run(here: Call, admin: App) -> None:
    admin.run("SET GLOBAL binlog_format = MIXED")
    try:
        answer = here("run", PLAN, "--no-prefect", "--by", "ann", "--reason", "it is due", *DEPLOYED)
    finally:
        admin.run("SET GLOBAL binlog_format = ROW")

    assert answer.code == 0, answer.text


def test_a_log_that_is_kept_too_briefly_is_told_when_somebody_reads_it(job: App, own: Server, admin: App,
                                                                      read_the_log: Callable[..., None]) -> None:
    plan = plan_loader.load(PLAN)
    read_the_log("mysqld", "binary_log_listener")
    kept = admin.value("SELECT @@global.binlog_expire_logs_seconds")
    admin.run("SET GLOBAL binlog_expire_logs_seconds = 600")
    try:
        assert checked(job, own, plan) == [("warn", None, False)]
    finally:
        admin.run(f"SET GLOBAL binlog_expire_logs_seconds = {kept}")


def test_a_group_with_several_primaries_is_refused_only_while_it_has_members() -> None:
    class Members:
        def __init__(self, online: int) -> None:
            self.online = online

        def value(self, _sql: str) -> int:
            return self.online

    several = {"group_replication_single_primary_mode": "OFF"}

    [finding] = replication.multi_primary(Members(3), several)  # type: ignore[arg-type]
    assert (finding.severity, finding.accept, finding.subject) == ("refuse", None, "group of 3 servers")
    assert replication.multi_primary(Members(0), several) == []  # type: ignore[arg-type]
    assert replication.multi_primary(Members(3), {"group_replication_single_primary_mode": "ON"}) == []  # type: ignore[arg-type]
