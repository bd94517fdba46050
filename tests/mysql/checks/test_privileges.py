"""The privileges check against real accounts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from steps.checks import Finding, privileges
from steps.checks.rights import COMMITS
from steps.mysql import Session, quote
from steps.target import Target

Run = Callable[..., list[Finding]]
ENOUGH = ("ALL ON {schema}.*", r"ALL ON `\_rollout\_rehearsal\_%`.*", "SELECT ON performance_schema.*",
          "PROCESS, REPLICATION CLIENT, SUPER ON *.*")

SEEN = tuple(f"SELECT ON performance_schema.{name}" for name in (
    "threads", "events_statements_current", "events_transactions_current", "events_statements_summary_by_digest",
    "events_errors_summary_global_by_error", COMMITS))


def test_root_lacks_nothing(found: Run) -> None:
    assert found(privileges) == []


def test_an_account_with_just_enough_is_clean(found: Run, account: Callable[..., Session]) -> None:
    assert found(privileges, by=account(*ENOUGH)) == []


def test_every_missing_right_on_the_table_is_named_at_once(found: Run, account: Callable[..., Session], database: Target) -> None:
    by = account("SELECT, INSERT ON {schema}.*", *ENOUGH[1:])

    table, hold, ledger, archive, seeing = found(privileges, by=by)

    assert all((f.severity, f.accept) == ("refuse", None) for f in (table, hold, ledger, archive))
    missing = "UPDATE, REFERENCES, ALTER, TRIGGER"
    assert f"lacks {missing} on `{database.schema}`.`AiAnalysisJob`" in table.what
    assert table.remedy.startswith(f"GRANT {missing} ON `{database.schema}`.`AiAnalysisJob` TO 'a")
    assert "lacks LOCK TABLES on" in hold.what
    assert "lacks UPDATE, DELETE, CREATE on" in ledger.what
    assert "lacks DROP on" in archive.what
    assert (seeing.severity, seeing.could_not_look) == ("warn", True)
    assert "lacks SHOW VIEW, TRIGGER, EVENT, EXECUTE on" in seeing.what
    assert table.subject.startswith("account 'a")


def test_rights_of_an_active_role_count(found: Run, account: Callable[..., Session], session: Session, database: Target) -> None:
    role = f"r{session.connection_id}"
    session.run(f"CREATE ROLE {quote(role)}")
    try:
        for grant in ENOUGH:
            session.run(f"GRANT {grant} TO {quote(role)}".replace("{schema}", quote(database.schema)))
        by = account("INSERT ON {schema}.*", quote(role))
        without = found(privileges, by=by)
        by.run("SET ROLE ALL")

        advice = f"SET DEFAULT ROLE `{role}`@`%` TO 'a{session.connection_id}'@'%': a role that it was granted has this right"
        assert without
        assert all(f.remedy.startswith(advice) for f in without)
        assert found(privileges, by=by) == []
    finally:
        session.run(f"DROP ROLE {quote(role)}")


def test_no_right_to_rehearse_is_told_with_the_pattern_to_grant(found: Run, account: Callable[..., Session]) -> None:
    [finding] = found(privileges, by=account(ENOUGH[0], *ENOUGH[2:]))

    assert (finding.severity, finding.accept) == ("refuse", None)
    assert r"on `\_rollout\_rehearsal\_%`.*, for the rehearsal on a clone" in finding.what
    assert r"ON `\_rollout\_rehearsal\_%`.* TO" in finding.remedy


def test_a_hidden_performance_schema_is_could_not_look_with_no_gap(found: Run, account: Callable[..., Session]) -> None:
    [finding] = [f for f in found(privileges, by=account(*ENOUGH[:2], ENOUGH[3], *SEEN)) if f.severity == "refuse"]

    assert (finding.severity, finding.accept, finding.could_not_look) == ("refuse", "no-gap", True)
    assert "lacks SELECT on performance_schema.metadata_locks," in finding.what
    assert "GRANT SELECT ON performance_schema.metadata_locks TO" in finding.remedy


def test_without_process_there_is_a_warning_and_no_gentle_pass(found: Run, account: Callable[..., Session]) -> None:
    seen, history = found(privileges, by=account(*ENOUGH[:3], "REPLICATION CLIENT, SUPER ON *.*"))

    assert (seen.severity, seen.accept) == ("warn", None)
    assert "GRANT PROCESS ON *.*" in seen.remedy
    assert (history.severity, history.accept) == ("refuse", None)
    assert "history list length" in history.what
    assert history.remedy.endswith("or set backfill.max_history_length = 0")


def test_triggers_under_a_binary_log_name_the_servers_parameter(found: Run, account: Callable[..., Session],
                                                                session: Session) -> None:
    if session.one("SELECT @@log_bin, @@log_bin_trust_function_creators") != (1, 0):
        pytest.fail("the test server has its binary log off or trusts trigger creators: this cannot be shown on it")
    by = account(*ENOUGH[:3], "PROCESS, REPLICATION CLIENT, SET_ANY_DEFINER, SYSTEM_VARIABLES_ADMIN ON *.*")

    [finding] = found(privileges, by=by)

    assert (finding.severity, finding.accept) == ("refuse", None)
    assert "log_bin_trust_function_creators is 0" in finding.what
    assert "1419" in finding.what
    assert finding.remedy.startswith("SET GLOBAL log_bin_trust_function_creators = 1")
