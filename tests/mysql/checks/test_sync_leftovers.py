"""Triggers under our names."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from steps import sync
from steps.checks import Finding, sync_leftovers
from steps.ledger import Ledger
from steps.mysql import Session, quote
from steps.plan import Plan
from steps.target import Target

Run = Callable[..., list[Finding]]
NAME = "rollout_ai_analysis_job_bu"
OTHER = f"CREATE TRIGGER {NAME} BEFORE UPDATE ON AiAnalysisJob FOR EACH ROW SET @x = 1"


@pytest.fixture
def with_new_columns(session: Session, climb: Callable[..., None]) -> None:
    climb("020_add_identity_and_routing", "030_add_lifecycle")
    session.run("ALTER TABLE AiAnalysisJob ADD COLUMN finishedAt DATETIME(3) NULL, ADD COLUMN internalErrorMessage TEXT NULL")


def test_a_table_without_our_triggers_is_clean(found: Run) -> None:
    assert found(sync_leftovers) == []


@pytest.mark.usefixtures("with_new_columns")
def test_our_own_body_is_adopted(found: Run, session: Session, database: Target, plan: Plan) -> None:
    for trigger in sync.sync_triggers(plan.id, sync.pairs(session, plan, database.schema)):
        session.verbatim(trigger.create(plan.table, "CURRENT_USER", None))

    assert found(sync_leftovers) == []


@pytest.mark.parametrize("columns", [True, False])
def test_another_body_is_refused(found: Run, session: Session, request: pytest.FixtureRequest, columns: bool) -> None:
    if columns:
        request.getfixturevalue("with_new_columns")
    session.run(OTHER)

    [finding] = found(sync_leftovers)

    assert (finding.severity, finding.subject, finding.accept) == ("refuse", f"trigger {NAME}", "replace-sync")
    assert "no ledger tells of a run of ai_analysis_job" in finding.what
    assert "--accept replace-sync" in finding.remedy


def test_a_plan_in_the_ledger_compares_for_itself(found: Run, session: Session, database: Target, plan: Plan) -> None:
    session.run(OTHER)
    ledger = Ledger(session, database.schema, plan.table, plan.id)
    ledger.create()
    ledger.remember_plan(plan.identity_hash(), plan.identity(), {}, "")

    assert found(sync_leftovers) == []


def test_the_ledger_is_read_where_the_plan_keeps_it(found: Run, session: Session, database: Target, plan: Plan) -> None:
    session.run(OTHER)
    home = f"{database.schema}_ledger"
    elsewhere = plan.model_copy(update={"plan": plan.plan.model_copy(update={"ledger_schema": home})})
    session.run(f"CREATE DATABASE {quote(home)}")
    try:
        ledger = Ledger(session, database.schema, plan.table, plan.id, home)
        ledger.create()
        ledger.remember_plan(plan.identity_hash(), plan.identity(), {}, "")

        assert len(found(sync_leftovers)) == 1
        assert found(sync_leftovers, elsewhere) == []
    finally:
        session.run(f"DROP DATABASE {quote(home)}")
