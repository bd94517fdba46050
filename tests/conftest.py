"""One real MySQL per session, one schema per test. A missing server fails these tests; nothing is skipped."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest
from sqlalchemy import make_url

from deploy.mysql_server import Server, provide, running
from steps import masking, plan_loader, rehearsal, waits
from steps.plan import Plan
from steps.rollout import Person, Rollout, opened
from steps.target import Target, target_of
from tests.remembered import remembered
from tests.tls import one_tls_context  # noqa: F401  # used by being here

HERE = Path(__file__).parent
SHIPPED = Path(plan_loader.SHIPPED) / "ai_analysis_job"
LONGEST_SLEEP_S = 0.01
LONGEST_FIRST = ("team", "browser", "faults", "traffic", "flows", "servers", "cli", "mysql_server", "packaging", "deploys")
STORIES = ("browser", "faults/test_kill.py", "faults/test_kill_live.py", "fuzz", "servers", "team", "traffic", *(
    f"flows/test_{name}.py" for name in (
        "artifacts", "audit_question", "automations", "cockpit", "events", "hearing", "prefect_away", "prefect_cancel", "prisma_comparison",
        "repository", "second_signal", "secrecy", "suspended", "telling")))
"""What takes minutes: servers of a test's own, processes that import Prefect, a browser, real applications; for `make test-stories`."""
BY_COMMAND = ("deploy.command=true", "deploy.rollback_command=true")
MEMORY, ROOMY_BYTES = Path("/dev/shm"), 6 * 2**30  # noqa: S108  # a RAM disk, by its name on Linux

if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOMY_BYTES:  # a test's data need not outlive it, and DDL waits for the disk
    os.environ.setdefault(running.FOLDER, str(MEMORY))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The folders whose modules take longest come first, so that the workers end together; stories are marked as such."""
    def place(item: pytest.Item) -> int:
        folder = item.path.relative_to(HERE).parts[0]
        return LONGEST_FIRST.index(folder) if folder in LONGEST_FIRST else len(LONGEST_FIRST)

    for item in items:
        where = item.path.relative_to(HERE)
        if where.parts[0] in STORIES or where.as_posix() in STORIES:
            item.add_marker("story")
    items.sort(key=place)


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A MySQL server for this session."""
    with provide() as found:
        yield found


@pytest.fixture(autouse=True)
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Waits keep their order and number but cost nearly nothing."""
    seconds: list[float] = []
    real = waits.sleep_s

    def short(wanted_s: float) -> None:
        seconds.append(wanted_s)
        real(min(wanted_s, LONGEST_SLEEP_S))

    monkeypatch.setattr(waits, "sleep_s", short)
    return seconds


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Secrets of one test are not masked in another; no URL leaks in from the outside."""
    monkeypatch.setattr(masking, "_secrets", set())
    monkeypatch.delenv("ROLLOUT_DATABASE_URL", raising=False)


