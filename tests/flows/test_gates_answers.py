"""Answers at gates: to what they count, by which plan, and what is on record of each. Also the answer that taking everything back is."""

from __future__ import annotations

import shutil

import pytest

from flows import actions, hearing, rollback
from flows.conductor import PlainConductor
from flows.gate_forms import Approval, Decision
from flows.params import RollbackRequest, RunRequest, Target, Through
from steps import approvals, approving, cleanup_conditions, plan_loader
from steps.errors import ApprovalMissing, GateClosed, Refused, Rejected, WaitingForPerson
from steps.phase import Phase
from steps.rollout import Person, opened
from tests.conftest import App
from tests.flows.deploy_stage import Stage
from tests.flows.test_gates import answered, gated, rollout, run, states, trail
from tests.flows.test_gates_elsewhere import LATER
from tests.flows.test_hearing import in_flow_run

ASKED = "approve = ['deploy']"


def back(stage: Stage, by: str = "carl", deployed_by: str | None = None) -> actions.Result:
    request = RollbackRequest(plan=str(stage.folder), by=by, reason="CHG-1", to=Target.V0, deployed_by=deployed_by)
    return actions.rollback(rollout(stage, by, deployed_by=deployed_by), request, PlainConductor())


def test_a_no_ends_a_run_that_waits_for_its_time_alone(stage: Stage) -> None:
    gated(stage, LATER)
    with pytest.raises(GateClosed):
        in_flow_run(stage, "run-1", Through.DEPLOY)

    no = answered(stage, by="carl", approve=False)

    assert (no.outcome, no.gate.needs) == ("rejected", "time")
    with pytest.raises(Rejected, match="was rejected by carl: looks good"):
        hearing.heard(rollout(stage), "run-1", forward=True)
    assert trail(stage) == ["waiting", "rejected", "told"]
    with pytest.raises(GateClosed):
        run(stage)  # asks anew
    assert (trail(stage)[-1], states(stage)) == ("waiting", {"pre_deploy": "done"})


def test_a_no_takes_an_early_yes_back_before_it_is_one_to_the_time(stage: Stage) -> None:
    gated(stage, f"{ASKED}\n{LATER}")
    with pytest.raises(ApprovalMissing):
        run(stage)
    answered(stage)
    with pytest.raises(GateClosed):
        run(stage)

    assert (answered(stage, approve=False).gate.needs, answered(stage, approve=False).outcome) == ("approval", "rejected")
    assert trail(stage) == ["waiting", "approved", "waiting", "rejected", "rejected"]


def test_taking_back_what_does_not_stand_yet_withdraws_the_yes_and_ends_who_asked(stage: Stage) -> None:
    gated(stage, "approve = ['pre_deploy']")
    with pytest.raises(ApprovalMissing):
        in_flow_run(stage, "run-1", Through.PRE_DEPLOY)
    answered(stage, Phase.PRE_DEPLOY)

    result = back(stage)

    assert (result.outcome, ["carl took the rollout back: CHG-1" in line for line in result.did]) == ("done", [True])
    assert (back(stage).outcome, trail(stage, "pre_deploy")) == ("nothing to do", ["waiting", "approved", "withdrawn"])
    with pytest.raises(Refused, match=r"has asked what counts no longer: the approval by ben of .* carl took the rollout back"):
        hearing.heard(rollout(stage), "run-1", forward=True)
    with pytest.raises(ApprovalMissing):
        run(stage, Through.PRE_DEPLOY)
    assert states(stage) == {}


def test_a_yes_to_a_run_that_ends_nobody_is_none_to_one_that_does(stage: Stage, app: App) -> None:
    gated(stage, ASKED)
    with pytest.raises(ApprovalMissing):
        run(stage, accepted=("blockers",))
    answered(stage)
    request = RunRequest(plan=str(stage.folder), by="ann", reason="CHG-1", through=Through.DEPLOY, end_blockers=True)

    with actions.desk(request, stage.target) as desk, pytest.raises(ApprovalMissing, match="accepted findings changed since"):
        actions.run(desk, request, PlainConductor())

    assert trail(stage) == ["waiting", "approved", "expired", "waiting"]


