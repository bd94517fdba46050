"""Defaults of pairs."""

from __future__ import annotations

from collections.abc import Callable

from steps.checks import Finding, defaults
from steps.mysql import Session

Run = Callable[..., list[Finding]]
RENAMED = ("ALTER TABLE AiAnalysisJob ADD COLUMN lifecycleStatus VARCHAR(32) NOT NULL DEFAULT 'running', "
           "ADD COLUMN finishedAt DATETIME(3) NULL DEFAULT '2020-01-01 00:00:00', ADD COLUMN internalErrorMessage TEXT NULL")


def test_a_new_side_that_does_not_exist_yet_is_passed_over(found: Run) -> None:
    assert found(defaults) == []


def test_agreeing_defaults_are_clean(found: Run, session: Session) -> None:
    session.run(RENAMED.replace("'running'", "'pending'").replace("DEFAULT '2020-01-01 00:00:00'", ""))

    assert found(defaults) == []


def test_every_pair_whose_defaults_disagree_is_refused(found: Run, session: Session) -> None:
    session.run(RENAMED)

    status, finished = found(defaults)

    assert (status.severity, status.subject, status.accept) == ("refuse", "pair status and lifecycleStatus", None)
    assert "'pending' and 'running', which do not agree" in status.what
    assert status.remedy == "give lifecycleStatus the default 'pending'"
    assert (finished.severity, finished.subject) == ("refuse", "pair completedAt and finishedAt")
    assert "a default only on finishedAt" in finished.what


def test_an_old_default_that_is_not_constant_is_refused_before_the_new_column_is_there(found: Run, session: Session) -> None:
    session.run("ALTER TABLE AiAnalysisJob MODIFY completedAt DATETIME(3) NULL DEFAULT CURRENT_TIMESTAMP(3)")

    [finding] = found(defaults)

    assert (finding.severity, finding.subject, finding.accept) == ("refuse", "column AiAnalysisJob.completedAt", None)
    assert "not constant" in finding.what
    assert finding.remedy == "leave the column out of [[sync]] and renames"


def test_a_new_default_that_is_not_constant_is_refused(found: Run, session: Session) -> None:
    session.run("ALTER TABLE AiAnalysisJob ADD COLUMN finishedAt DATETIME(3) NULL DEFAULT CURRENT_TIMESTAMP(3)")

    [finding] = found(defaults)

    assert (finding.severity, finding.subject) == ("refuse", "column AiAnalysisJob.finishedAt")
