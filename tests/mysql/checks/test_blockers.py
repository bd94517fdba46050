"""Who holds the table, its relatives, or a backup lock at this moment."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from steps import snapshots
from steps.checks import Finding, blockers
from steps.errors import StatementFailed
from steps.mysql import Session
from steps.target import Target
from tests.mysql.conftest import Aside, Clients, until

Run = Callable[..., list[Finding]]


@pytest.fixture
def other(database: Target) -> Iterator[Session]:
    with Session(database) as opened:
        yield opened


@pytest.fixture
def everything_is_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blockers, "OLD_S", 0)


def test_nobody_there_is_clean(found: Run) -> None:
    assert found(blockers) == []


def test_ordinary_young_transactions_are_no_finding(found: Run, other: Session) -> None:
    other.run("START TRANSACTION")
    other.query("SELECT * FROM AiAnalysisJob LIMIT 1")

    assert found(blockers) == []


@pytest.mark.usefixtures("everything_is_old")
def test_an_old_transaction_on_the_table_is_refused_by_name(found: Run, other: Session) -> None:
    other.run("START TRANSACTION")
    other.query("SELECT * FROM AiAnalysisJob LIMIT 1")

    [finding] = found(blockers)

    assert (finding.severity, finding.subject, finding.accept) == ("refuse", "table AiAnalysisJob", "blockers")
    assert f"is held by connection {other.connection_id} (root@" in finding.what
    assert "transaction open since 2" in finding.what
    assert "last statement " in finding.what
    assert "SELECT" not in finding.what
    assert f"KILL {other.connection_id}" in finding.remedy
    assert "--accept blockers" in finding.remedy


@pytest.mark.usefixtures("everything_is_old")
@pytest.mark.parametrize("relative", ["User", "AiJobChild"])
def test_an_old_transaction_on_a_relative_is_a_warning(found: Run, session: Session, other: Session, relative: str) -> None:
    session.run("CREATE TABLE AiJobChild (id INT PRIMARY KEY, jobId VARCHAR(191) COLLATE utf8mb4_unicode_ci, "
                "FOREIGN KEY (jobId) REFERENCES AiAnalysisJob (id))")
    other.run("START TRANSACTION")
    other.query(f"SELECT * FROM `{relative}` LIMIT 1")

    [finding] = found(blockers)

    assert (finding.severity, finding.subject, finding.accept) == ("warn", f"table {relative}", None)


def test_a_young_lock_tables_is_a_warning(found: Run, other: Session) -> None:
    other.run("LOCK TABLES AiAnalysisJob READ")

    [finding] = found(blockers)

    assert (finding.severity, finding.accept) == ("warn", None)
    assert "LOCK TABLES" in finding.what


def test_a_running_backup_is_refused(found: Run, other: Session) -> None:
    other.run("LOCK INSTANCE FOR BACKUP")
    try:
        findings = found(blockers)
    finally:
        other.run("UNLOCK INSTANCE")

    [finding] = [f for f in findings if f"connection {other.connection_id} " in f.what]
    assert (finding.severity, finding.accept) == ("refuse", "blockers")
    assert "holds the backup lock" in finding.what
    assert "run again after it" in finding.remedy


@pytest.mark.usefixtures("everything_is_old")
def test_without_process_idle_time_stands_for_age(found: Run, other: Session, account: Callable[..., Session]) -> None:
    other.run("START TRANSACTION")
    other.query("SELECT * FROM AiAnalysisJob LIMIT 1")

    [finding] = found(blockers, by=account("SELECT ON {schema}.*", "SELECT ON performance_schema.*"))

    assert finding.severity == "refuse"
    assert "sleep for " in finding.what


def test_hidden_metadata_locks_are_could_not_look(found: Run, account: Callable[..., Session]) -> None:
    [finding] = found(blockers, by=account("SELECT ON {schema}.*"))

    assert (finding.severity, finding.accept, finding.could_not_look) == ("warn", None, True)


def test_unrecorded_metadata_locks_are_could_not_look(found: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blockers.server, "sees_metadata_locks", lambda _session: False)

    [finding] = found(blockers)

    assert finding.could_not_look


@pytest.fixture
def prepared(other: Session, database: Target) -> Iterator[str]:
    """An XA transaction that has written the table, was prepared, and whose session is gone; ended at last."""
    gtrid = uuid.uuid4().hex
    other.run(f"XA START '{gtrid}','b',7")
    other.run("INSERT INTO AiAnalysisJob (id, userId, jobType, updatedAt) VALUES ('x', 'u1', 't', UTC_TIMESTAMP(3))")
    other.run(f"XA END '{gtrid}','b',7")
    other.run(f"XA PREPARE '{gtrid}','b',7")
    other.close()
    yield gtrid
    with Session(database) as session, suppress(StatementFailed):  # a test may have ended it
        session.run(f"XA ROLLBACK '{gtrid}','b',7")


def test_a_prepared_xa_transaction_without_a_session_is_refused_with_its_id(found: Run, prepared: str, session: Session) -> None:
    [finding] = found(blockers)

    assert (finding.severity, finding.subject, finding.accept) == ("refuse", "table AiAnalysisJob", "blockers")
    [identity] = re.findall(r"X'[0-9a-f]+',X'[0-9a-f]*',\d+", finding.what)
    assert identity == f"X'{prepared.encode().hex()}',X'62',7"
    session.run(f"XA ROLLBACK {identity}")
    assert found(blockers) == []


@pytest.mark.usefixtures("prepared")
def test_without_xa_recover_admin_the_prepared_transaction_is_seen_without_its_id(found: Run, account: Callable[..., Session]) -> None:
    by = account("SELECT ON {schema}.*", "SELECT ON performance_schema.*", "PROCESS ON *.*")

    [finding] = found(blockers, by=by)

    assert finding.severity == "refuse"
    assert "XA RECOVER CONVERT XID names it" in finding.remedy


def test_ddl_that_waits_for_the_table_is_told_as_a_waiter(found: Run, database: Target, other: Session, clients: Clients) -> None:
    other.run("START TRANSACTION")
    other.query("SELECT * FROM AiAnalysisJob LIMIT 1")
    altering = Aside(clients(), "ALTER TABLE AiAnalysisJob ADD COLUMN n INT")
    until(lambda: other.query("SELECT 1 FROM performance_schema.metadata_locks WHERE LOCK_STATUS = 'PENDING' "
                              "AND OBJECT_SCHEMA = DATABASE()"))

    findings = found(blockers)
    other.run("ROLLBACK")

    assert [finding.severity for finding in findings] == ["warn"]
    assert "DDL" in findings[0].what
    assert altering.join().error is None


def test_an_old_snapshot_that_never_touched_the_table_is_a_warning(found: Run, session: Session, other: Session,
                                                                          monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blockers, "OLD_SNAPSHOT_S", -1)
    other.run("CREATE TABLE Elsewhere (id INT PRIMARY KEY)")
    other.run("START TRANSACTION WITH CONSISTENT SNAPSHOT")
    other.query("SELECT COUNT(*) FROM Elsewhere")
    until(lambda: other.query("SELECT SLEEP(0.15)") and snapshots.older_than(session, -1))  # InnoDB's own cache of transactions

    findings = [f for f in found(blockers) if f"connection {other.connection_id} " in f.what or "more older" in f.what]

    assert [finding.severity for finding in findings] == ["warn"]
    assert "1412" in findings[0].what


def test_purge_that_is_behind_is_a_warning(found: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blockers.snapshots, "history_length", lambda _session: 1_000_001)

    [finding] = found(blockers)

    assert (finding.severity, "1000001" in finding.what) == ("warn", True)
