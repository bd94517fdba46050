"""What keeps instant changes from the table although the clone takes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from steps.checks import Finding, instant
from steps.mysql import Session

Run = Callable[..., list[Finding]]


def _brief(finding: Finding) -> tuple[Any, ...]:
    return finding.severity, finding.subject, finding.accept


def _use_up(session: Session, versions: int) -> None:
    for i in range(versions):
        session.run(f"ALTER TABLE AiAnalysisJob {'DROP' if i % 2 else 'ADD'} COLUMN x{'' if i % 2 else ' INT'}, ALGORITHM=INSTANT")


def test_a_table_without_history_is_clean(found: Run) -> None:
    assert found(instant) == []


def test_used_up_row_versions_are_refused_early(found: Run, session: Session) -> None:
    _use_up(session, 240)

    [finding] = found(instant)

    assert _brief(finding) == ("refuse", "table AiAnalysisJob", "row-versions")
    assert finding.what == "has used 240 of 255 row versions; what is left of the plan and its way back take 16"
    assert "rebuild the table first" in finding.remedy


def test_older_servers_have_64_row_versions(found: Run, session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    _use_up(session, 50)
    monkeypatch.setattr(instant.server, "facts", lambda _session: instant.server.Facts("8.4.5"))

    [finding] = found(instant)

    assert "has used 50 of 64" in finding.what


def test_row_versions_that_may_not_be_seen_are_could_not_look(found: Run, account: Callable[..., Session]) -> None:
    [finding] = found(instant, by=account("ALL ON {schema}.*"))

    assert _brief(finding) == ("warn", "row versions of AiAnalysisJob", None)
    assert finding.could_not_look
    assert "PROCESS" in finding.what


def test_only_what_is_left_of_the_plan_is_counted(found: Run, session: Session, climb: Callable[..., None]) -> None:
    climb("020_add_identity_and_routing", "030_add_lifecycle", "040_add_input_and_output_versions")
    _use_up(session, 236)
    assert found(instant) == []
    _use_up(session, 4)

    [finding] = found(instant)

    assert "has used 243 of 255 row versions; what is left of the plan and its way back take 13" in finding.what


def test_a_full_text_index_that_was_there_once_is_found(found: Run, session: Session) -> None:
    session.run("ALTER TABLE AiAnalysisJob ADD FULLTEXT ft (errorMessage)")
    assert found(instant) == []  # the clone has it too, and learns what it costs
    session.run("ALTER TABLE AiAnalysisJob DROP INDEX ft")

    [finding] = found(instant)

    assert _brief(finding) == ("refuse", "table AiAnalysisJob", None)
    assert "hidden column" in finding.what
    assert "1845" in finding.what
    session.run("ALTER TABLE AiAnalysisJob FORCE, ALGORITHM=INPLACE")
    assert found(instant) == []
