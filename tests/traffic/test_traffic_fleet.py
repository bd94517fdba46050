"""The fleet against a real MySQL: clean where all is well, and an alarm for every planted fault."""

import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from deploy.mysql_server import provide
from flows.demo.traffic import Fleet, FleetBrokenError, seed
from flows.demo.traffic.generations import PLAN_FOLDER, mapping
from flows.demo.traffic.session import Session

RUN_S = 2
FIRST_PASS = (
    "UPDATE AiAnalysisJob SET finishedAt = completedAt, internalErrorMessage = errorMessage, lifecycleStatus = "
)


@pytest.fixture(scope="module")
def server_url() -> Iterator[str]:
    with provide() as server:
        yield server.url


@pytest.fixture
def url(server_url: str) -> str:
    name = f"{server_url}traffic_{uuid.uuid4().hex[:8]}"
    seed(name, 300)
    return name


@pytest.fixture
def db(url: str) -> Iterator[Session]:
    session = Session(url, "test")
    yield session
    session.close()


@pytest.fixture
def fleet(url: str, tmp_path: Path) -> Iterator[Fleet]:
    with Fleet(url, tmp_path / "traffic") as fleet:
        yield fleet


def until(condition: Callable[[], object], seconds: float = 8) -> object:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.2)
    return condition()


def case(column: str, words: dict[str, str]) -> str:
    whens = " ".join(f"WHEN '{old}' THEN '{new}'" for old, new in words.items())
    return f"CASE {column} {whens} ELSE {column} END"


def checksum(url: str) -> list[object]:
    session = Session(url, "test")
    sums = [row["Checksum"] for row in session.rows("CHECKSUM TABLE AiAnalysisJob, User")]
    session.close()
    return sums


def add_new_columns(db: Session) -> None:
    for file in sorted(PLAN_FOLDER.glob("0*.up.sql")):
        db.run(file.read_text())
    db.run("ALTER TABLE AiAnalysisJob ADD COLUMN finishedAt DATETIME(3) NULL AFTER completedAt,"
           " ADD COLUMN internalErrorMessage TEXT NULL AFTER errorMessage")  # fmt: skip


def add_sync(db: Session) -> None:
    """A plain sync by triggers, only as good as this traffic needs it."""
    new = "SET NEW.lifecycleStatus = " + case("NEW.status", mapping().to_new)
    words = {**mapping().to_old, **dict.fromkeys(mapping().keep_old, "pending")}
    old = "SET NEW.status = " + case("NEW.lifecycleStatus", words)
    renames = [("completedAt", "finishedAt"), ("errorMessage", "internalErrorMessage")]
    body = f"IF NEW.lifecycleStatus = 'pending' THEN {new}; ELSE {old}; END IF;"
    body += "".join(f"SET NEW.{b} = COALESCE(NEW.{b}, NEW.{a}), NEW.{a} = NEW.{b};" for a, b in renames)
    db.run(f"CREATE TRIGGER sync_insert BEFORE INSERT ON AiAnalysisJob FOR EACH ROW BEGIN {body} END")
    keep = " AND ".join(f"NEW.lifecycleStatus <> '{state}'" for state in mapping().keep_old)
    moved = f"NEW.lifecycleStatus <> OLD.lifecycleStatus AND {keep}"
    body = f"IF NEW.status <> OLD.status THEN {new}; ELSEIF {moved} THEN {old}; END IF;"
    for a, b in renames:
        same = f"BINARY NEW.{a} <=> BINARY OLD.{a}"
        body += f"IF {same} THEN SET NEW.{a} = NEW.{b}; ELSE SET NEW.{b} = NEW.{a}; END IF;"
    db.run(f"CREATE TRIGGER sync_update BEFORE UPDATE ON AiAnalysisJob FOR EACH ROW BEGIN {body} END")


def test_seed_is_the_adrs_production_and_the_same_every_time(db: Session, url: str, server_url: str) -> None:
    nine = db.rows("SELECT * FROM AiAnalysisJob ORDER BY createdAt LIMIT 9")
    again = f"{server_url}traffic_{uuid.uuid4().hex[:8]}"
    seed(again, 300)

    assert [sum(row[column] is None for row in nine) for column in ("sessionId", "answerId")] == [9, 7]
    assert checksum(again) == checksum(url)
    assert db.rows("SELECT COUNT(*) AS n FROM AiAnalysisJob") == [{"n": 309}]
    assert db.rows("SELECT COUNT(*) AS n FROM AiAnalysisJob WHERE status = 'pending'") == [{"n": 6}]