def test_who_approves_with_another_version_of_the_plan_is_refused_and_the_askers_period_counts(stage: Stage) -> None:
    gated(stage, f"{ASKED}\nexpires_s = 600")
    with pytest.raises(ApprovalMissing):
        run(stage)
    other = stage.folder.with_name("other")
    shutil.copytree(stage.folder, other)
    plan = other / "plan.toml"
    plan.write_text(plan.read_text().replace("expires_s = 600", "expires_s = 2592000"))

    def approve() -> approving.Answered:
        desk = stage.stack.enter_context(opened(plan_loader.load(str(other)), stage.target, Person("ben", "ok"), frozenset()))
        return approving.answer(desk, Phase.DEPLOY, "ben", "ok", approve=True, unmet=cleanup_conditions.unmet)

    step = other / "010_add_state.up.sql"
    text = step.read_text()
    step.write_text(text.replace("ADD COLUMN `state`", "ADD COLUMN  `state`", 1) + "-- another\n")
    with pytest.raises(Refused, match="was asked with another version of the plan"):
        approve()
    step.write_text(text)

    said = approve()

    asked = approvals.clocks.recorded(stage.app.value("SELECT detail->>'$.until' FROM _rollout_event WHERE outcome = 'waiting'"), None)
    assert abs((said.gate.until.server - asked.server).total_seconds()) < 300
    assert trail(stage) == ["waiting", "refused", "approved"]


def test_a_way_back_asks_whether_v1_is_gone_once_a_person_was_asked_to_put_it_out(stage: Stage) -> None:
    gated(stage, "", how="manual")
    with pytest.raises(WaitingForPerson):
        run(stage)
    assert states(stage) == {"pre_deploy": "done", "deploy": "waiting"}

    with pytest.raises(WaitingForPerson, match=r"the old generation .* is back and no V1 instance is left"):
        back(stage)

    assert (states(stage), len(stage.app.triggers())) == ({"pre_deploy": "done", "deploy": "waiting"}, 2)
    assert back(stage, deployed_by="dora").did == ["deploy", "pre_deploy"]
    assert (states(stage), stage.app.triggers(), rollback.standing(rollout(stage))) == (
        {"pre_deploy": "undone", "deploy": "undone"}, [], [])


def test_the_time_of_an_answer_is_when_it_was_given_and_not_when_it_was_used(stage: Stage) -> None:
    gated(stage, ASKED)
    with pytest.raises(ApprovalMissing):
        run(stage)
    given = answered(stage).gate.answered_at
    run(stage)

    (gate,) = approvals.read(rollout(stage).ledger)

    assert (gate.state, gate.answered_at, gate.answer["by"]) == ("opened", given, "ben")


@pytest.mark.parametrize("decision", list(Decision))
def test_a_forms_answer_is_on_record_once_whatever_was_said_meanwhile(stage: Stage, monkeypatch: pytest.MonkeyPatch, decision: Decision,
                                                                       ) -> None:
    gated(stage, ASKED)
    with pytest.raises(ApprovalMissing):
        in_flow_run(stage, "run-1", Through.DEPLOY)
    answered(stage, by="carl", approve=False)
    form = Approval(decision=decision, approver="ben", reason="in the form")
    monkeypatch.setattr(Approval, "load", classmethod(lambda *_: form))

    for _ in range(2):
        with pytest.raises(Rejected):
            hearing.heard(rollout(stage), "run-1", forward=True)
        stage.app.run("DELETE FROM _rollout_event WHERE outcome = 'told'")  # as if it had died before it could say so

    said = stage.app.rows("SELECT outcome, detail->>'$.said', detail->>'$.decision' FROM _rollout_event WHERE detail->>'$.by' = 'ben'")
    assert said == ([("not counted", "in the form", "approve")] if decision is Decision.APPROVE else said)
    assert len(said) <= 1


def test_a_yes_that_was_used_is_not_heard_again_after_a_way_back(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    gated(stage, ASKED)
    with pytest.raises(ApprovalMissing):
        in_flow_run(stage, "run-1", Through.DEPLOY)
    form = Approval(decision=Decision.APPROVE, approver="ben", reason="in the form")
    monkeypatch.setattr(Approval, "load", classmethod(lambda *_: form))
    hearing.heard(rollout(stage), "run-1", forward=True)
    in_flow_run(stage, "run-1", Through.DEPLOY)
    back(stage)
    before = trail(stage)
    assert before == ["waiting", "approved", "opened"]

    with pytest.raises(Refused, match="was away while carl took"):
        hearing.heard(rollout(stage), "run-1", forward=True)

    assert trail(stage) == before