@pytest.fixture
def remembered_rehearsals(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same table is not rehearsed again with the same plan; for tests that are not about rehearsals."""
    monkeypatch.setattr(rehearsal, "rehearse", remembered)


class App:
    """A plain client of the test's schema, as an application has one: autocommit, no settings of ours."""

    def __init__(self, target: Target, database: str | None = None) -> None:
        url = target.url
        self.connection = pymysql.connect(host=url.host, port=url.port or 3306, user=url.username, password=str(url.password or ""),
                                          database=database if database is not None else url.database, autocommit=True, charset="utf8mb4")

    def run(self, sql: str, *values: Any) -> int:
        with self.connection.cursor() as cursor:
            return int(cursor.execute(sql, values or None))

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        with self.connection.cursor() as cursor:
            cursor.execute(sql, values or None)
            return list(cursor.fetchall())

    def value(self, sql: str, *values: Any) -> Any:
        found = self.rows(sql, *values)
        return found[0][0] if found else None

    def create_table(self, table: str = "AiAnalysisJob") -> str:
        return str(self.rows(f"SHOW CREATE TABLE `{table}`")[0][1])

    def triggers(self) -> list[str]:
        return [str(row[0]) for row in self.rows("SHOW TRIGGERS")]

    def close(self) -> None:
        try:
            self.connection.close()
        except pymysql.err.Error:
            return


def statements(text: str) -> list[str]:
    """The statements of a file that has only `--` comments and plain semicolons."""
    return [part for part in re.sub(r"--.*", "", text).split(";") if part.strip()]


def make_old_database(app: App) -> None:
    """The ADR's old tables in the schema that *app* uses, and one user."""
    for statement in statements((SHIPPED / "baseline.sql").read_text()):
        app.run(statement)
    app.run("INSERT INTO `User` (id, email, createdAt, updatedAt) VALUES ('u1', 'u1@example.org', '2026-01-01', '2026-01-01')")


@pytest.fixture
def empty(server: Server) -> Iterator[Target]:
    """A schema of this test's own, empty, removed afterwards."""
    name = f"t_{uuid.uuid4().hex[:20]}"
    base = make_url(server.url)
    target = Target(base.set(database=name))
    masking.remember(str(base.password) if base.password else None)
    admin = App(target, "")
    admin.run(f"CREATE DATABASE `{name}` CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci")  # not the table's, on purpose
    yield target
    admin.run(f"DROP DATABASE IF EXISTS `{name}`")
    admin.close()


@pytest.fixture(scope="module")
def old(server: Server) -> Iterator[Target]:
    """A schema of a module's own with the old database and nine jobs, removed afterwards."""
    target = Target(make_url(server.url).set(database=f"t_{uuid.uuid4().hex[:20]}"))
    admin = App(target, "")
    admin.run(f"CREATE DATABASE `{target.schema}` CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci")
    app = App(target)
    make_old_database(app)
    add_jobs(app, 9)
    app.close()
    yield target
    admin.run(f"DROP DATABASE `{target.schema}`")
    admin.close()


@pytest.fixture
def database(empty: Target) -> Target:
    """A schema with the ADR's old database and no rows but one user."""
    app = App(empty)
    make_old_database(app)
    app.close()
    return empty


@pytest.fixture
def app(database: Target) -> Iterator[App]:
    """A client of the test's schema."""
    client = App(database)
    yield client
    client.close()


STATUSES = ("pending", "processing", "completed", "failed")


@pytest.fixture
def seeded(app: App) -> App:
    """Nine jobs in all four old states, with an error message or a completion time where they belong."""
    add_jobs(app, 9)
    return app


def add_jobs(app: App, count: int, prefix: str = "c") -> None:
    """*count* jobs as the old application wrote them, the same each time: then their rehearsal can be remembered."""
    with app.connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO AiAnalysisJob (id, userId, jobType, status, errorMessage, completedAt, createdAt, queuedAt, updatedAt) "
            "VALUES (%s, 'u1', 'active-recall', %s, %s, %s, '2026-01-02', '2026-01-02', '2026-01-02 03:04:05.678')",
            [(f"{prefix}{n:06}", STATUSES[n % 4], f"boom é {n}" if n % 4 == 3 else None,
              "2026-01-01 00:00:00.123" if n % 4 > 1 else None) for n in range(count)])


@pytest.fixture
def plan() -> Plan:
    """The shipped plan, deployed by a command that does nothing."""
    return plan_loader.load("ai_analysis_job", BY_COMMAND)


@pytest.fixture
def rollouts(database: Target, plan: Plan) -> Iterator[Callable[..., Rollout]]:
    """Makes a Rollout on the test's schema, as often as asked; all are closed at the end."""
    standing = []

    def make(plan: Plan = plan, accepted: frozenset[str] = frozenset(), deployed_by: str | None = None) -> Rollout:
        context = opened(plan, database, Person("tester", "because", deployed_by), accepted)
        rollout = context.__enter__()
        standing.append(context)
        return rollout

    yield make
    for context in reversed(standing):
        context.__exit__(None, None, None)


@pytest.fixture
def url(database: Target) -> str:
    """The test's schema as the command line takes it."""
    return target_of(database.url.render_as_string(hide_password=False)).url.render_as_string(hide_password=False)

@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Chain and key of loopback, signed by nobody that anybody knows."""
    folder = tmp_path_factory.mktemp("tls")
    chain, key = str(folder / "chain.pem"), str(folder / "key.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                    "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", chain],
                   check=True, capture_output=True)
    return chain, key


LINES_OF_A_FAILURE = 60


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Why a test that was tried once more (`.ci/run`) had failed the first time: what passes then is told all the same."""
    for report in terminalreporter.stats.get("rerun", []):
        terminalreporter.section(f"failed once: {report.nodeid}", sep="_")
        terminalreporter.line("\n".join(str(report.longreprtext).splitlines()[-LINES_OF_A_FAILURE:]))