def test_v0_alone_is_clean_and_the_judge_sees_a_row_changed_behind_its_back(fleet: Fleet, db: Session) -> None:
    fleet.start("v0", rate_per_s=60)
    fleet.label("soak")
    time.sleep(RUN_S)
    fleet.stop("v0")

    report = fleet.report()
    assert (report.failures, report.deadlocks, report.wrong_reads, report.run_twice) == (0, 0, 0, 0), report
    assert report.requests > 90
    assert report.acknowledged_writes > 25
    assert report.phases["soak"].requests > 80
    assert report.longest_request_ms > 0
    assert fleet.final_check() == []

    made = db.rows("SELECT id FROM AiAnalysisJob WHERE createdAt > UTC_TIMESTAMP() - INTERVAL 1 DAY LIMIT 2")
    victim, gone = (row["id"] for row in made)
    db.run("UPDATE AiAnalysisJob SET status = 'stolen' WHERE id = %s", victim)
    db.run("DELETE FROM AiAnalysisJob WHERE id = %s", gone)
    assert {(row.id, row.column) for row in fleet.final_check()} == {(victim, "status"), (gone, "id")}


def test_a_column_renamed_under_v0_is_counted_by_errno(fleet: Fleet, db: Session) -> None:
    fleet.start("v0")
    fleet.label("rename")
    db.run("ALTER TABLE AiAnalysisJob RENAME COLUMN completedAt TO finishedAt")
    assert until(lambda: fleet.report().phases.get("rename") and fleet.report().failed[1054] > 5)
    fleet.stop("v0")

    report = fleet.report()
    assert set(report.failed) == {1054}
    assert report.phases["rename"].failed[1054] > 5
    assert fleet.final_check() == []


def test_a_job_put_back_behind_the_back_is_run_twice(fleet: Fleet, db: Session) -> None:
    fleet.start("v0", rate_per_s=60)
    db.run("UPDATE AiAnalysisJob SET status = 'pending' WHERE status = 'completed' ORDER BY createdAt LIMIT 1")
    assert until(lambda: fleet.report().run_twice)
    fleet.stop("v0")

    assert (fleet.report().run_twice, fleet.report().failures) == (1, 0)


def test_v0_and_v1_side_by_side_are_clean_while_the_sync_is_right(fleet: Fleet, db: Session) -> None:
    add_new_columns(db)
    add_sync(db)
    db.run(FIRST_PASS + case("status", mapping().to_new))
    fleet.start("v0")
    fleet.start("v1")
    time.sleep(RUN_S)
    fleet.stop("v0")
    fleet.stop("v1")

    report = fleet.report()
    assert (dict(report.failed), report.deadlocks, report.wrong_reads, report.run_twice) == ({}, 0, 0, 0), report
    assert fleet.final_check() == []
    assert db.rows("SELECT COUNT(*) AS n FROM AiAnalysisJob WHERE attemptCount > 0")[0]["n"] > 0


def test_v1_without_sync_and_first_pass_runs_history_again(fleet: Fleet, db: Session) -> None:
    add_new_columns(db)
    fleet.start("v0", clients=3)
    fleet.start("v1", clients=3)
    assert until(lambda: fleet.report().run_twice and fleet.report().wrong_reads)
    fleet.stop("v1")
    fleet.stop("v0")

    assert "lifecycleStatus" in {row.column for row in fleet.final_check()}
    assert fleet.report().failures == 0


def test_a_lost_server_connection_is_a_failure_and_its_write_either_or(fleet: Fleet, db: Session) -> None:
    fleet.start("v0", rate_per_s=60)
    for _ in range(8):
        for row in db.rows("SHOW PROCESSLIST"):
            if row["db"] and row["Id"] != db.rows("SELECT CONNECTION_ID() AS me")[0]["me"]:
                db.run("KILL %s", row["Id"])
        time.sleep(0.1)
    fleet.stop("v0")

    assert fleet.report().failures > 0
    assert fleet.final_check() == []


def test_a_fleet_without_tables_says_why(server_url: str, tmp_path: Path) -> None:
    with Fleet(server_url + "mysql", tmp_path) as fleet, pytest.raises(FleetBrokenError, match="1146"):
        fleet.start("v0")
