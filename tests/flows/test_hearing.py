"""What is said to a suspended run counts whatever became of its gate meanwhile: a no ends it, and what was taken back never goes on."""

from __future__ import annotations

from typing import Any

import pytest

from flows import actions, hearing, reopening
from flows.conductor import PlainConductor
from flows.gate_forms import Approval, CleanupApproval, Decision
from flows.params import RollbackRequest, RunRequest, Target, Through
from steps import plan_loader
from steps.errors import ApprovalMissing, GateClosed, Refused, Rejected
from steps.ledger import Event
from steps.phase import Phase
from steps.rollout import Person, opened
from tests.cli.conftest import quiet_afterwards  # noqa: F401  # used by being here
from tests.flows.deploy_stage import Stage
from tests.flows.nothing_held import nothing_held
from tests.flows.serving import Serving
from tests.flows.test_expiry import PAST
from tests.flows.test_gates import answered, gated, rollout, run, states, trail

pytestmark = pytest.mark.timeout(400)
ASKED = 'approve = ["deploy"]'
NO = "not this week"
UNREADY = ("cleanup-unseen", "cleanup-unready")
OPENS = f"UPDATE _rollout_event SET detail = JSON_SET(detail, '$.opens_at', '{PAST}') WHERE outcome = 'waiting'"
BACK = {"pre_deploy": "undone", "deploy": "undone"}


def noting(stage: Stage) -> dict[str, str]:
    """Deploy commands that leave a word each in a file."""
    return {"command": f"echo out >> {stage.folder}/deploys", "rollback_command": f"echo back >> {stage.folder}/deploys"}


def deploys(stage: Stage) -> list[str]:
    file = stage.folder / "deploys"
    return file.read_text().split() if file.exists() else []


def back(stage: Stage) -> None:
    """Carl takes everything back from a shell."""
    request = RollbackRequest(plan=str(stage.folder), by="carl", reason="CHG-1", to=Target.V0)
    actions.rollback(rollout(stage, "carl"), request, PlainConductor())


def refused_in_form(serving: Serving, flow_run: Any) -> Any:
    """The state in which the run ends to which carl says no."""
    assert serving.answer(flow_run, decision="reject", approver="carl", reason=NO).status.value == "ACCEPT"
    return serving.ended(flow_run)


def noes(stage: Stage) -> list[tuple[str, str]]:
    """Outcome, and whose, of each no of carl's on record."""
    sql = "SELECT outcome, detail->>'$.by' FROM _rollout_event WHERE detail->>'$.why' LIKE %s AND outcome <> 'told' ORDER BY id"
    return [(str(outcome), str(by)) for outcome, by in stage.app.rows(sql, f"{NO}%")]


def in_flow_run(stage: Stage, flow_run: str, through: Through, *settings: str) -> actions.Result:
    """As :func:`run`, in a run that Prefect knows by that name, perhaps with other settings than the plan's."""
    conductor, plan = PlainConductor(), plan_loader.load(str(stage.folder), list(settings))
    conductor.flow_run = flow_run
    desk = stage.stack.enter_context(opened(plan, stage.target, Person("ann", "CHG-1", None), frozenset()))
    return actions.run(desk, RunRequest(plan=str(stage.folder), by="ann", reason="CHG-1", through=through), conductor)


def reopened(stage: Stage) -> list[str]:
    """The flow runs that a look resumes, by the plan as it is written."""
    return reopening.reopen(rollout(stage), resume=lambda _flow_run, _gate: True)


def test_a_no_after_the_rollout_was_taken_back_ends_the_run_and_is_on_record(serving: Serving, stage: Stage) -> None:
    gated(stage, 'approve = ["backfill"]', **noting(stage))
    flow_run = serving.begun(through="backfill")
    serving.suspended(flow_run)
    back(stage)

    state = refused_in_form(serving, flow_run)

    assert (state.type.value, state.name, f"was rejected by carl: {NO}" in state.message) == ("FAILED", "Stopped", True)
    assert (deploys(stage), states(stage)) == (["out", "back"], BACK)
    assert trail(stage, "backfill") == ["waiting", "withdrawn", "not counted", "told"]
    assert (noes(stage), nothing_held(stage)) == ([("not counted", "carl")], [])


