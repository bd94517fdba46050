"""Values that the way back of a widened column has no room for."""

from __future__ import annotations

from collections.abc import Callable

from steps.checks import Finding, way_back
from steps.mysql import Session

Run = Callable[..., list[Finding]]


def test_before_the_widening_there_is_nothing_to_look_at(found: Run) -> None:
    assert found(way_back) == []


def test_longer_values_are_counted_once_the_column_is_wide(found: Run, session: Session, climb: Callable[..., None]) -> None:
    climb("010_widen_job_type")
    session.run("UPDATE AiAnalysisJob SET jobType = REPEAT('é', 32) WHERE id = 'j0'")
    assert found(way_back) == []
    session.run("UPDATE AiAnalysisJob SET jobType = REPEAT('é', 33) WHERE id IN ('j1', 'j2')")

    [finding] = found(way_back)

    assert (finding.severity, finding.subject, finding.accept) == ("warn", "column AiAnalysisJob.jobType", None)
    assert finding.what.startswith("holds 2 values longer than 32 characters, for which the way back of step 010_widen_job_type")
