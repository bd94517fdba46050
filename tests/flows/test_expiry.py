"""Questions and approvals whose time has run out: told by whoever looks next, once, and said when somebody asks anew."""

from __future__ import annotations

import pytest

from flows import actions
from flows.conductor import PlainConductor
from flows.one_at_a_time import still_asks
from flows.params import RollbackRequest, Target, Through
from flows.reopening import withdraw
from flows.watching import WatchRequest, watch
from steps import approvals, expiry
from steps.errors import ApprovalMissing
from tests.flows.deploy_stage import Stage
from tests.flows.test_gates import answered, gated, rollout, run, states, trail

PAST = "2026-01-01T00:00:00.000+00:00"
SINCE = (f"UPDATE _rollout_event SET detail = JSON_SET(detail, '$.until', '{PAST}', '$.until_by_tool_clock', '{PAST}') "
         "WHERE step = 'gate' AND outcome = %s")


def looked(stage: Stage) -> str:
    return watch(rollout(stage), WatchRequest(plan=str(stage.folder), by="carl", reason="the watch"), PlainConductor()).outcome


def whys(stage: Stage) -> list[str]:
    return [str(row[0]) for row in stage.app.rows("SELECT detail->>'$.why' FROM _rollout_event WHERE outcome = 'expired' ORDER BY id")]


@pytest.mark.parametrize(("approved", "began", "ended"), [(False, "the question of ", "was not answered by "),
                                                           (True, "the approval by ben of ", "was not used by ")])
def test_what_has_expired_is_told_once_by_the_next_look_and_by_the_next_question(stage: Stage, approved: bool, began: str, ended: str,
                                                                                 ) -> None:
    gated(stage, 'approve = ["deploy"]')
    with pytest.raises(ApprovalMissing):
        run(stage)
    if approved:
        answered(stage)
    before = trail(stage)
    assert (looked(stage), trail(stage)) == ("nothing to do", before)

    stage.app.run(SINCE, before[-1])
    looked(stage)
    looked(stage)

    assert trail(stage) == [*before, "expired"]
    (why,) = whys(stage)
    assert (why.startswith(began), ended in why) == (True, True)
    asked = stage.app.value("SELECT run_id FROM _rollout_event WHERE outcome = 'waiting'")
    assert stage.app.value("SELECT run_id FROM _rollout_event WHERE outcome = 'expired'") == asked
    with pytest.raises(ApprovalMissing) as again:
        run(stage)
    assert why in again.value.reason
    assert (trail(stage), states(stage)) == ([*before, "expired", "waiting"], {"pre_deploy": "done"})


def test_a_gate_that_was_passed_otherwise_does_not_expire(stage: Stage) -> None:
    gated(stage, 'approve = ["deploy"]')
    with pytest.raises(ApprovalMissing):
        run(stage)
    gated(stage, "")
    assert run(stage).did == ["deploy"]
    stage.app.run(SINCE, "waiting")

    looked(stage)

    assert trail(stage) == ["waiting"]


def test_a_suspended_run_whose_question_was_withdrawn_is_in_nobodys_way(stage: Stage) -> None:
    gated(stage, 'approve = ["deploy"]')
    with pytest.raises(ApprovalMissing):
        run(stage)
    stage.app.run("UPDATE _rollout_event SET detail = JSON_SET(detail, '$.flow_run', 'run-1') WHERE outcome = 'waiting'")
    assert [still_asks(rollout(stage), one) for one in ("run-1", "run-2")] == [True, True]

    back = RollbackRequest(plan=str(stage.folder), by="carl", reason="not this week", to=Target.V0)
    actions.rollback(rollout(stage, "carl"), back, PlainConductor())

    assert (still_asks(rollout(stage), "run-1"), trail(stage)) == (False, ["waiting", "withdrawn"])


def test_a_question_that_a_shell_asked_is_not_withdrawn_with_a_cancelled_run(stage: Stage) -> None:
    gated(stage, 'approve = ["deploy"]')
    with pytest.raises(ApprovalMissing):
        run(stage)
    assert withdraw(rollout(stage), cancelled=lambda _: True) == []

    stage.app.run("UPDATE _rollout_event SET detail = JSON_SET(detail, '$.flow_run', 'run-1') WHERE outcome = 'waiting'")
    assert withdraw(rollout(stage), cancelled=lambda _: False) == []
    with pytest.raises(ApprovalMissing):
        run(stage, Through.DEPLOY, by="dora")
    assert withdraw(rollout(stage), cancelled=lambda _: True) == []
    stage.app.run("DELETE FROM _rollout_event WHERE outcome = 'waiting' AND detail->>'$.by' = 'dora'")

    (told,) = withdraw(rollout(stage), cancelled=lambda runs: runs == ["run-1"])

    assert "flow run run-1, which asked, was cancelled in Prefect" in told
    assert trail(stage) == ["waiting", "withdrawn"]
    assert stage.standing()["gates"] == []


def test_status_says_why_the_last_question_counts_no_longer(stage: Stage) -> None:
    def closed() -> list[tuple[str, str]]:
        now = stage.standing()
        assert now["gates"] == []
        return [(gate["state"], str(gate["answered_why"])) for gate in now["gates_closed"]]

    gated(stage, 'approve = ["deploy"]')
    with pytest.raises(ApprovalMissing):
        run(stage)
    assert stage.standing()["gates_closed"] == []
    stage.app.run(SINCE, "waiting")
    (expired,) = closed()
    assert (expired[0], "was not answered by 2026-01-01" in expired[1]) == ("expired", True)
    looked(stage)
    assert (closed(), trail(stage)) == ([expired], ["waiting", "expired"])

    with pytest.raises(ApprovalMissing):
        run(stage)
    assert stage.standing()["gates_closed"] == []
    answered(stage, approve=False)
    assert closed() == [("rejected", "looks good")]
    with pytest.raises(ApprovalMissing):
        run(stage)
    answered(stage)
    assert run(stage).did == ["deploy"]

    assert stage.standing()["gates_closed"] == []


def test_what_expired_or_is_withdrawn_waits_for_whoever_is_at_the_gates(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(approvals, "ALONE_WITHIN_S", 0)
    gated(stage, 'approve = ["deploy"]')
    with pytest.raises(ApprovalMissing):
        run(stage)
    stage.app.run("UPDATE _rollout_event SET detail = JSON_SET(detail, '$.flow_run', 'run-1') WHERE outcome = 'waiting'")

    with approvals.alone(rollout(stage, "ben")):
        assert withdraw(rollout(stage), cancelled=lambda _: True) == []
        expiry.withdraw_all(rollout(stage))
        stage.app.run(SINCE, "waiting")
        assert expiry.settle(rollout(stage)) == []
        assert trail(stage) == ["waiting"]

    assert [told.startswith("gate of deploy: the question of ") for told in expiry.settle(rollout(stage))] == [True]
    assert (trail(stage), withdraw(rollout(stage), cancelled=lambda _: True)) == (["waiting", "expired"], [])
