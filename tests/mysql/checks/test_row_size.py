"""Rows that would declare more bytes than MySQL takes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from steps.checks import Finding, row_size
from steps.errors import StatementFailed
from steps.mysql import Session
from steps.plan import Plan

Run = Callable[..., list[Finding]]


def test_the_shipped_plan_fits(found: Run) -> None:
    assert found(row_size) == []


def test_what_the_plan_adds_is_added_up_and_the_widest_named(found: Run, stepped: Callable[..., Plan]) -> None:
    [finding] = found(row_size, stepped(", ".join(f"ADD COLUMN w{n} VARCHAR({700 + n}) NULL" for n in range(30))))

    assert (finding.severity, finding.subject, finding.accept) == ("refuse", "table AiAnalysisJob", None)
    assert "MySQL takes 65535 (1118)" in finding.what
    assert "the widest that the plan adds: w29 (2918), w28 (2914)" in finding.what
    assert "TEXT" in finding.remedy


def test_the_sum_agrees_with_the_server_to_the_byte(found: Run, session: Session, plan: Plan, stepped: Callable[..., Plan]) -> None:
    """The widest column that the check lets through is the widest that the server takes."""
    nothing = plan.model_copy(update={"sync": (), "pre_deploy": plan.pre_deploy.model_copy(update={"step": plan.pre_deploy.step[:1]})})

    def fits(length: int) -> bool:
        up = f"ADD COLUMN w VARBINARY({length}) NULL"
        text = {**plan.sql_text, "010_widen_job_type.up.sql": f"ALTER TABLE AiAnalysisJob {up}"}
        return not found(row_size, nothing.model_copy(update={"sql_text": text}))

    low, high = 1, 65_535
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)

    with pytest.raises(StatementFailed, match="1118"):
        session.run(f"ALTER TABLE AiAnalysisJob ADD COLUMN w VARBINARY({high}) NULL")
    session.run(f"ALTER TABLE AiAnalysisJob ADD COLUMN w VARBINARY({low}) NULL")