def test_a_no_in_the_form_ends_a_run_that_was_not_told_of_a_yes_from_a_shell(serving: Serving, stage: Stage) -> None:
    gated(stage, ASKED, **noting(stage))
    flow_run = serving.begun(through="deploy")
    serving.suspended(flow_run)
    assert answered(stage).outcome == "approved"  # from a host that knows no Prefect API

    state = refused_in_form(serving, flow_run)

    assert (state.type.value, state.name, f"was rejected by carl: {NO}" in state.message) == ("FAILED", "Stopped", True)
    assert (deploys(stage), states(stage)) == ([], {"pre_deploy": "done"})
    assert trail(stage) == ["waiting", "approved", "rejected", "told"]
    assert (noes(stage), nothing_held(stage)) == ([("rejected", "carl")], [])


def test_a_no_ends_the_run_that_asked_although_the_plan_was_edited_meanwhile(serving: Serving, stage: Stage) -> None:
    for edited in (f"{ASKED}\nexpires_s = 1000", ""):
        gated(stage, ASKED, **noting(stage))
        flow_run = serving.begun(through="deploy")
        serving.suspended(flow_run)
        gated(stage, edited, **noting(stage))

        state = refused_in_form(serving, flow_run)

        assert (state.type.value, state.name, f"was rejected by carl: {NO}" in state.message) == ("FAILED", "Stopped", True), edited
        assert (deploys(stage), states(stage)) == ([], {"pre_deploy": "done"}), edited

    assert trail(stage) == ["waiting", "rejected", "told"] * 2
    assert (noes(stage), nothing_held(stage)) == ([("rejected", "carl")] * 2, [])


def test_a_run_that_was_withdrawn_meanwhile_does_nothing_once_it_is_resumed_or_approved(serving: Serving, stage: Stage) -> None:
    late = {"soak = { deploy = 3600 }": {"reason": "go on"},
            'approve = ["backfill"]': {"decision": "approve", "approver": "ben", "reason": "go on"}}
    for tries, (rules, answer) in enumerate(late.items(), 1):
        gated(stage, rules, **noting(stage))
        flow_run = serving.begun(through="backfill")
        serving.suspended(flow_run)
        back(stage)
        before = stage.app.create_table("job")

        assert serving.answer(flow_run, **answer).status.value == "ACCEPT"
        state = serving.ended(flow_run)

        assert (state.type.value, state.name) == ("FAILED", "Refused"), state.message
        assert "was away while carl took" in state.message
        assert "begin a new run if it is to go forward again; nothing was done" in state.message
        assert (deploys(stage), states(stage)) == (["out", "back"] * tries, BACK)
        assert stage.app.create_table("job") == before

    assert trail(stage, "backfill") == ["waiting", "withdrawn", "waiting", "withdrawn", "not counted"]
    assert nothing_held(stage) == []


def test_a_yes_in_the_form_counts_although_unready_only_where_its_approver_says_so(stage: Stage) -> None:
    gated(stage, 'approvers = ["ben"]\nfour_eyes = true')
    run(stage, Through.SHADOW_WRITE)
    rollout(stage).ledger.record(Event("shadow_write", "parity watch", "found", detail={"differing": 3}))
    for although, outcome in ((False, "not counted"), (True, "approved")):
        with pytest.raises(ApprovalMissing) as closed:
            run(stage, Through.CLEANUP, accepted=UNREADY)
        answer = CleanupApproval(decision=Decision.APPROVE, approver="ben", reason="if ready", although_unready=although)
        hearing.answered(rollout(stage, "ann", UNREADY), Phase.CLEANUP, str(closed.value.gate["gate"]), answer)
        assert (trail(stage, "cleanup")[-1], "`status`" in stage.app.create_table("job")) == (outcome, True)

    assert run(stage, Through.CLEANUP, accepted=UNREADY).did == ["cleanup"]
    assert trail(stage, "cleanup") == ["waiting", "not counted", "waiting", "approved", "opened"]


