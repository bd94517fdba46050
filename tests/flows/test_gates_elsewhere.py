"""Several who ask at one gate, and runs that wait elsewhere by the time somebody answers: each goes on, or ends, as it was said."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

import pytest

from flows import again, hearing, reopening
from flows.one_at_a_time import still_asks
from flows.params import Through
from flows.report import audit_trail, text
from steps import approvals, expiry
from steps.approvals import TIME
from steps.errors import ApprovalMissing, GateClosed, Refused, Rejected
from tests.flows.deploy_stage import Stage
from tests.flows.test_gates import answered, at, gated, rollout, run, states, trail
from tests.flows.test_hearing import OPENS, back, in_flow_run

LATER = f"[gates.window]\nnot_before = {at(datetime.now(UTC) + timedelta(days=2))}\nphases = ['deploy']"


def waiting(stage: Stage) -> list[tuple[str, str]]:
    return [(one.flow_run, one.closed) for one in reopening.waiting_for_time(rollout(stage))]


def asks_for_time(stage: Stage, flow_run: str, *settings: str) -> None:
    with pytest.raises(GateClosed):
        in_flow_run(stage, flow_run, Through.DEPLOY, *settings)


def test_each_run_that_waits_for_its_time_is_resumed_whoever_asks_beside_or_behind_it(stage: Stage) -> None:
    gated(stage, LATER)
    asks_for_time(stage, "run-1")
    asks_for_time(stage, "run-2")
    asks_for_time(stage, "run-3", "backfill.target_ms=77")  # a gate of its own, in front of the other
    assert [flow_run for flow_run, closed in waiting(stage) if closed] == ["run-1", "run-2", "run-3"]

    stage.app.run(OPENS)

    assert waiting(stage) == [("run-1", ""), ("run-2", ""), ("run-3", "")]
    tried: list[str] = []
    assert reopening.reopen(rollout(stage), resume=lambda flow_run, _: bool(tried.append(flow_run)) or flow_run == "run-1") == ["run-1"]
    assert tried == ["run-1", "run-2", "run-3"]


def test_a_visit_is_planned_again_while_any_of_them_waits(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    planned: list[str] = []
    monkeypatch.setattr(reopening.visits, "schedule", lambda gate, *_: planned.append(gate))
    gated(stage, LATER)
    asks_for_time(stage, "run-1")
    asks_for_time(stage, "run-2")

    reopening.visit_again(rollout(stage), lambda flow_run: flow_run == "run-1")
    reopening.visit_again(rollout(stage), lambda _: False)

    assert planned == [stage.app.value("SELECT detail->>'$.gate' FROM _rollout_event WHERE outcome = 'waiting' LIMIT 1")]


def test_a_run_whose_phase_somebody_else_has_begun_waits_for_nothing_and_is_in_nobodys_way(stage: Stage) -> None:
    gated(stage, LATER)
    asks_for_time(stage, "run-1")
    assert still_asks(rollout(stage), "run-1")
    gated(stage, "")
    assert run(stage, by="dora").did == ["deploy"]

    assert waiting(stage) == [("run-1", "")]
    assert not still_asks(rollout(stage), "run-1")


def test_one_that_stood_on_what_was_taken_back_is_not_resumed(stage: Stage) -> None:
    gated(stage, LATER)
    asks_for_time(stage, "run-1")
    stage.app.run(OPENS)
    back(stage)

    assert waiting(stage) == []


def test_a_yes_that_is_taken_back_ends_the_run_though_it_waits_for_its_time_by_then(stage: Stage) -> None:
    gated(stage, f"approve = ['deploy']\n{LATER}")
    with pytest.raises(ApprovalMissing):
        in_flow_run(stage, "run-1", Through.DEPLOY)
    answered(stage)
    asks_for_time(stage, "run-1")
    assert still_asks(rollout(stage), "run-1")

    answered(stage, approve=False)

    assert not still_asks(rollout(stage), "run-1")  # it ends as soon as it goes on
    with pytest.raises(Rejected, match="was rejected by ben: looks good"):
        hearing.heard(rollout(stage), "run-1", forward=True)
    assert states(stage) == {"pre_deploy": "done"}


def test_a_no_that_came_too_late_ends_who_asked_once_wherever_it_waits(stage: Stage) -> None:
    gated(stage, "approve = ['deploy']", how="manual")
    with pytest.raises(ApprovalMissing):
        in_flow_run(stage, "run-1", Through.DEPLOY)
    answered(stage)
    with pytest.raises(Exception, match="a person has to confirm"):
        in_flow_run(stage, "run-1", Through.DEPLOY)

    late = answered(stage, by="carl", approve=False)

    assert late.outcome == approvals.LATE
    assert stage.app.value("SELECT run_id FROM _rollout_event WHERE outcome = 'not counted'") == stage.app.value(
        "SELECT run_id FROM _rollout_event WHERE outcome = 'waiting' AND step = 'gate'")
    with pytest.raises(Rejected, match="was rejected by carl: looks good; too late") as ended:
        hearing.heard(rollout(stage), "run-1", forward=True)
    assert "rollout rollback" in ended.value.remedy
    hearing.heard(rollout(stage), "run-1", forward=True)  # a retry asks anew
    assert trail(stage) == ["waiting", "approved", "opened", "not counted", "told"]


def test_an_answer_after_the_phase_was_begun_without_it_changes_nothing_and_says_so(stage: Stage) -> None:
    gated(stage, "approve = ['deploy']")
    with pytest.raises(ApprovalMissing):
        run(stage)
    gated(stage, "")
    assert run(stage, by="dora").did == ["deploy"]

    yes, no = answered(stage), answered(stage, approve=False)

    assert (yes.outcome, "the phase has begun without it" in yes.said) == ("nothing to do", True)
    assert (no.outcome, "takes nothing back" in no.said) == (approvals.LATE, True)
    assert trail(stage) == ["waiting", "not counted"]


def test_a_report_shows_no_question_as_waiting_whose_phase_was_gone_through_otherwise(stage: Stage) -> None:
    gated(stage, "approve = ['deploy']")
    with pytest.raises(ApprovalMissing):
        run(stage)
    waits = audit_trail(rollout(stage).ledger)["gates"]
    gated(stage, "")
    run(stage, by="dora")

    (gate,) = audit_trail(rollout(stage).ledger)["gates"]

    assert ([one["state"] for one in waits], gate["state"], gate["calls"], gate["until"]) == (["waiting"], "passed", [], None)
    assert "passed otherwise, asked by ann; the phase has begun without it" in text(audit_trail(rollout(stage).ledger))


def test_a_gate_of_time_says_that_nobody_has_to_approve_it(stage: Stage) -> None:
    gated(stage, LATER)
    asks_for_time(stage, "run-1")

    with pytest.raises(Refused, match="waits for its time alone, which nobody has to approve"):
        answered(stage)
    assert trail(stage) == ["waiting"]


def test_a_question_that_the_same_person_asked_from_a_shell_too_is_not_withdrawn_with_her_flow_run(stage: Stage) -> None:
    gated(stage, "approve = ['deploy']")
    with pytest.raises(ApprovalMissing):
        in_flow_run(stage, "run-1", Through.DEPLOY)
    for _ in range(2):
        with pytest.raises(ApprovalMissing):
            run(stage, accepted=())

    assert reopening.withdraw(rollout(stage), cancelled=lambda _: True) == []
    assert trail(stage) == ["waiting", "waiting"]


def test_a_way_back_withdraws_no_question_that_its_phase_has_gone_past(stage: Stage) -> None:
    gated(stage, LATER)
    asks_for_time(stage, "run-1")
    stage.app.run("UPDATE _rollout_event SET detail = JSON_SET(detail, '$.binding', JSON_OBJECT()) WHERE step = 'gate'")
    gated(stage, "approve = ['deploy']")
    with pytest.raises(ApprovalMissing):
        run(stage)
    answered(stage)
    assert run(stage).did == ["deploy"]
    back(stage)

    expiry.withdraw_all(rollout(stage))

    assert trail(stage) == ["waiting", "waiting", "approved", "opened"]
    assert {gate.needs for gate in approvals.read(rollout(stage).ledger)} == {"approval", TIME}


def test_cleanup_on_its_way_forward_takes_nothing_back(stage: Stage) -> None:
    gated(stage, "")
    with pytest.raises(ApprovalMissing):
        in_flow_run(stage, "run-1", Through.CLEANUP)
    done = run(stage, Through.CLEANUP, by="dora", accepted=("cleanup", "cleanup-unseen", "cleanup-unready"), deployed_by="dora")
    assert done.did == ["cleanup"]

    hearing.heard(rollout(stage), "run-1", forward=True)  # would refuse what was taken back

    assert stage.app.rows("SELECT step FROM _rollout_event WHERE phase = 'cleanup' AND direction = 'back'") == []
    assert [row[0] for row in stage.app.rows("SELECT outcome FROM _rollout_event WHERE phase = 'cleanup' AND step LIKE 'trigger %%'")] == [
        "done", "done"]


def test_what_was_said_yes_to_for_the_asker_alone_is_not_said_again_by_somebody_else(stage: Stage) -> None:
    gated(stage, "")
    accepted = ["cleanup", "cleanup-unready", "cleanup-unseen"]
    options = f"UPDATE _rollout_run SET options = JSON_SET(options, '$.accept', JSON_ARRAY({', '.join(map(repr, accepted))}))"
    assert run(stage).did == ["pre_deploy", "deploy"]
    stage.app.run(options)

    assert again.request(rollout(stage), str(stage.folder), "ben", "on").accept == ["cleanup-unseen"]
    assert again.request(rollout(stage), str(stage.folder), "Ann", "on").accept == accepted


def test_a_suspended_run_is_answered_by_the_key_under_which_it_waits(prefect_server: None) -> None:
    from prefect import flow
    from prefect.client.orchestration import get_client
    from prefect.states import Suspended

    from flows import suspended

    @flow
    def sleeper() -> None:
        pass

    with get_client(sync_client=True) as client:
        deployment = client.create_deployment(client.create_flow(sleeper), "waits")
        made = {key: client.create_flow_run_from_deployment(deployment, state=Suspended(timeout_seconds=600, pause_key=key)).id
                for key in ("gate-1", "gate-2")}
        found = suspended.resume([*map(str, made.values()), str(uuid.uuid4())], lambda key: {"reason": "now"} if key == "gate-1" else None)
        paused = [client.read_flow_run(one).state.is_paused() for one in made.values()]

    assert (found.runs, found.elsewhere, found.trouble) == ([str(made["gate-1"])], [str(made["gate-2"])], "")
    assert paused == [False, True]
