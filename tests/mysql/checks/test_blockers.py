"""Who holds the table, its relatives, or a backup lock at this moment."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from steps.checks import Finding, blockers
from steps.mysql import Session
from steps.target import Target

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
    assert "transaction open for 0 s" in finding.what
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
    assert "LOCK TABLES or DDL" in finding.what


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
