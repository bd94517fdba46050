"""Values left in an AUTO_INCREMENT column."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from steps.checks import Finding, auto_increment
from steps.mysql import Session

Run = Callable[..., list[Finding]]


def test_a_table_without_one_is_clean(found: Run) -> None:
    assert found(auto_increment) == []


@pytest.mark.parametrize(("kind", "most"), [("TINYINT UNSIGNED", 255), ("SMALLINT", 32_767), ("INT UNSIGNED", 4_294_967_295),
                                            ("BIGINT", 2**63 - 1)])
def test_the_values_left_are_counted(found: Run, session: Session, kind: str, most: int) -> None:
    session.run(f"ALTER TABLE AiAnalysisJob ADD COLUMN n {kind} NOT NULL AUTO_INCREMENT, ADD UNIQUE INDEX n (n)")
    session.run(f"ALTER TABLE AiAnalysisJob AUTO_INCREMENT = {most - 99}")

    [finding] = found(auto_increment)

    assert (finding.severity, finding.subject, finding.accept) == ("warn", "column AiAnalysisJob.n", None)
    assert finding.what.startswith(f"has 100 values left of its {kind.lower()}:")


def test_room_enough_is_clean(found: Run, session: Session) -> None:
    session.run("ALTER TABLE AiAnalysisJob ADD COLUMN n INT NOT NULL AUTO_INCREMENT, ADD UNIQUE INDEX n (n)")

    assert found(auto_increment) == []
