"""Room for every value of the maps."""

from __future__ import annotations

from collections.abc import Callable

from steps.checks import Finding, map_values
from steps.mysql import Session
from steps.plan import Plan

Run = Callable[..., list[Finding]]


def _with(plan: Plan, definition: str) -> Plan:
    text = {name: sql.replace("`lifecycleStatus` VARCHAR(32)", f"`lifecycleStatus` {definition}") for name, sql in plan.sql_text.items()}
    return plan.model_copy(update={"sql_text": text})


def test_the_shipped_maps_fit(found: Run) -> None:
    assert found(map_values) == []


def test_values_longer_than_the_new_column_are_named(found: Run, plan: Plan) -> None:
    [finding] = found(map_values, _with(plan, "VARCHAR(7)"))

    assert (finding.severity, finding.subject, finding.accept) == ("refuse", "column AiAnalysisJob.lifecycleStatus", None)
    assert "is varchar(7), which has no room for 'succeeded' of to_new" in finding.what


def test_values_that_an_enum_does_not_have_are_named(found: Run, session: Session) -> None:
    session.run("ALTER TABLE AiAnalysisJob MODIFY status ENUM('pending', 'processing', 'completed', 'failed', 'it''s') NOT NULL "
                "DEFAULT 'pending'")
    assert found(map_values) == []
    session.run("UPDATE AiAnalysisJob SET status = 'pending'")
    session.run("ALTER TABLE AiAnalysisJob MODIFY status ENUM('pending', 'processing') NOT NULL DEFAULT 'pending'")

    [finding] = found(map_values)

    assert finding.subject == "column AiAnalysisJob.status"
    assert "no room for 'completed', 'failed' of to_old" in finding.what
