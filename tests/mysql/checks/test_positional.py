"""Writers that new columns break although they name none."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from steps.checks import Finding, positional
from steps.mysql import Session
from tests.conftest import App

Run = Callable[..., list[Finding]]
VALUES = "('x1', 'u1', 'x', NULL, NULL, 'pending', 0, NULL, NULL, NULL, NULL, NOW(3), NOW(3))"


def test_writers_that_name_their_columns_are_clean(found: Run, session: Session) -> None:
    session.run("CREATE PROCEDURE p() INSERT INTO AiAnalysisJob (id, userId, jobType, updatedAt) SELECT UUID(), id, 'x', NOW() FROM `User`")
    session.run("CREATE PROCEDURE q() SELECT * FROM AiAnalysisJob")

    assert found(positional) == []


def test_a_digest_is_told_by_its_hash_and_shows_no_value(found: Run, session: Session, app: App) -> None:
    app.run("TRUNCATE performance_schema.events_statements_summary_by_digest")  # full, it takes no new ones
    app.run(f"INSERT INTO AiAnalysisJob VALUES {VALUES}")
    app.run("REPLACE INTO AiAnalysisJob (id, userId, jobType, updatedAt) VALUES ('x1', 'u1', 'secret', NOW(3))")

    by_position, replaced = found(positional)

    assert {(f.severity, f.subject, f.accept) for f in (by_position, replaced)} == {("warn", "table AiAnalysisJob", None)}
    assert by_position.what.startswith("statement ")
    assert by_position.what.endswith("they write the table without naming columns and fail with 1136 as soon as a column is added")
    assert "REPLACE rows" in replaced.what
    assert not any("secret" in text for f in (by_position, replaced) for text in (f.what, f.remedy))


@pytest.mark.parametrize(("program", "kind"), [
    (f"CREATE PROCEDURE p() INSERT INTO AiAnalysisJob VALUES {VALUES}", "without naming columns"),
    ("CREATE PROCEDURE p() INSERT INTO arch SELECT * FROM AiAnalysisJob", "copy the table with SELECT *"),
    ("CREATE EVENT p ON SCHEDULE EVERY 1 YEAR DO REPLACE AiAnalysisJob SET id = 'a', userId = 'u1'", "REPLACE rows"),
    ("CREATE TRIGGER p AFTER UPDATE ON `User` FOR EACH ROW INSERT IGNORE INTO AiAnalysisJob SELECT * FROM AiRuntimeJob", "without naming"),
])
def test_stored_programs_are_told_by_name(found: Run, session: Session, program: str, kind: str) -> None:
    session.run(program)

    [finding] = found(positional)

    assert kind in finding.what
    assert finding.what.split(":")[0].endswith(".p")


def test_once_all_columns_stand_nothing_is_told(found: Run, session: Session, climb: Callable[..., None]) -> None:
    session.run("CREATE PROCEDURE p() INSERT INTO arch SELECT * FROM AiAnalysisJob")
    climb("020_add_identity_and_routing", "030_add_lifecycle", "040_add_input_and_output_versions", "050_add_credentials_and_model",
          "060_add_errors_and_output")
    session.run("ALTER TABLE AiAnalysisJob ADD COLUMN finishedAt DATETIME(3) NULL, ADD COLUMN internalErrorMessage TEXT NULL")

    assert found(positional) == []


def test_digests_that_may_not_be_read_are_could_not_look(found: Run, account: Callable[..., Session]) -> None:
    [finding] = found(positional, by=account("ALL ON {schema}.*"))

    assert (finding.severity, finding.subject, finding.could_not_look) == ("warn", "statement digests", True)
