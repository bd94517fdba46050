"""A unique index that makes the server forget a foreign key is told of, and that server does forget it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

from steps.checks import Finding, unenforced
from steps.errors import StatementFailed
from steps.mysql import Session
from steps.plan import Plan

Run = Callable[..., list[Finding]]
ORPHAN = ("INSERT INTO AiAnalysisJob (id, userId, jobType, status, updatedAt, idempotencyKey) "
          "VALUES ('orphan', 'nobody', 'summary', 'pending', NOW(3), {})")


def stored(session: Session, key: str) -> bool:
    """Whether the server takes a row without its parent."""
    with suppress(StatementFailed):
        session.run(ORPHAN.format(key))
    found = session.value("SELECT COUNT(*) FROM AiAnalysisJob WHERE id = 'orphan'")
    session.run("DELETE FROM AiAnalysisJob WHERE id = 'orphan'")
    return bool(found)


def test_the_adrs_composite_index_is_told_of_and_the_server_does_what_the_finding_says(session: Session, found: Run,
                                                                                       climb: Callable[..., None]) -> None:
    [finding] = found(unenforced)
    assert (finding.severity, finding.accept) == ("warn", None)
    assert "AiAnalysisJob_userId_fkey" in finding.subject
    assert "for rows whose idempotencyKey is NULL once step 070_index_routing_and_keys has added the unique index" in finding.what

    climb("020_add_identity_and_routing", "030_add_lifecycle", "040_add_input_and_output_versions", "050_add_credentials_and_model",
          "060_add_errors_and_output")
    assert not stored(session, "NULL")
    climb("070_index_routing_and_keys")
    assert stored(session, "NULL")
    assert not stored(session, "'k'")


@pytest.mark.parametrize(("up", "told"), [
    ("ADD UNIQUE INDEX uq (userId, errorMessage(20))", True),
    ("ADD UNIQUE INDEX uq (errorMessage(20), userId)", False),
    ("ADD UNIQUE INDEX uq (userId, jobType)", False),
    ("ADD INDEX i (userId, errorMessage(20))", False),
])
def test_only_a_unique_index_that_begins_with_the_keys_columns_and_goes_on_with_one_that_may_be_null_is_told(
        session: Session, found: Run, stepped: Callable[..., Plan], up: str, told: bool) -> None:
    session.run("ALTER TABLE AiAnalysisJob MODIFY COLUMN errorMessage TEXT NULL")
    session.run("DELETE FROM AiAnalysisJob WHERE id <> 'j0'")
    plan = stepped(up)
    sql = {name: text for name, text in plan.sql_text.items() if not name.startswith("070")}
    sql |= {f"070_index_routing_and_keys.{way}.sql": "ALTER TABLE `AiAnalysisJob` COMMENT ''" for way in ("up", "down")}
    session.run("ALTER TABLE AiAnalysisJob ADD COLUMN idempotencyKey VARCHAR(20) NULL")

    assert bool(found(unenforced, plan.model_copy(update={"sql_text": sql}))) is told
    session.run(f"ALTER TABLE AiAnalysisJob {up}")
    assert stored(session, "NULL") is told