def test_a_no_ends_each_run_that_asked_once_and_a_retry_asks_anew(stage: Stage) -> None:
    gated(stage, ASKED)
    for flow_run in ("run-1", "run-2"):
        with pytest.raises(ApprovalMissing):
            in_flow_run(stage, flow_run, Through.DEPLOY)
    answered(stage, approve=False)

    for flow_run in ("run-1", "run-2"):
        with pytest.raises(Rejected, match="was rejected by ben: looks good"):
            hearing.heard(rollout(stage), flow_run, forward=True)
    with pytest.raises(Refused, match=r"was rejected: by ben at .*: looks good; `rollout run"):  # whatever was told since
        answered(stage)
    for flow_run in ("run-1", "run-2"):
        hearing.heard(rollout(stage), flow_run, forward=True)  # once
        with pytest.raises(ApprovalMissing):
            in_flow_run(stage, flow_run, Through.DEPLOY)

    asked = ["waiting", "waiting"]
    assert (trail(stage), states(stage)) == ([*asked, "rejected", "told", "told", "refused", *asked], {"pre_deploy": "done"})


def test_a_look_with_other_settings_resumes_no_run_before_its_time(stage: Stage) -> None:
    gated(stage, "")
    run(stage)
    with pytest.raises(GateClosed):
        in_flow_run(stage, "run-1", Through.BACKFILL, "gates.soak.deploy=3600")

    assert (reopened(stage), trail(stage, "backfill"), "backfill" in states(stage)) == ([], ["waiting"], False)

    stage.app.run(OPENS)
    assert reopened(stage) == ["run-1"]


def test_a_run_that_stood_on_what_was_taken_back_is_not_resumed(stage: Stage) -> None:
    gated(stage, "soak = { deploy = 3600 }")
    with pytest.raises(GateClosed):
        in_flow_run(stage, "run-1", Through.BACKFILL)
    stage.app.run(OPENS)
    assert reopened(stage) == ["run-1"]
    back(stage)

    assert (reopened(stage), trail(stage, "backfill"), states(stage)["deploy"]) == ([], ["waiting", "withdrawn"], "undone")
    stage.app.run("DELETE FROM _rollout_event WHERE outcome = 'withdrawn'")  # as a way back that a failure began leaves it
    assert reopened(stage) == []


def test_a_word_that_v1_is_out_is_on_record_though_everything_was_taken_back_meanwhile(serving: Serving, stage: Stage) -> None:
    gated(stage, "", how="manual")
    flow_run = serving.begun(through="deploy")
    serving.suspended(flow_run)
    request = RollbackRequest(plan=str(stage.folder), by="carl", reason="CHG-1", to=Target.V0)
    actions.rollback(rollout(stage, "carl", deployed_by="carl"), request, PlainConductor())

    assert serving.answer(flow_run, confirmed_by="dora", note="V1 is out on all pods").status.value == "ACCEPT"

    state = serving.ended(flow_run)
    assert (state.name, "was away while carl took" in state.message) == ("Refused", True)
    said = stage.app.rows("SELECT outcome, detail->>'$.by', detail->>'$.note' FROM _rollout_event WHERE step = 'confirmation'")
    assert said == [("too late", "dora", "V1 is out on all pods")]
    assert (states(stage), stage.app.triggers()) == (BACK, [])


def test_a_no_in_the_form_counts_before_the_run_has_heard_it(serving: Serving, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    gated(stage, ASKED)
    with pytest.raises(ApprovalMissing):
        in_flow_run(stage, "00000000-0000-0000-0000-000000000001", Through.DEPLOY)
    form = Approval(decision=Decision.REJECT, approver="carl", reason=NO)
    heard_of: list[str] = []

    def load(_cls: Any, _keys: Any, flow_run_id: Any = None) -> Approval:
        heard_of.append(str(flow_run_id))
        return form

    monkeypatch.setattr(Approval, "load", classmethod(load))
    for _ in range(2):
        hearing.catch_up(rollout(stage))

    assert (trail(stage), noes(stage)) == (["waiting", "rejected"], [("rejected", "carl")])
    assert heard_of == ["00000000-0000-0000-0000-000000000001"]  # what is decided is not asked for again
    with pytest.raises(Refused, match="was rejected"):
        answered(stage)
