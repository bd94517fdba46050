"""Values that the maps do not know, byte by byte, on both sides."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from steps.checks import Finding, statuses
from steps.mysql import VALUE, Session

Run = Callable[..., list[Finding]]
ODD = ["Completed", "completed ", "complétéd", " completed", "completed\n", "", "cancelled", "com\u200bpleted"]


@pytest.fixture
def set_status(session: Session) -> Callable[[str, str], int]:
    return lambda key, status: session.run(f"UPDATE AiAnalysisJob SET status = {VALUE} WHERE id = {VALUE}", status, key)


def test_known_values_are_clean(found: Run) -> None:
    assert found(statuses) == []


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("collation", ["utf8mb4_unicode_ci", "utf8mb4_0900_ai_ci", "utf8mb4_bin", "utf8mb4_0900_bin"])
def test_another_byte_is_another_value_under_any_collation(found: Run, session: Session, collation: str, odd: str,
                                                           set_status: Callable[[str, str], int]) -> None:
    session.run(f"ALTER TABLE AiAnalysisJob MODIFY status VARCHAR(32) CHARACTER SET utf8mb4 COLLATE {collation} "
                "NOT NULL DEFAULT 'pending'")
    set_status("j0", odd)
    set_status("j1", odd)

    [finding] = found(statuses)

    assert (finding.severity, finding.accept) == ("refuse", None)
    assert finding.subject == "column AiAnalysisJob.status"
    assert f"{odd!r} (2 rows)" in finding.what
    assert finding.remedy == "correct these rows, or add the values to to_new before the first run"


def test_all_values_are_told_at_once_the_most_frequent_first_and_long_ones_cut(
        found: Run, session: Session, set_status: Callable[[str, str], int]) -> None:
    session.run("ALTER TABLE AiAnalysisJob MODIFY status VARCHAR(64) NOT NULL DEFAULT 'pending'")
    set_status("j0", "a" * 40)
    set_status("j1", "b")
    set_status("j2", "b")

    [finding] = found(statuses)

    assert finding.what.endswith(f"'b' (2 rows), '{'a' * 31}…' (1 row)")


def test_a_new_side_with_a_foreign_value_is_refused(found: Run, session: Session, climb: Callable[..., None]) -> None:
    climb("020_add_identity_and_routing", "030_add_lifecycle")
    session.run("UPDATE AiAnalysisJob SET lifecycleStatus = 'locked' WHERE id = 'j0'")
    session.run("UPDATE AiAnalysisJob SET lifecycleStatus = 'archived' WHERE id = 'j1'")

    [finding] = found(statuses)

    assert (finding.severity, finding.accept, finding.subject) == ("refuse", None, "column AiAnalysisJob.lifecycleStatus")
    assert finding.what.endswith("'archived' (1 row)")
    assert finding.remedy == "correct these rows, or add the values to to_old before the first run"


def test_an_enum_is_read_as_text(found: Run, session: Session) -> None:
    session.run("ALTER TABLE AiAnalysisJob MODIFY status ENUM('pending', 'processing', 'completed', 'failed', 'odd') NOT NULL "
                "DEFAULT 'pending'")
    session.run("UPDATE AiAnalysisJob SET status = 'odd' WHERE id = 'j0'")

    [finding] = found(statuses)

    assert "'odd' (1 row)" in finding.what


def test_nulls_that_no_map_knows_are_refused(found: Run, session: Session) -> None:
    session.run("ALTER TABLE AiAnalysisJob MODIFY status VARCHAR(32) NULL DEFAULT 'pending'")
    assert found(statuses) == []
    session.run("UPDATE AiAnalysisJob SET status = NULL WHERE id IN ('j0', 'j1')")

    [finding] = found(statuses)

    assert (finding.severity, finding.accept, finding.subject) == ("refuse", "null-statuses", "column AiAnalysisJob.status")
    assert "is NULL in 2 rows" in finding.what
    assert finding.remedy == "give these rows a value of to_new first; where the new side is NULL as well"
