"""All checks together: complete, in order, quick, and honest about what they could not see."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from steps import checks
from steps.checks import CHECKS, Check, Look, findings, statuses
from steps.errors import StatementFailed
from steps.mysql import Session
from steps.plan import Plan
from steps.target import Target

MOST_QUESTIONS = 100


def test_a_clean_table_has_two_warnings_on_claims_and_on_a_key_that_the_server_forgets(
        session: Session, database: Target, plan: Plan) -> None:
    assert [(f.check, f.severity) for f in findings(Look(session, database, plan))] == [
        ("unenforced", "warn"), ("claims", "warn")]


def test_all_checks_together_ask_the_server_less_than_a_hundred_times(session: Session, database: Target, plan: Plan) -> None:
    """What several checks need is asked once: a round trip to a distant server is what a check costs."""
    def asked() -> int:
        return int(session.one("SHOW SESSION STATUS LIKE 'Questions'")[1])

    before = asked()
    findings(Look(session, database, plan))

    assert asked() - before < MOST_QUESTIONS


def test_all_findings_come_at_once_in_the_order_of_the_tuple(session: Session, database: Target, plan: Plan) -> None:
    session.run("UPDATE AiAnalysisJob SET status = 'odd' WHERE id = 'j0'")
    session.run("ALTER TABLE AiAnalysisJob DROP COLUMN answerId")
    session.run("CREATE VIEW v AS SELECT id, sessionId FROM AiAnalysisJob")

    assert [f.check for f in findings(Look(session, database, plan))] == ["table-shape", "unenforced", "statuses", "claims",
                                                                            "dependents"]


def test_names_are_unique_and_are_the_stems_of_their_files() -> None:
    stems = [check.run.__module__.rpartition(".")[2].replace("_", "-") for check in CHECKS]

    assert [check.name for check in CHECKS] == stems
    assert len(set(stems)) == len(stems)


def test_a_denied_check_could_not_look(account: Callable[..., Session], database: Target, plan: Plan) -> None:
    blind = account("INSERT ON {schema}.AiAnalysisJob", "SELECT(id) ON {schema}.AiAnalysisJob",
                    "INSERT(status) ON {schema}.AiAnalysisJob")

    found = [f for f in findings(Look(blind, database, plan)) if f.check == "statuses"]

    assert [(f.severity, f.subject, f.accept, f.could_not_look) for f in found] == [
        ("refuse", "check statuses", "could-not-look:statuses", True)]
    assert "could not look: MySQL error 1143" in found[0].what
    assert "--accept could-not-look:statuses" in found[0].remedy


def test_a_look_that_takes_too_long_could_not_look(session: Session, database: Target, plan: Plan,
                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "CHECKS", (Check("statuses", "", statuses.run),))
    monkeypatch.setattr(statuses, "BOUNDED", "/*+ MAX_EXECUTION_TIME(1) */")
    for _ in range(12):  # 36,000 rows, so that grouping them takes longer than 1 ms
        session.run("INSERT INTO AiAnalysisJob (id, userId, jobType, status, updatedAt) "
                    "SELECT UUID(), userId, jobType, 'odd', updatedAt FROM AiAnalysisJob")

    found = findings(Look(session, database, plan))

    assert [(f.check, f.severity, f.accept, f.could_not_look) for f in found] == [
        ("statuses", "refuse", "could-not-look:statuses", True)]
    assert "3024" in found[0].what
    assert found[0].remedy.startswith("run again at a quieter time")


def test_an_error_of_another_kind_passes(session: Session, database: Target, plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "CHECKS", (Check("broken", "", lambda look: session.query("SELECT nothing")),))

    with pytest.raises(StatementFailed, match="1054"):
        findings(Look(session, database, plan))


def test_a_missing_table_of_the_application_is_no_could_not_look(session: Session, database: Target, plan: Plan,
                                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "CHECKS", (Check("broken", "", lambda look: session.query("SELECT 1 FROM nowhere")),))

    with pytest.raises(StatementFailed, match="1146"):
        findings(Look(session, database, plan))


def test_a_table_that_does_not_exist_is_told_once(session: Session, database: Target, plan: Plan) -> None:
    elsewhere = plan.model_copy(update={"plan": plan.plan.model_copy(update={"table": "NoSuchTable"})})

    assert [f.check for f in findings(Look(session, database, elsewhere))] == ["table-shape"]
