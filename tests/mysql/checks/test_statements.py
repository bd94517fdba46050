"""Steps that run and still break the application or its values."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from steps.checks import Finding, statements
from steps.mysql import Session
from steps.plan import Plan

Run = Callable[..., list[Finding]]
Stepped = Callable[..., Plan]


def test_the_shipped_plan_is_clean(found: Run) -> None:
    assert found(statements) == []


@pytest.mark.parametrize("up", ["RENAME COLUMN `completedAt` TO `doneAt`", "CHANGE completedAt doneAt DATETIME(3) NULL",
                                "CHANGE COLUMN `completedAt` `doneAt` DATETIME(3) NULL"])
def test_a_rename_hidden_in_a_step_is_sent_to_a_rename_step(found: Run, stepped: Stepped, up: str) -> None:
    [finding] = found(statements, stepped(up))

    assert (finding.severity, finding.subject, finding.accept) == ("refuse", "column AiAnalysisJob.completedAt", None)
    assert finding.what.startswith("is renamed to doneAt inside step 010_widen_job_type")
    assert 'rename = { from = "completedAt", to = "doneAt" }' in finding.remedy


def test_a_drop_belongs_into_cleanup(found: Run, stepped: Stepped) -> None:
    [finding] = found(statements, stepped("DROP COLUMN `answerId`"))

    assert (finding.severity, finding.subject, finding.accept) == ("refuse", "column AiAnalysisJob.answerId", None)
    assert finding.remedy == "leave it to cleanup.drop"


def test_dropped_and_added_again_loses_the_values(found: Run, stepped: Stepped) -> None:
    [finding] = found(statements, stepped("DROP COLUMN answerId, ADD COLUMN answerId VARCHAR(255) NULL"))

    assert "dropped and added again" in finding.what


@pytest.mark.parametrize(("made", "up", "why"), [
    ("INT UNSIGNED NULL", "INT NULL", "int unsigned becomes int: fewer integers"),
    ("BIGINT NULL", "INT NULL", "bigint becomes int: fewer integers"),
    ("DECIMAL(10, 2) NULL", "DECIMAL(10, 3) NULL", "decimal(10,2) becomes decimal(10,3): fewer numbers"),
    ("DATETIME(3) NULL", "DATETIME NULL", "datetime(3) becomes datetime: fractions of a second are lost"),
    ("VARCHAR(64) NULL", "VARCHAR(32) NULL", "varchar(64) becomes varchar(32): fewer characters"),
    ("TEXT NULL", "VARCHAR(500) NULL", "text becomes varchar(500): fewer characters"),
    ("BLOB NULL", "TINYBLOB NULL", "blob becomes tinyblob: fewer bytes"),
    ("DOUBLE NULL", "FLOAT NULL", "double becomes float: another type"),
    ("BINARY(16) NULL", "BINARY(20) NULL", "binary(16) becomes binary(20): values are padded differently"),
    ("ENUM('a', 'b') NULL", "ENUM('b', 'a') NULL", "enum('a','b') becomes enum('b','a'): members are removed or moved"),
    ("SET('a', 'b') NULL", "SET('a') NULL", "set('a','b') becomes set('a'): members are removed or moved"),
    ("JSON NULL", "LONGTEXT NULL", "json becomes longtext: another type"),
    ("VARCHAR(64) NULL", "VARCHAR(64) CHARACTER SET latin1 NULL", "character set utf8mb4 becomes latin1"),
    ("VARCHAR(64) CHARACTER SET latin1 NULL", "VARCHAR(32) CHARACTER SET utf8mb4 NULL",
     "varchar(64) becomes varchar(32): fewer characters"),
    ("VARCHAR(64) CHARACTER SET latin1 NULL", "VARCHAR(64) CHARACTER SET utf8mb3 NULL", "character set latin1 becomes utf8mb3"),
    ("TEXT CHARACTER SET latin1 NULL", "TEXT CHARACTER SET utf8mb4 NULL",
     "character set latin1 becomes utf8mb4, in which a full text outgrows text"),
    ("INT NULL", "INT NOT NULL DEFAULT 0", "NULL becomes NOT NULL, so old code that writes NULL gets 1048"),
])
def test_every_kind_of_narrowing_is_refused(found: Run, session: Session, stepped: Stepped, made: str, up: str, why: str) -> None:
    session.run(f"ALTER TABLE AiAnalysisJob ADD COLUMN c {made}")

    [finding] = found(statements, stepped(f"MODIFY c {up}"))

    assert (finding.severity, finding.subject, finding.accept) == ("refuse", "column AiAnalysisJob.c", "narrowing")
    assert f"step 010_widen_job_type: {why};" in finding.what


@pytest.mark.parametrize(("made", "up"), [
    ("INT NULL", "BIGINT NULL"), ("SMALLINT UNSIGNED NULL", "INTEGER NULL"), ("VARCHAR(32) NULL", "TEXT NULL"),
    ("FLOAT NULL", "DOUBLE NULL"),
    ("DECIMAL(10, 2) NULL", "DECIMAL(12, 4) NULL"), ("ENUM('a') NULL", "ENUM('a', 'b') NULL"), ("DATETIME NULL", "DATETIME(6) NULL"),
    ("VARCHAR(32) CHARACTER SET latin1 NULL", "VARCHAR(32) CHARACTER SET utf8mb4 NULL"),
    ("VARCHAR(32) CHARACTER SET utf8mb3 NULL", "VARCHAR(32) CHARACTER SET utf8mb4 NULL"),
    ("VARCHAR(32) CHARACTER SET ascii NULL", "VARCHAR(32) CHARACTER SET latin1 NULL"),
    ("TEXT CHARACTER SET utf8mb3 NULL", "TEXT CHARACTER SET utf8mb4 NULL"),
    ("TEXT CHARACTER SET latin1 NULL", "MEDIUMTEXT CHARACTER SET utf8mb4 NULL"),
    ("VARCHAR(200) CHARACTER SET latin1 NULL", "TEXT CHARACTER SET utf8mb4 NULL"),
    ("ENUM('a') CHARACTER SET latin1 NULL", "ENUM('a', 'b') CHARACTER SET utf8mb4 NULL"),
    ("TINYINT(1) NOT NULL DEFAULT 0", "BOOLEAN NOT NULL DEFAULT FALSE"),
])
def test_widening_is_fine(found: Run, session: Session, stepped: Stepped, made: str, up: str) -> None:
    session.run(f"ALTER TABLE AiAnalysisJob ADD COLUMN c {made}")

    assert found(statements, stepped(f"MODIFY c {up}")) == []


def test_attributes_that_a_step_does_not_repeat_are_named(found: Run, session: Session, stepped: Stepped) -> None:
    session.run("ALTER TABLE AiAnalysisJob MODIFY jobType VARCHAR(32) COLLATE utf8mb4_bin NOT NULL DEFAULT 'std' COMMENT 'kind'")

    [finding] = found(statements, stepped("MODIFY jobType VARCHAR(64)"))

    assert (finding.severity, finding.subject, finding.accept) == ("refuse", "column AiAnalysisJob.jobType", "lost-attributes")
    assert finding.what.startswith("loses NOT NULL, its default, its comment, its collation utf8mb4_bin in step 010_widen_job_type")


def test_the_shipped_widening_is_held_against_the_live_column(found: Run, session: Session) -> None:
    session.run("ALTER TABLE AiAnalysisJob MODIFY jobType VARCHAR(32) NOT NULL COMMENT 'kind'")

    assert [f.accept for f in found(statements)] == ["lost-attributes"]


def test_on_update_counts_as_an_attribute(found: Run, session: Session, stepped: Stepped) -> None:
    session.run("ALTER TABLE AiAnalysisJob MODIFY updatedAt DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3) "
                "ON UPDATE CURRENT_TIMESTAMP(3)")

    [finding] = found(statements, stepped("MODIFY updatedAt DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)"))

    assert finding.what.startswith("loses ON UPDATE in step")


def test_what_is_done_already_is_not_judged_again(found: Run, session: Session, stepped: Stepped) -> None:
    session.run("ALTER TABLE AiAnalysisJob ADD COLUMN extra INT NOT NULL, MODIFY jobType VARCHAR(64) NOT NULL")

    assert found(statements, stepped("ADD COLUMN extra INT NOT NULL")) == []


def test_a_new_column_that_old_code_would_have_to_supply_is_refused(found: Run, stepped: Stepped) -> None:
    [finding] = found(statements, stepped("ADD COLUMN extra VARCHAR(32) NOT NULL"))

    assert (finding.severity, finding.subject, finding.accept) == ("refuse", "column AiAnalysisJob.extra", None)
    assert "1364" in finding.what


@pytest.mark.parametrize("definition", ["INT NULL", "INT", "INT NOT NULL DEFAULT 0", "INT AS (progress + 1) VIRTUAL NOT NULL"])
def test_a_new_column_that_supplies_itself_is_fine(found: Run, stepped: Stepped, definition: str) -> None:
    assert found(statements, stepped(f"ADD COLUMN extra {definition}")) == []


def test_a_name_that_differs_by_case_alone_is_the_same_name(found: Run, stepped: Stepped) -> None:
    [finding] = found(statements, stepped("ADD COLUMN JOBTYPE VARCHAR(64) NULL"))

    assert (finding.severity, finding.subject) == ("refuse", "column AiAnalysisJob.JOBTYPE")
    assert "the table has jobType, which is the same name (1060)" in finding.what


def test_a_column_of_that_name_which_is_another_one_is_told(found: Run, session: Session) -> None:
    session.run("ALTER TABLE AiAnalysisJob ADD COLUMN lifecycleStatus INT NULL")

    [finding] = [f for f in found(statements) if f.severity == "refuse"]

    assert (finding.subject, finding.accept) == ("column AiAnalysisJob.lifecycleStatus", None)
    assert "by step 030_add_lifecycle, but the table has a column of that name already, int (1060)" in finding.what


def test_a_table_without_a_ledger_is_clean_on_every_stair(found: Run, session: Session, plan: Plan, climb: Callable[..., None]) -> None:
    for step in [step.name for step in plan.pre_deploy.step if step.ddl]:
        climb(step)

        assert found(statements) == [], step


def test_one_of_several_columns_of_a_step_cannot_be_the_steps_own(found: Run, session: Session, stepped: Stepped) -> None:
    session.run("ALTER TABLE AiAnalysisJob ADD COLUMN a INT NULL")

    [finding] = found(statements, stepped("ADD COLUMN a INT NULL, ADD COLUMN b INT NULL"))

    assert finding.subject == "column AiAnalysisJob.a"


@pytest.mark.parametrize("kind", [
    "INT(11)", "INTEGER", "BOOLEAN", "DECIMAL", "DECIMAL(10, 0)", "DOUBLE PRECISION", "FLOAT(30)", "TEXT(100)", "DEC(5)", "YEAR(4)",
    "NUMERIC(6, 2)", "NATIONAL VARCHAR(5)", "SERIAL", "JSON", "ENUM('a', 'b')", "CHAR", "BIT"])
def test_a_column_that_stands_as_the_step_makes_it_is_the_steps_own(found: Run, session: Session, stepped: Stepped, kind: str) -> None:
    session.run(f"ALTER TABLE AiAnalysisJob ADD COLUMN own {kind}")

    assert found(statements, stepped(f"ADD COLUMN own {kind}")) == []


def test_an_index_of_that_name_on_other_columns_is_told(found: Run, session: Session, stepped: Stepped) -> None:
    session.run("ALTER TABLE AiAnalysisJob ADD INDEX mine (answerId)")

    [finding] = found(statements, stepped("ADD INDEX `mine` (`jobType`, `status`)"))

    assert (finding.severity, finding.subject) == ("refuse", "index mine")
    assert "by step 010_widen_job_type, but the table has an index of that name already, on answerId (1061)" in finding.what


@pytest.mark.parametrize("up", ["ADD INDEX mine (answerId)", "ADD UNIQUE KEY mine (answerId)", "DROP INDEX mine, ADD INDEX mine (jobType)",
                                "ADD INDEX (answerId)", "ADD INDEX mine ((LOWER(answerId)))"])
def test_an_index_that_may_be_the_steps_own_is_fine(found: Run, session: Session, stepped: Stepped, up: str) -> None:
    session.run("ALTER TABLE AiAnalysisJob ADD INDEX mine (answerId)")

    assert found(statements, stepped(up)) == []


@pytest.mark.parametrize("up", ["DROP PRIMARY KEY, ADD PRIMARY KEY (id, userId)", "ADD PRIMARY KEY (userId)"])
def test_the_primary_key_stays(found: Run, stepped: Stepped, up: str) -> None:
    assert "changes the primary key" in found(statements, stepped(up))[0].what


def test_a_column_of_the_primary_key_stays(found: Run, stepped: Stepped) -> None:
    [finding] = found(statements, stepped("MODIFY id VARCHAR(200) NOT NULL"))

    assert (finding.severity, finding.subject, finding.accept) == ("refuse", "column AiAnalysisJob.id", None)
    assert "part of the primary key" in finding.what


def test_a_collation_under_a_unique_index_is_refused(found: Run, session: Session, stepped: Stepped) -> None:
    session.run("ALTER TABLE AiAnalysisJob ADD UNIQUE INDEX answer (answerId)")

    [finding] = found(statements, stepped("MODIFY answerId VARCHAR(191) COLLATE utf8mb4_0900_ai_ci NULL"))

    assert (finding.severity, finding.accept) == ("refuse", "narrowing")
    assert "unique index answer" in finding.what


@pytest.mark.parametrize(("up", "classes"), [
    ("ADD COLUMN q INT NULL, MODIFY jobType VARCHAR(64) NOT NULL", "copy, instant"),
    ("ADD COLUMN q INT NULL, ADD INDEX q (q)", "in place, instant"),
])
def test_work_of_several_kinds_in_one_statement_is_told(found: Run, stepped: Stepped, up: str, classes: str) -> None:
    [finding] = found(statements, stepped(up))

    assert (finding.severity, finding.subject, finding.accept) == ("warn", "step 010_widen_job_type", None)
    assert f"does work of several kinds ({classes})" in finding.what


def test_a_full_text_index_is_told(found: Run, stepped: Stepped) -> None:
    [finding] = found(statements, stepped("ADD FULLTEXT INDEX ft (errorMessage)"))

    assert (finding.severity, finding.subject) == ("warn", "step 010_widen_job_type")
    assert "FULLTEXT" in finding.what
