"""Foreign keys that the plan adds."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from steps.checks import Finding, foreign_keys
from steps.mysql import Session
from steps.plan import Plan

Run = Callable[..., list[Finding]]
Stepped = Callable[..., Plan]


def test_the_shipped_plan_is_clean(found: Run) -> None:
    assert found(foreign_keys) == []


def test_it_is_clean_on_every_stair(found: Run, climb: Callable[..., None]) -> None:
    for step in ("020_add_identity_and_routing", "070_index_routing_and_keys", "080_add_parent_job_fk"):
        climb(step)
        assert found(foreign_keys) == []


def test_a_parent_with_its_schema_before_it_is_no_other_table(found: Run, stepped: Stepped, session: Session) -> None:
    session.run("ALTER TABLE AiAnalysisJob ADD COLUMN p VARCHAR(191) NULL")
    for parent in (f"`{session.schema}`.`User`", "`elsewhere`.`t`"):
        assert found(foreign_keys, stepped(f"ADD CONSTRAINT fkp FOREIGN KEY (p) REFERENCES {parent} (`id`)")) == []


@pytest.mark.parametrize(("definition", "shown"), [
    ("VARCHAR(191) COLLATE utf8mb4_0900_ai_ci NULL", "varchar(191) COLLATE utf8mb4_0900_ai_ci"),
    ("VARCHAR(191) CHARACTER SET latin1 NULL", "varchar(191) COLLATE (of latin1)"),
    ("BIGINT UNSIGNED NULL", "bigint unsigned"),
])
def test_definitions_that_mysql_would_not_take_are_both_printed(found: Run, stepped: Stepped, definition: str, shown: str) -> None:
    [finding] = found(foreign_keys, stepped(f"ADD COLUMN p {definition}, ADD CONSTRAINT fkp FOREIGN KEY (p) REFERENCES AiAnalysisJob (id)"))

    assert (finding.severity, finding.subject, finding.accept) == ("refuse", "column AiAnalysisJob.p", None)
    assert f"would be {shown}, and" in finding.what
    assert "AiAnalysisJob.id, which is varchar(191) COLLATE utf8mb4_unicode_ci" in finding.what
    assert "3780" in finding.what


def test_lengths_of_strings_may_differ(found: Run, stepped: Stepped) -> None:
    assert found(foreign_keys, stepped("ADD COLUMN p VARCHAR(255) NULL, ADD FOREIGN KEY (p) REFERENCES `User` (id)")) == []


def test_integers_differ_by_size_and_sign(found: Run, session: Session, stepped: Stepped) -> None:
    session.run("CREATE TABLE batch (id INT UNSIGNED PRIMARY KEY)")

    assert found(foreign_keys, stepped("ADD COLUMN b INTEGER UNSIGNED NULL, ADD FOREIGN KEY fkb (b) REFERENCES batch (id)")) == []
    for other in ("INT NULL", "BIGINT UNSIGNED NULL"):
        [finding] = found(foreign_keys, stepped(f"ADD COLUMN b {other}, ADD FOREIGN KEY fkb (b) REFERENCES batch (id)"))
        assert "which is int unsigned" in finding.what


def test_a_parent_that_is_not_there_is_told(found: Run, stepped: Stepped) -> None:
    [finding] = found(foreign_keys, stepped("ADD COLUMN b INT NULL, ADD FOREIGN KEY fkb (b) REFERENCES batch (id)"))

    assert "batch, which does not exist (1824)" in finding.what


def test_a_leaf_is_held_against_its_parent(found: Run, session: Session) -> None:
    session.run("CREATE TABLE AiUsageLog (id INT PRIMARY KEY, jobId VARCHAR(191)) COLLATE utf8mb4_0900_ai_ci")

    [finding] = found(foreign_keys)

    assert (finding.severity, finding.subject) == ("refuse", "column AiUsageLog.jobId")
    assert "utf8mb4_0900_ai_ci" in finding.what
    assert "utf8mb4_unicode_ci" in finding.what


def test_a_name_that_another_table_of_the_schema_has_is_refused(found: Run, session: Session) -> None:
    session.run("CREATE TABLE child (a VARCHAR(191), CONSTRAINT AiAnalysisJob_parentJobId_fkey FOREIGN KEY (a) REFERENCES `User` (id)) "
                "COLLATE utf8mb4_unicode_ci")

    [finding] = found(foreign_keys)

    assert (finding.severity, finding.subject, finding.accept) == ("refuse", "step 080_add_parent_job_fk", None)
    assert "a name that child of this schema has already (1826)" in finding.what


def test_a_cascade_into_a_pair_fires_no_trigger(found: Run, session: Session) -> None:
    session.run("CREATE TABLE state (name VARCHAR(32) PRIMARY KEY) COLLATE utf8mb4_unicode_ci")
    session.run("INSERT INTO state VALUES ('pending'), ('processing'), ('completed'), ('failed')")
    session.run("ALTER TABLE AiAnalysisJob ADD CONSTRAINT of_state FOREIGN KEY (status) REFERENCES state (name) ON UPDATE CASCADE")

    [finding] = found(foreign_keys)

    assert (finding.severity, finding.subject) == ("warn", "foreign key of_state")
    assert finding.what.startswith("sets status by a cascade, which fires no trigger: lifecycleStatus would keep its value")
