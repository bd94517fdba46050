"""Rows in the way of unique indexes and foreign keys."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from steps.checks import Finding, duplicates
from steps.errors import StatementFailed
from steps.mysql import VALUE, Session
from steps.plan import Plan

Run = Callable[..., list[Finding]]


@pytest.fixture
def keyed(session: Session, climb: Callable[..., None]) -> Callable[[str, str | None], int]:
    climb("020_add_identity_and_routing")
    return lambda key, value: session.run(f"UPDATE AiAnalysisJob SET idempotencyKey = {VALUE} WHERE id = {VALUE}", value, key)


def test_columns_that_do_not_exist_yet_are_not_looked_at(found: Run) -> None:
    assert found(duplicates) == []


@pytest.mark.usefixtures("keyed")
def test_nulls_do_not_collide(found: Run) -> None:
    assert found(duplicates) == []


@pytest.mark.parametrize("other", ["Key-1", "key-1 ", "kéy-1"])
def test_values_that_the_collation_holds_equal_collide(found: Run, keyed: Callable[[str, str], int], other: str) -> None:
    keyed("j0", "key-1")
    keyed("j1", other)

    single, composite = found(duplicates)

    assert (single.severity, single.subject, single.accept) == ("refuse", "table AiAnalysisJob", None)
    assert "has 1 value that rows share" in single.what
    assert "070_index_routing_and_keys makes (idempotencyKey) unique (error 1062)" in single.what
    assert "(userId, jobType, idempotencyKey)" in composite.what
    assert "GROUP BY `idempotencyKey` HAVING COUNT(*) > 1" in single.remedy
    assert "key-1" not in single.what + single.remedy


def test_values_are_held_equal_as_the_collation_that_a_step_gives_them_does(found: Run, session: Session, plan: Plan) -> None:
    session.run("ALTER TABLE AiAnalysisJob MODIFY answerId VARCHAR(191) COLLATE utf8mb4_bin NULL")
    session.run("UPDATE AiAnalysisJob SET answerId = 'a' WHERE id = 'j0'")
    session.run("UPDATE AiAnalysisJob SET answerId = 'A' WHERE id = 'j1'")
    ups = {"010_widen_job_type": "MODIFY answerId VARCHAR(191) COLLATE utf8mb4_0900_ai_ci NULL",
           "070_index_routing_and_keys": "ADD UNIQUE INDEX answer (answerId)"}
    text = {**plan.sql_text, **{f"{step}.up.sql": f"ALTER TABLE AiAnalysisJob {up}" for step, up in ups.items()}}

    [finding] = found(duplicates, plan.model_copy(update={"sql_text": text}))

    assert "has 1 value that rows share" in finding.what
    for statement in ups.values():
        if "UNIQUE" not in statement:
            session.run(f"ALTER TABLE AiAnalysisJob {statement}")
    with pytest.raises(StatementFailed, match="1062"):
        session.run(f"ALTER TABLE AiAnalysisJob {ups['070_index_routing_and_keys']}")


def test_empty_strings_collide(found: Run, keyed: Callable[[str, str], int]) -> None:
    keyed("j0", "")
    keyed("j1", "")

    assert [f.severity for f in found(duplicates)] == ["refuse", "refuse"]


def test_an_index_that_stands_is_not_checked_again(found: Run, session: Session, keyed: Callable[[str, str], int],
                                                   climb: Callable[..., None]) -> None:
    climb("070_index_routing_and_keys")
    keyed("j0", "one")

    assert found(duplicates) == []


def test_orphans_of_the_self_reference_are_counted(found: Run, session: Session, climb: Callable[..., None]) -> None:
    climb("020_add_identity_and_routing")
    session.run("UPDATE AiAnalysisJob SET parentJobId = 'j0' WHERE id = 'j1'")
    assert found(duplicates) == []
    session.run("UPDATE AiAnalysisJob SET parentJobId = 'gone' WHERE id IN ('j2', 'j3')")

    [finding] = found(duplicates)

    assert (finding.severity, finding.subject, finding.accept) == ("refuse", "table AiAnalysisJob", None)
    assert "has 2 values of (parentJobId) without a row in AiAnalysisJob, where step 080_add_parent_job_fk" in finding.what
    assert "find them with SELECT c.* FROM" in finding.remedy


def test_orphans_of_a_leaf_are_found_once_its_table_exists(found: Run, session: Session) -> None:
    session.run("CREATE TABLE AiUsageLog (id INT PRIMARY KEY, jobId VARCHAR(191)) COLLATE utf8mb4_unicode_ci")
    session.run("INSERT INTO AiUsageLog VALUES (1, 'j0'), (2, 'gone'), (3, NULL)")

    [finding] = found(duplicates)

    assert (finding.severity, finding.subject) == ("refuse", "table AiUsageLog")
    assert "has 1 value of (jobId) without a row in AiAnalysisJob, where step 220_usage_log_fk" in finding.what


def test_a_leaf_of_another_collation_is_left_to_the_check_of_definitions(found: Run, session: Session) -> None:
    session.run("CREATE TABLE AiUsageLog (id INT PRIMARY KEY, jobId VARCHAR(191)) COLLATE utf8mb4_0900_ai_ci")

    assert found(duplicates) == []
