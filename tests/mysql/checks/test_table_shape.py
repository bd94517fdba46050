"""Tables that the plan or the tool cannot work on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from steps.checks import Finding, table_shape
from steps.mysql import Session
from steps.plan import Plan

Run = Callable[..., list[Finding]]


def _on(plan: Plan, table: str) -> Plan:
    return plan.model_copy(update={"plan": plan.plan.model_copy(update={"table": table})})


def _brief(finding: Finding) -> tuple[Any, ...]:
    return finding.severity, finding.subject, finding.accept


def test_the_shipped_table_is_clean(found: Run) -> None:
    assert found(table_shape) == []


def test_another_case_is_another_table_and_the_right_one_is_named(found: Run, plan: Plan) -> None:
    [finding] = found(table_shape, _on(plan, "aianalysisjob"))

    assert _brief(finding) == ("refuse", "table aianalysisjob", None)
    assert finding.what.endswith("; AiAnalysisJob does")
    assert "correct plan.table" in finding.remedy


def test_a_view_is_no_table(found: Run, session: Session, plan: Plan) -> None:
    session.run("CREATE VIEW v AS SELECT * FROM AiAnalysisJob")

    [finding] = found(table_shape, _on(plan, "v"))

    assert (_brief(finding), finding.what) == (("refuse", "table v", None), "is a view")


def test_another_engine_is_refused(found: Run, session: Session) -> None:
    session.run("ALTER TABLE AiAnalysisJob DROP FOREIGN KEY AiAnalysisJob_userId_fkey")
    session.run("ALTER TABLE AiAnalysisJob ENGINE = MyISAM")

    [finding] = found(table_shape)

    assert _brief(finding) == ("refuse", "table AiAnalysisJob", None)
    assert "is stored in MyISAM" in finding.what
    assert "convert it to InnoDB first" in finding.remedy


def test_a_table_without_a_primary_key_is_refused(found: Run, session: Session) -> None:
    session.run("ALTER TABLE AiAnalysisJob DROP PRIMARY KEY")

    [finding] = found(table_shape)

    assert _brief(finding) == ("refuse", "table AiAnalysisJob", None)
    assert "no primary key" in finding.what
    assert finding.remedy == "add one first"


@pytest.mark.parametrize("kind", ["DOUBLE", "FLOAT", "DECIMAL(20, 2)", "TIME"])
def test_a_key_that_cannot_be_a_cursor_is_refused(found: Run, session: Session, kind: str) -> None:
    session.run(f"ALTER TABLE AiAnalysisJob DROP PRIMARY KEY, ADD COLUMN k {kind} NOT NULL DEFAULT 0, ADD PRIMARY KEY (id, k)")

    [finding] = found(table_shape)

    assert _brief(finding) == ("refuse", "column AiAnalysisJob.k", None)
    assert f"of type {kind.partition('(')[0].lower()}" in finding.what


@pytest.mark.parametrize("kind", ["BIGINT UNSIGNED", "BINARY(16)", "VARBINARY(16)", "DATETIME(6)", "TIMESTAMP(3)", "CHAR(3)"])
def test_composite_keys_of_ordinary_types_are_fine(found: Run, session: Session, kind: str) -> None:
    default = "CURRENT_TIMESTAMP" + kind[-3:] if "TIME" in kind else "'1'"
    session.run(f"ALTER TABLE AiAnalysisJob DROP PRIMARY KEY, ADD COLUMN k {kind} NOT NULL DEFAULT {default}, "
                "ADD PRIMARY KEY (id, k)")

    assert found(table_shape) == []


def test_foreign_keys_and_unique_indexes_on_a_partitioned_table_are_refused_by_step(found: Run, session: Session) -> None:
    session.run("ALTER TABLE AiAnalysisJob DROP FOREIGN KEY AiAnalysisJob_userId_fkey")
    session.run("ALTER TABLE AiAnalysisJob PARTITION BY KEY (id) PARTITIONS 2")

    first, second, third = found(table_shape)

    assert _brief(first) == _brief(second) == ("refuse", "step 070_index_routing_and_keys", None)
    assert "AiAnalysisJob_idempotencyKey_key" in first.what
    assert "1503" in second.what
    assert _brief(third) == ("refuse", "step 080_add_parent_job_fk", None)
    assert "1506" in third.what
    assert "leave the step out" in third.remedy


def test_a_column_of_the_partitioning_cannot_be_renamed_or_dropped(found: Run, session: Session) -> None:
    session.run("ALTER TABLE AiAnalysisJob DROP FOREIGN KEY AiAnalysisJob_userId_fkey")
    session.run("UPDATE AiAnalysisJob SET sessionId = ''")
    session.run("ALTER TABLE AiAnalysisJob MODIFY sessionId VARCHAR(191) NOT NULL, DROP PRIMARY KEY, ADD PRIMARY KEY (id, sessionId)")
    session.run("ALTER TABLE AiAnalysisJob PARTITION BY RANGE COLUMNS (sessionId) (PARTITION p0 VALUES LESS THAN (MAXVALUE))")

    [finding] = [f for f in found(table_shape) if f.subject.startswith("column")]

    assert _brief(finding) == ("refuse", "column AiAnalysisJob.sessionId", None)
    assert "3855" in finding.what


def test_a_unique_index_that_has_the_partitioning_columns_is_fine(found: Run, session: Session, plan: Plan) -> None:
    session.run("ALTER TABLE AiAnalysisJob DROP FOREIGN KEY AiAnalysisJob_userId_fkey")
    session.run("ALTER TABLE AiAnalysisJob DROP PRIMARY KEY, ADD PRIMARY KEY (id, userId) PARTITION BY KEY (userId) PARTITIONS 2")

    assert not any("idx_userId_jobType_idempotencyKey" in finding.what for finding in found(table_shape))


def test_columns_that_the_plan_takes_for_given_are_named_one_by_one(found: Run, session: Session) -> None:
    session.run("ALTER TABLE AiAnalysisJob RENAME COLUMN status TO stat, RENAME COLUMN completedAt TO doneAt, "
                "DROP COLUMN sessionId")

    findings = found(table_shape)

    assert [f.subject for f in findings] == [f"column AiAnalysisJob.{c}" for c in ("status", "completedAt", "sessionId")]
    assert {(f.severity, f.accept, f.remedy) for f in findings} == {("refuse", None, "correct the plan")}
    assert "[[sync]] old of the plan names it; stat does" in findings[0].what
    assert "a rename's from" in findings[1].what
    assert "cleanup.drop" in findings[2].what


def test_a_column_that_the_plan_spells_otherwise_is_refused_by_name(found: Run, session: Session) -> None:
    session.run("ALTER TABLE AiAnalysisJob RENAME COLUMN status TO STATUS, RENAME COLUMN completedAt TO CompletedAt")

    findings = found(table_shape)

    assert [(f.subject, f.what, f.remedy) for f in findings] == [
        (f"column AiAnalysisJob.{plans}", f"is called {tables}, and {key} of the plan spells it otherwise", "spell it as the table does")
        for plans, tables, key in (("status", "STATUS", "[[sync]] old"), ("completedAt", "CompletedAt", "a rename's from"))]


def test_a_table_that_would_grow_too_wide_is_refused(found: Run, session: Session) -> None:
    session.run("ALTER TABLE AiAnalysisJob " + ", ".join(f"ADD COLUMN c{i} TINYINT" for i in range(980)))

    [finding] = found(table_shape)

    assert _brief(finding) == ("refuse", "table AiAnalysisJob", None)
    assert finding.what == "would have 1026 columns; InnoDB holds 1017"
