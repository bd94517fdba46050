"""Dates that a copy in strict mode trips over."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from steps.checks import Finding, zero_dates
from steps.errors import StatementFailed
from steps.mysql import VALUE, Session
from steps.plan import Plan

Run = Callable[..., list[Finding]]


@pytest.fixture
def dated(session: Session) -> Session:
    """A column of dates, of an age when the server took any."""
    session.run("ALTER TABLE AiAnalysisJob ADD COLUMN due DATETIME NULL, ADD COLUMN day DATE NULL")
    mode = session.value("SELECT @@sql_mode")
    session.run("SET SESSION sql_mode = ''")
    session.run("UPDATE AiAnalysisJob SET due = '0000-00-00' WHERE id IN ('j0', 'j1')")
    session.run("UPDATE AiAnalysisJob SET day = '2020-00-01' WHERE id = 'j2'")
    session.run(f"SET SESSION sql_mode = {VALUE}", mode)
    return session


def test_ordinary_dates_are_clean(found: Run) -> None:
    assert found(zero_dates) == []


def test_each_column_is_counted_and_the_server_agrees(found: Run, dated: Session, plan: Plan) -> None:
    due, day = found(zero_dates)

    assert (due.severity, due.subject, due.accept) == ("refuse", "column AiAnalysisJob.due", None)
    assert due.what.startswith("holds 2 dates with a zero month or day; step 010_widen_job_type may copy the table")
    assert day.what.startswith("holds 1 date with")
    with pytest.raises(StatementFailed, match="1292"):
        dated.verbatim(plan.sql_text["010_widen_job_type.up.sql"])


def test_the_predicate_of_the_remedy_works_in_strict_mode(found: Run, dated: Session) -> None:
    where = found(zero_dates)[0].remedy.partition("find them with ")[2]

    assert dated.value(f"SELECT COUNT(*) FROM AiAnalysisJob {where}") == 2


@pytest.mark.usefixtures("dated")
def test_without_a_copy_they_are_in_nobodys_way(found: Run, stepped: Callable[..., Plan]) -> None:
    assert found(zero_dates, stepped("ADD COLUMN extra INT NULL")) == []
