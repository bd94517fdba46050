"""A release engineer at Prefect's own pages, in a real browser: start, watch, approve, read, go back. Each page leaves a picture."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from flows.params import RollbackRequest, RunRequest
from steps.phase import FORWARD, Phase
from tests.browser import chromium
from tests.browser.pages import Person
from tests.conftest import BY_COMMAND, App

PLAN = "ai_analysis_job"
SETTINGS = (*BY_COMMAND, "cleanup.deploy=true", "cleanup.rollback_deploy=true", "cleanup.min_age_s=0", "cleanup.observe_s=0",
            "cleanup.cooling_s=3600")
pytestmark = pytest.mark.timeout(900)  # on a machine that does little else it takes about a minute
GONE = ("status", "sessionId", "answerId", "completedAt", "errorMessage")


def test_a_table_is_taken_through_all_phases_and_back_by_somebody_who_has_only_the_pages(person: Person, seeded: App) -> None:
    person.opens_deployments()
    expect(person.page.get_by_role("link", name="rollback_cleanup").first).to_be_visible()
    person.looks("deployments")

    starts(person)
    assert states(seeded) == dict.fromkeys((phase.value for phase in FORWARD[:5]), "done")
    assert not tombstones(seeded)

    approves_cleanup(person)
    assert states(seeded)["cleanup"] == "cooling"
    assert tombstones(seeded) == {f"_gone_{column}" for column in GONE}

    sees_six_phases(person)
    reads_what_was_done(person)

    goes_back(person)
    assert states(seeded) == {**dict.fromkeys((phase.value for phase in FORWARD[:5]), "done"), "cleanup": "undone"}
    assert not tombstones(seeded)
    assert len(seeded.triggers()) == 2
    asked = [tuple(map(str, row)) for row in seeded.rows("SELECT verb, actor, reason, exit_code FROM _rollout_run ORDER BY started_at")]
    assert asked[-1] == ("rollback", "ben", "V2 is slow", "0")
    assert {row[:3] for row in asked[:-1]} == {("run", "ann", "CHG-1234")}


def starts(person: Person) -> None:
    """`rollout` by its form, through cleanup; it waits there for somebody to approve."""
    person.opens_form("rollout")
    person.writes(RunRequest, plan=PLAN, by="ann", reason="CHG-1234")
    person.adds(RunRequest, "settings", *SETTINGS)
    person.picks(RunRequest, "accept", "cleanup-unseen")
    person.chooses(RunRequest, "through", "cleanup")
    person.looks("form of rollout")
    person.submits()
    person.waits_for("Suspended")
    person.sees_the_graph_at_rest()
    person.looks("run waits at the gate")


def approves_cleanup(person: Person) -> None:
    """What will happen stands above the fields; who decides and why are recorded."""
    person.asks_the_run_to("Resume")
    dialog = person.page.get_by_role("dialog")
    expect(dialog).to_contain_text("Phase 6, cleanup: may it begin?")
    expect(dialog).to_contain_text("RENAME COLUMN `status` TO `_gone_status`")
    person.looks("gate")
    person.chooses_under("Decision", "approve")
    person.writes_under("Approver", "carl")
    person.writes_under("Reason", "a week without a difference")
    person.looks("gate answered")
    dialog.get_by_role("button", name="Resume").click()
    person.waits_for("Completed")
    person.sees_the_graph_at_rest()
    person.looks("run has ended")
    person.looks_on_a_phone("run on a phone")


def sees_six_phases(person: Person) -> None:
    """In the list of tasks; in the graph they are the chain that the picture shows."""
    tasks = person.opens_tab("Task Runs")
    expect(tasks.get_by_role("link", name=Phase.CLEANUP.label)).to_be_visible()
    person.looks("tasks")
    for phase in Phase:
        tasks.get_by_role("textbox", name="Search by run name").fill(phase.label)
        expect(tasks.get_by_role("link", name=phase.label)).to_be_visible()
        expect(tasks.get_by_role("link", name=phase.label)).to_be_visible()


def reads_what_was_done(person: Person) -> None:
    """The page of the first phase and of the last one: who, why, and the SQL."""
    for name, sql in (("1-pre-deploy", "ADD COLUMN `lifecycleStatus`"), ("6-cleanup", "RENAME COLUMN `status` TO `_gone_status`")):
        artifacts = person.opens_tab("Artifacts")
        one = artifacts.get_by_role("link").filter(has=person.page.get_by_role("heading", name=f"ai-analysis-job-{name}", exact=True)).first
        expect(one).to_be_visible()
        if name == "1-pre-deploy":
            person.looks("artifacts")
        one.click()
        expect(person.main).to_contain_text(sql)
        expect(person.main).to_contain_text("ann")
        expect(person.main).to_contain_text("CHG-1234")
        person.looks(f"artifact {name}")
        person.page.go_back()


def goes_back(person: Person) -> None:
    """`rollback_cleanup` by its form; its own run ends well."""
    person.opens_form("rollback_cleanup")
    person.writes(RollbackRequest, plan=PLAN, by="ben", reason="V2 is slow")
    person.adds(RollbackRequest, "settings", *SETTINGS)
    person.looks("form of a way back")
    person.submits()
    person.waits_for("Completed")
    person.sees_the_graph_at_rest()
    person.looks("way back has ended")
    person.page.get_by_role("link", name="Runs").first.click()
    expect(person.main.get_by_role("link", name=f"rollback_cleanup {PLAN} by ben")).to_be_visible()
    person.looks("runs")


def states(app: App) -> dict[str, str]:
    return {str(phase): str(state) for phase, state in app.rows("SELECT phase, state FROM _rollout_phase")}


def tombstones(app: App) -> set[str]:
    return {str(row[0]) for row in app.rows("SHOW COLUMNS FROM AiAnalysisJob") if str(row[0]).startswith("_gone_")}


def test_without_chromium_the_remedy_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")

    with pytest.raises(chromium.NoChromiumError, match=r"no chromium on the PATH; .*apt-get install -y chromium"):
        chromium.provide_chromium()
