"""Runs of a deployment that wait at gates: suspended, without a process, answered in the UI or from a shell, whoever is killed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from steps.target import ENVIRONMENT
from tests.cli.calling import Call, caller
from tests.cli.conftest import quiet_afterwards  # noqa: F401  # used by being here
from tests.flows import stream
from tests.flows.deploy_stage import CLEANUP, Stage
from tests.flows.nothing_held import nothing_held
from tests.flows.serving import Serving, until

pytestmark = pytest.mark.timeout(400)
UNSEEN = "cleanup-unseen"


@pytest.fixture
def shell(serving: Serving, stage: Stage, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    monkeypatch.setenv(ENVIRONMENT, stage.target.url.render_as_string(hide_password=False))
    return caller(monkeypatch, capsys)


def gated(stage: Stage, text: str, **deploy: Any) -> None:
    stage.plan(cleanup=f"{CLEANUP}\n[gates]\n{text}\n", **(deploy or {"command": "true", "rollback_command": "true"}))


def outcomes(stage: Stage, step: str = "gate") -> list[str]:
    return [str(row[0]) for row in stage.app.rows("SELECT outcome FROM _rollout_event WHERE step = %s ORDER BY id", step)]


def states(stage: Stage) -> dict[str, str]:
    return {str(phase): str(state) for phase, state in stage.app.rows("SELECT phase, state FROM _rollout_phase")}


def test_a_gate_outlives_the_runner_and_only_a_whole_answer_of_one_who_may_opens_it(serving: Serving, stage: Stage) -> None:
    gated(stage, 'approve = ["pre_deploy"]\napprovers = ["ben"]\nfour_eyes = true')
    before = stage.app.create_table("job")
    flow_run = serving.begun(through="pre_deploy")

    waits = serving.suspended(flow_run)

    assert (waits.name, states(stage), nothing_held(stage)) == ("Suspended", {}, [])
    (sign,) = stream.told("mysql-rollout.asleep", f"prefect.flow-run.{flow_run}", 1)
    assert "prefect.tag.mysql-rollout" in [one["prefect.resource.id"] for one in sign["related"]]
    text, schema = serving.asked(flow_run, waits)
    assert "ADD COLUMN `state` VARCHAR(32) NOT NULL DEFAULT 'pending'" in text
    assert "| 010_add_state | INSTANT | an instant |" in text
    assert "CREATE DEFINER=CURRENT_USER TRIGGER `rollout_small_bu`" in text
    assert "then the first pass over all rows: about " in text
    assert text.index("## Findings") < text.index("## Statements, in order") < text.index("ADD COLUMN")
    assert "Asked by **ann**: it is due" in text
    assert sorted(schema["required"]) == ["approver", "decision", "reason"]
    left = waits.state_details.pause_timeout - datetime.now(UTC)
    assert timedelta(days=2) < left < timedelta(days=3)

    serving.kill()
    for refused in ({}, {"decision": "approve"}, {"decision": "approve", "approver": "ben", "reason": ""},
                    {"decision": "approve", "approver": " ", "reason": "x"}, {"decision": "yes", "approver": "ben", "reason": "x"},
                    {"decision": "approve", "approver": "ben", "reason": "x" * 501}):
        assert serving.answer(flow_run, **refused).status.value == "REJECT", refused
    assert serving.state(flow_run).name == "Suspended"
    serving.start()

    assert serving.answer(flow_run, decision="approve", approver="ann", reason="I say so").status.value == "ACCEPT"
    again = serving.suspended(flow_run, waits)
    assert "the last answer did not count: approval by ann does not count: gates.approvers are ben" in serving.asked(flow_run, again)[0]
    assert (stage.app.create_table("job"), states(stage)) == (before, {})

    assert serving.answer(flow_run, decision="approve", approver="ben", reason="looked at it").status.value == "ACCEPT"
    ended = serving.ended(flow_run)
    assert (ended.name, ended.message) == ("Completed", "done: pre_deploy")
    assert states(stage) == {"pre_deploy": "done"}
    assert "`state` varchar(32)" in stage.app.create_table("job")
    assert outcomes(stage) == ["waiting", "not counted", "waiting", "approved", "opened"]
    assert stage.app.value("SELECT detail->>'$.by' FROM _rollout_event WHERE step = 'gate' AND outcome = 'approved'") == "ben"
    late = serving.answer(flow_run, decision="approve", approver="ben", reason="again")
    assert late.status.value != "ACCEPT"
    assert nothing_held(stage) == []


def test_cleanup_is_approved_from_a_shell_and_the_suspended_run_goes_on(serving: Serving, stage: Stage, shell: Call) -> None:
    gated(stage, "")
    flow_run = serving.begun(through="cleanup", accept=[UNSEEN], deployed_by="ann")
    waits = serving.suspended(flow_run)
    text, schema = serving.asked(flow_run, waits)
    assert "columns status of job may go; no release before V2 can run afterwards" in text
    assert all(word in text for word in ("DROP COLUMN", "DROP TRIGGER `rollout_small_bi`", "V2 is put out by a person"))
    assert "although_unready" in schema["properties"]
    assert "`status`" in stage.app.create_table("job")

    said = shell("approve", str(stage.folder), "cleanup", "--by", "ben", "--reason", "soaked long enough", "--json")

    assert (said.code, said.document["outcome"], said.document["prefect"]["resumed"]) == (0, "approved", [str(flow_run)])
    every = "pre_deploy, deploy, backfill, verify, shadow_write, cleanup"
    assert serving.ended(flow_run).message == f"done: {every}"  # also what it did before it was suspended
    assert "`status`" not in stage.app.create_table("job")
    assert outcomes(stage) == ["waiting", "approved", "opened"]
    page = serving.artifact(flow_run, "small-6-cleanup")
    assert "approved, " in page
    assert "by **ben**: soaked long enough" in page
    assert "DROP TRIGGER `rollout_small_bi`" in page
    synced = shell("report", str(stage.folder), "--sync", "--json")
    assert synced.code == 0, synced.text
    assert serving.state(flow_run).name == "Completed"  # not told again as one of the runs that only waited


def test_a_rejection_ends_the_run_and_the_next_one_asks_anew(serving: Serving, stage: Stage, shell: Call) -> None:
    gated(stage, 'approve = ["deploy"]')
    by_shell, by_form = serving.begun(through="deploy"), None
    serving.suspended(by_shell)

    assert shell("reject", str(stage.folder), "deploy", "--by", "ben", "--reason", "not on a Friday").code == 0
    state = serving.ended(by_shell)
    assert (state.type.value, state.name, "was rejected by ben: not on a Friday" in state.message) == ("FAILED", "Stopped", True)

    by_form = serving.begun(through="deploy")
    serving.suspended(by_form)
    assert serving.answer(by_form, decision="reject", approver="carl", reason="still Friday").status.value == "ACCEPT"
    state = serving.ended(by_form)
    assert (state.name, "was rejected by carl: still Friday" in state.message) == ("Stopped", True)
    assert states(stage) == {"pre_deploy": "done"}
    assert outcomes(stage) == ["waiting", "rejected", "told", "waiting", "rejected", "told"]


def test_who_resumes_too_early_is_asked_again_and_report_leaves_a_waiting_run_alone(serving: Serving, stage: Stage, shell: Call) -> None:
    gated(stage, "")
    assert shell("run", str(stage.folder), "--through", "deploy", "--no-prefect", "--by", "ann", "--reason", "x").code == 0
    gated(stage, "soak = { deploy = 3600 }")
    flow_run = serving.begun(through="backfill")
    waits = serving.suspended(flow_run)
    text, schema = serving.asked(flow_run, waits)
    assert "less than gates.soak.deploy = 3600 s ago" in text
    assert schema["required"] == ["reason"]
    assert shell("report", str(stage.folder), "--sync").code == 0
    assert serving.state(flow_run).name == "Suspended"

    assert serving.answer(flow_run, reason="is it time?").status.value == "ACCEPT"
    again = serving.suspended(flow_run, waits)
    assert again.state_details.pause_key != waits.state_details.pause_key
    assert "backfill" not in states(stage)

    stage.app.run("UPDATE _rollout_phase SET at = at - INTERVAL 2 HOUR WHERE phase = 'deploy'")
    resumed = shell("resume", str(stage.folder), "--by", "ben", "--reason", "now it is", "--json")
    assert (resumed.code, resumed.document["prefect"]["resumed"]) == (0, [str(flow_run)])
    assert serving.ended(flow_run).message == "done: backfill"
    assert states(stage)["backfill"] == "done"
    assert outcomes(stage) == ["waiting", "resumed", "waiting", "resumed", "opened"]


def test_a_manual_deploy_and_its_way_back_ask_who_has_seen_it(serving: Serving, stage: Stage) -> None:
    gated(stage, "", how="manual")
    forward = serving.begun(through="deploy")
    waits = serving.suspended(forward)
    text, schema = serving.asked(forward, waits)
    assert "(V1) is deployed and healthy" in text
    assert sorted(schema["required"]) == ["confirmed_by", "note"]
    assert states(stage) == {"pre_deploy": "done", "deploy": "waiting"}

    assert serving.answer(forward).status.value == "REJECT"
    assert serving.answer(forward, confirmed_by="ben", note="release 1.8").status.value == "ACCEPT"
    assert serving.ended(forward).message == "done: pre_deploy, deploy"
    assert stage.phase() == ("done", {"how": "confirmed by ben"})

    back = serving.begun("rollback_deploy")
    waits = serving.suspended(back)
    assert "(V0) is back" in serving.asked(back, waits)[0]
    assert stage.phase()[0] == "done"
    assert serving.answer(back, confirmed_by="carl", note="release 1.7 again").status.value == "ACCEPT"
    assert serving.ended(back).message == "done: deploy"
    assert stage.phase()[0] == "undone"
    assert outcomes(stage, "confirmation") == ["confirmed", "confirmed"]
    runs = stage.app.rows("SELECT verb, exit_code FROM _rollout_run ORDER BY started_at")
    assert runs == [("run", 4), ("run", 0), ("rollback", 0)]  # who was told yes is not asked once more before it goes on
    said = stage.app.rows("SELECT IF(run_id = '-', 'beside', run_id), detail->>'$.by' FROM _rollout_event WHERE step = 'confirmation'")
    last = stage.app.value("SELECT run_id FROM _rollout_run WHERE verb = 'run' AND exit_code = 0")
    assert said == [(last, "ben"), ("beside", "carl")]


def test_an_answer_that_comes_too_late_fails_the_run_and_the_same_command_asks_anew(serving: Serving, stage: Stage) -> None:
    gated(stage, 'approve = ["deploy"]\nexpires_s = 4')
    flow_run = serving.begun(through="deploy")

    ends = serving.suspended(flow_run).state_details.pause_timeout
    until(lambda: datetime.now(UTC) > ends)  # a server's own service fails it then; the tests' server has none and does it when asked
    late = serving.answer(flow_run, decision="approve", approver="ben", reason="sorry, lunch")
    assert (late.status.value, serving.ended(flow_run).type.value) == ("REJECT", "FAILED")
    assert states(stage) == {"pre_deploy": "done"}
    until(lambda: outcomes(stage) == ["waiting", "expired"])  # said by the visit that was scheduled for then, while nobody asks anew
    until(lambda: nothing_held(stage) == [])

    gated(stage, 'approve = ["deploy"]\nexpires_s = 600')
    again = serving.begun(through="deploy")
    serving.suspended(again)
    assert outcomes(stage) == ["waiting", "expired", "waiting"]
    assert serving.answer(again, decision="approve", approver="ben", reason="now").status.value == "ACCEPT"
    assert serving.ended(again).message == "done: deploy"
    assert states(stage) == {"pre_deploy": "done", "deploy": "done"}


def test_a_run_that_waits_for_time_alone_goes_on_by_a_visit_that_is_scheduled_for_then(serving: Serving, stage: Stage, shell: Call) -> None:
    gated(stage, "")
    assert shell("run", str(stage.folder), "--through", "deploy", "--no-prefect", "--by", "ann", "--reason", "x").code == 0
    gated(stage, 'soak = { deploy = 3600 }\napprove = ["backfill"]')
    flow_run = serving.begun(through="backfill")
    asked = serving.suspended(flow_run)
    assert serving.answer(flow_run, decision="approve", approver="ben", reason="tonight").status.value == "ACCEPT"

    text, _ = serving.asked(flow_run, serving.suspended(flow_run, asked))

    assert "Once the time has come, it goes on by itself at " in text
    assert "- approved by ben at " in text
    gate = stage.app.value("SELECT detail->>'$.gate' FROM _rollout_event WHERE detail->>'$.needs' = 'time'")

    def visits() -> list[Any]:
        return [run for run in serving.runs_of("parity_watch") if str(run.idempotency_key).startswith(gate) and run.state.is_scheduled()]

    (visit,) = visits()
    assert visit.parameters["request"]["plan"] == str(stage.folder)
    due = datetime.fromisoformat(stage.app.value("SELECT detail->>'$.opens_at' FROM _rollout_event WHERE detail->>'$.needs' = 'time'"))
    assert timedelta(0) < visit.state.state_details.scheduled_time - due < timedelta(seconds=60)

    serving.now(visit.id)  # too early: it schedules another one
    (later,) = until(visits)
    assert (serving.ended(visit.id).name, serving.state(flow_run).name) == ("NothingToDo", "Suspended")
    stage.app.run("UPDATE _rollout_phase SET at = at - INTERVAL 2 HOUR, detail = JSON_REMOVE(detail, '$.by_tool_clock') "
                  "WHERE phase = 'deploy'")
    stage.app.run("DELETE FROM _rollout_event WHERE outcome = 'soaking'")
    stage.app.run("UPDATE _rollout_event SET detail = JSON_SET(detail, '$.opens_at', '2026-01-01T00:00:00+00:00') "
                  "WHERE detail->>'$.needs' = 'time'")
    serving.now(later.id)

    assert serving.ended(flow_run).message == "done: backfill"
    assert states(stage)["backfill"] == "done"
    assert outcomes(stage) == ["waiting", "approved", "waiting", "resumed", "opened"]
    assert stage.app.rows("SELECT detail->>'$.by', detail->>'$.why' FROM _rollout_event WHERE outcome = 'resumed'") == [
        ("parity_watch", "its time has come")]
    summary = serving.artifact(flow_run, "small-summary")
    assert ("approved, " in summary, "by **ben**: tonight" in summary) == (True, True)
    assert sorted(key for key in serving.artifacts(flow_run) if key in ("small-plan", "small-summary")) == ["small-plan", "small-summary"]
    assert "tries of this phase" not in serving.artifact(flow_run, "small-3-backfill")


def test_a_question_whose_run_is_cancelled_in_prefect_is_withdrawn_on_record(serving: Serving, stage: Stage, shell: Call) -> None:
    gated(stage, 'approve = ["deploy"]')
    flow_run = serving.begun(through="deploy")
    serving.suspended(flow_run)
    look = ("watch", str(stage.folder), "--by", "carl", "--reason", "what waits?", "--json")
    assert shell(*look).code == 0
    assert outcomes(stage) == ["waiting"]

    serving.cancel(flow_run)
    assert [shell(*look).code, shell(*look).code] == [0, 0]

    assert outcomes(stage) == ["waiting", "withdrawn"]
    why = str(stage.app.value("SELECT detail->>'$.why' FROM _rollout_event WHERE outcome = 'withdrawn'"))
    assert f"flow run {flow_run}, which asked, was cancelled in Prefect" in why
    refused = shell("approve", str(stage.folder), "deploy", "--by", "ben", "--reason", "go", "--json")
    assert (refused.code, states(stage)) == (3, {"pre_deploy": "done"})
    again = serving.begun(through="deploy")
    assert "was withdrawn: flow run" in serving.asked(again, serving.suspended(again))[0]
