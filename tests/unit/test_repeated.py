"""What the rehearsal refuses is left out only where a check that stops the run has told it already."""

from __future__ import annotations

import pytest

from flows.repeated import repeated
from steps.checks import Finding
from steps.errors import Refused

NONE = frozenset[str]()
TOO_LONG = Refused("step 010_wide", "does not work: MySQL error 1118: Row size too large", "correct the plan")
NAMED = Refused("step cleanup_drop", "MySQL error 1265: Data truncated for column 'due' at row 1", "correct the plan")


def found(subject: str, what: str, check: str = "statements", severity: str = "refuse", accept: str | None = None,
          could_not_look: bool = False) -> Finding:
    return Finding(check, severity, subject, what, "mend it", accept, could_not_look)


@pytest.mark.parametrize(("refused", "finding"), [
    (TOO_LONG, found("table job", "would declare 70000 bytes; MySQL takes 65535 (1118)", "row-size")),
    (TOO_LONG, found("column job.a", "is narrowed by step 010_wide: fewer integers", accept="narrowing")),
    (TOO_LONG, found("step 010_wide", "changes the primary key")),
    (NAMED, found("column job.due", "holds 9 dates with a zero month")),
])
def test_the_same_step_object_or_error_is_told_once(refused: Refused, finding: Finding) -> None:
    assert repeated(refused, [finding], NONE)


@pytest.mark.parametrize("finding", [
    found("table job", "is held by connection 7", "blockers", accept="blockers"),
    found("step 020_other", "changes the primary key"),
    found("step 010_wide", "may be slow", severity="warn"),
    found("step 010_wide", "could not look: MySQL error 1142", accept="could-not-look:duplicates", could_not_look=True),
    found("table step", "of another kind"),
])
def test_anything_else_hides_nothing(finding: Finding) -> None:
    assert not repeated(TOO_LONG, [finding], NONE)


def test_nothing_is_hidden_where_nothing_stops_the_run() -> None:
    narrowing = found("column job.a", "is narrowed by step 010_wide", accept="narrowing")

    assert not repeated(TOO_LONG, [narrowing], frozenset({"narrowing"}))
    assert not repeated(TOO_LONG, [], NONE)
