"""The table of rights is neither too short nor too long: a whole life with exactly these, and each one missed by the check (case C69)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from sqlalchemy import make_url

from deploy.mysql_server import Server
from steps import plan_loader
from steps.checks import Look, privileges
from steps.checks.rights import NEEDS, Need
from steps.mysql import Session, quote
from steps.plan import Plan
from steps.target import ENVIRONMENT, Target
from tests.cli.calling import DEPLOYED, PLAN, Call, standing
from tests.conftest import App

LEDGER = "rights_ledger"
WORDS = (PLAN, "--no-prefect", "--by", "ann", "--reason", "it is due", *DEPLOYED, "--set", f"ledger_schema={LEDGER}", "--set",
         "cleanup.deploy=true", "--set", "cleanup.rollback_deploy=true", "--set", "cleanup.min_age_s=0", "--set", "cleanup.observe_s=0",
         "--set", "cleanup.cooling_s=0")
OPTIONAL = {need for need in NEEDS if need.lost}
SHIPPED = plan_loader.load("ai_analysis_job")
EACH = [(need, right) for need in NEEDS if need.on not in ("parents", "leaves") and need.when(SHIPPED) for right in need.rights]
UNSEEN = ("--set", "backfill.max_history_length=0")
WITHIN = {"table", "schema", "relatives"}
Grant = Callable[..., Target]


@pytest.fixture
def least(job: App, own: Server, admin: App) -> Iterator[Grant]:
    """An account with what the table lists, but for some; the ledger has a schema of its own, so that its rights are told apart."""
    schema = str(job.value("SELECT DATABASE()"))
    admin.run(f"CREATE DATABASE {LEDGER}")
    admin.run("CREATE USER least@'%' IDENTIFIED BY 'secret'")
    admin.run("SET GLOBAL log_bin_trust_function_creators = 1")
    places = {"table": f"{quote(schema)}.AiAnalysisJob", "schema": f"{quote(schema)}.*", "ledger": f"{LEDGER}.*", "server": "*.*",
              "relatives": f"{quote(schema)}.`User`",
              "rehearsal": f"`{privileges.REHEARSAL_PATTERN}`.*"}

    def granted(without: Callable[[Need, str], bool]) -> Target:
        for need in NEEDS:
            rights = [right for right in need.rights if not without(need, right)]
            if rights and need.on not in ("parents", "leaves"):
                admin.run(f"GRANT {', '.join(rights)} ON {places.get(need.on, f'performance_schema.{need.on}')} TO least@'%'")
        return Target(make_url(own.url).set(username="least", password="secret", database=schema))

    yield granted
    admin.run("SET GLOBAL log_bin_trust_function_creators = 0")
    admin.run("DROP USER least@'%'")
    admin.run(f"DROP DATABASE {LEDGER}")


@pytest.fixture
def plan() -> Plan:
    return plan_loader.load(PLAN, (f"ledger_schema={LEDGER}",))


def lived(call: Call, job: App, *accepted: str, settings: tuple[str, ...] = ()) -> None:
    before, rows = job.create_table(), job.rows("SELECT * FROM AiAnalysisJob ORDER BY id")
    more = [*settings, *(word for key in accepted for word in ("--accept", key))]
    for words in (("run", *WORDS), ("run", *WORDS, "--through", "cleanup", "--accept", "cleanup", "--accept", "cleanup-unseen"),
                  ("rollback", *WORDS, "--to", "v0", "--drop-added", "--accept", "discard-added"),
                  ("uninstall", PLAN, "--yes", "--by", "ann", "--reason", "it is over", "--set", f"ledger_schema={LEDGER}",
                   "--accept", "purge-archive")):
        answer = call(*words, *more)
        assert answer.code == 0, answer.text
        assert "could not look" not in answer.text or accepted, answer.text
    assert job.create_table() == before
    assert job.triggers() == []
    assert job.rows("SELECT * FROM AiAnalysisJob ORDER BY id") == rows


def test_a_whole_life_works_with_exactly_the_listed_rights(least: Grant, call: Call, job: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT, least(lambda need, right: False).url.render_as_string(hide_password=False))

    lived(call, job)


def test_without_every_right_that_can_be_missed_it_works_as_acknowledged(least: Grant, call: Call, job: App,
                                                                         monkeypatch: pytest.MonkeyPatch) -> None:
    target = least(lambda need, right: need in OPTIONAL or right == "PROCESS")
    monkeypatch.setenv(ENVIRONMENT, target.url.render_as_string(hide_password=False))
    unhealthy = call("run", *WORDS)
    assert (unhealthy.code, unhealthy.text.count("[privileges]")) == (3, 3), unhealthy.text  # both tables that a gap needs, and PROCESS
    assert "or set backfill.max_history_length = 0" in unhealthy.text
    refused = call("run", *WORDS, *UNSEEN)
    assert (refused.code, refused.text.count("[privileges]")) == (3, 2), refused.text

    lived(call, job, "no-gap", settings=UNSEEN)


@pytest.mark.parametrize(("need", "right"), EACH, ids=[f"{need.on}-{right}".replace(" ", "-") for need, right in EACH])
def test_each_right_is_missed_by_the_check(least: Grant, plan: Plan, need: Need, right: str) -> None:
    target = least(lambda other, name: name == right and (other.on == need.on or {other.on, need.on} <= WITHIN))

    with Session(target) as session:
        found = privileges.run(Look(session, target, plan))

    refusing = not need.lost or bool(need.accept) or right == "PROCESS" or (
        need.on == "schema" and right in ("SELECT", "TRIGGER"))  # the table's too
    assert found, f"{right} on {need.on} may be missing unseen"
    assert all(right in finding.what for finding in found)
    assert any(finding.severity == "refuse" for finding in found) is refusing


def test_a_ledger_that_may_not_be_read_is_refused_and_not_a_fault(least: Grant, call: Call, job: App,
                                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    target = least(lambda need, right: need.on == "ledger" and right == "SELECT")
    monkeypatch.setenv(ENVIRONMENT, target.url.render_as_string(hide_password=False))
    before = standing(job)

    answer = call("check", PLAN, "--set", f"ledger_schema={LEDGER}")

    assert answer.code == 3, answer.text
    assert "could not look" in answer.text
    assert standing(job) == before
