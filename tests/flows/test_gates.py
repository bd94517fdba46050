"""Gates before phases: approval, windows and soak; what opens them, what does not, and what stands meanwhile."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta

import pytest

from flows import actions, hearing
from flows.conductor import PlainConductor
from flows.gate_forms import Approval, Decision
from flows.params import RollbackRequest, RunRequest, Target, Through
from flows.standing import standing
from steps import approving, cleanup_conditions, plan_loader, waits
from steps.approving import Answered
from steps.errors import ApprovalMissing, GateClosed, Refused, Rejected, RolledBack, Stopped, WaitingForPerson
from steps.ledger import Event
from steps.phase import Phase
from steps.rollout import Person, Rollout, opened
from tests.flows import deploy_stage
from tests.flows.deploy_stage import ACCEPTED, Stage
from tests.flows.nothing_held import nothing_held

CLEANUP = deploy_stage.CLEANUP + 'deploy = "true"\nrollback_deploy = "true"\n'
BY_COMMAND = {"command": "true", "rollback_command": "true"}


def rollout(stage: Stage, by: str = "ann", accepted: tuple[str, ...] = ("cleanup-unseen",), deployed_by: str | None = None) -> Rollout:
    plan = plan_loader.load(str(stage.folder))
    return stage.stack.enter_context(opened(plan, stage.target, Person(by, "CHG-1", deployed_by), frozenset(accepted)))


def run(stage: Stage, through: Through = Through.DEPLOY, by: str = "ann", accepted: tuple[str, ...] = ("cleanup-unseen",),
        deployed_by: str | None = None) -> actions.Result:
    request = RunRequest(plan=str(stage.folder), by=by, reason="CHG-1", through=through)
    return actions.run(rollout(stage, by, accepted, deployed_by), request, PlainConductor())


def answered(stage: Stage, phase: Phase = Phase.DEPLOY, by: str = "ben", *, approve: bool = True,
             accepted: tuple[str, ...] = ()) -> Answered:
    return approving.answer(rollout(stage, by), phase, by, "looks good", approve=approve, unmet=cleanup_conditions.unmet,
                            accepted=frozenset(accepted))


def gated(stage: Stage, text: str, **deploy: str) -> None:
    stage.plan(cleanup=f"{CLEANUP}\n[gates]\n{text}\n", **(deploy or BY_COMMAND))


def trail(stage: Stage, phase: str = "deploy") -> list[str]:
    sql = "SELECT outcome FROM _rollout_event WHERE step = 'gate' AND phase = %s ORDER BY id"
    return [str(row[0]) for row in stage.app.rows(sql, phase)]


def states(stage: Stage) -> dict[str, str]:
    return {str(phase): str(state) for phase, state in stage.app.rows("SELECT phase, state FROM _rollout_phase")}


def at(moment: datetime) -> str:
    return moment.replace(tzinfo=None).isoformat(timespec="seconds")


def test_a_named_phase_waits_with_everything_released_and_begins_once_approved(stage: Stage) -> None:
    gated(stage, 'approve = ["deploy"]')

    with pytest.raises(ApprovalMissing, match="a person has to approve that deploy begins") as closed:
        run(stage)

    assert (states(stage), stage.exit_code(), nothing_held(stage)) == ({"pre_deploy": "done"}, 4, [])
    call = f"rollout approve {stage.folder} deploy --by NAME --reason WHY"  # PLAN as it was given: a copy may have another plan's id
    assert call in closed.value.remedy
    now = stage.standing()
    assert [(gate["phase"], gate["state"], gate["asked_by"], gate["asked_why"]) for gate in now["gates"]] == [
        ("deploy", "waiting", ["ann"], "CHG-1")]
    assert now["gates"][0]["gate"] == closed.value.gate["gate"]
    assert now["next"] == f"gate of deploy: {call}"

    said = answered(stage)

    assert said.outcome == "approved"
    assert states(stage) == {"pre_deploy": "done"}
    assert run(stage).did == ["deploy"]
    assert (states(stage), trail(stage)) == ({"pre_deploy": "done", "deploy": "done"}, ["waiting", "approved", "opened"])
    detail = json.loads(stage.app.value("SELECT detail FROM _rollout_event WHERE outcome = 'approved'"))
    assert (detail["by"], detail["why"]) == ("ben", "looks good")
    assert stage.standing()["gates"] == []


def test_it_is_asked_once_by_each_who_runs_it(stage: Stage) -> None:
    gated(stage, 'approve = ["deploy"]\nfour_eyes = true')
    asked = []
    for by in ("ann", "ann", "Ben", "ben"):
        with pytest.raises(ApprovalMissing) as closed:
            run(stage, by=by)
        asked.append(closed.value.gate["gate"])

    assert len(set(asked)) == 1
    assert "other than ann, Ben has to approve" in closed.value.reason
    assert trail(stage) == ["waiting", "waiting"]
    for by in ("ann", " BEN "):
        with pytest.raises(Refused, match="four_eyes wants somebody else"):
            answered(stage, by=by)
    with pytest.raises(Refused, match="four_eyes wants somebody else"):
        answered(stage, by="ann")  # the same again is on record once
    assert trail(stage) == ["waiting", "waiting", "refused", "refused"]
    refused = stage.app.rows("SELECT detail->>'$.by', detail->>'$.decision', detail->>'$.why' FROM _rollout_event "
                             "WHERE outcome = 'refused'")
    assert [row[:2] for row in refused] == [("ann", "approve"), (" BEN ", "approve")]
    assert all(row[2].startswith("looks good; refused: approval by ") for row in refused)
    assert answered(stage, by="carl").outcome == "approved"
    assert run(stage).did == ["deploy"]


def test_an_approval_of_other_settings_is_void_and_says_so(stage: Stage) -> None:
    gated(stage, 'approve = ["deploy"]')
    with pytest.raises(ApprovalMissing) as first:
        run(stage)
    answered(stage)
    gated(stage, 'approve = ["deploy"]', command="exit 1", rollback_command="true")

    with pytest.raises(ApprovalMissing, match=r"the approval by ben of .* is void: settings changed since") as second:
        run(stage)

    assert first.value.gate["gate"] != second.value.gate["gate"]
    assert (trail(stage), states(stage)) == (["waiting", "approved", "expired", "waiting"], {"pre_deploy": "done"})


def test_a_question_about_other_settings_cannot_be_answered_any_more(stage: Stage) -> None:
    gated(stage, 'approve = ["deploy"]')
    for command in ("true", "true # again"):
        gated(stage, 'approve = ["deploy"]', command=command, rollback_command="true")
        with pytest.raises(ApprovalMissing) as closed:
            run(stage)

    assert trail(stage) == ["waiting", "expired", "waiting"]
    assert answered(stage).gate.id == closed.value.gate["gate"]
    assert run(stage).did == ["deploy"]


def test_too_early_twice_and_too_late_are_harmless_and_say_so(stage: Stage) -> None:
    gated(stage, 'approve = ["deploy"]')
    run(stage, Through.PRE_DEPLOY)
    with pytest.raises(Refused, match="nobody has asked for this phase yet"):
        answered(stage)
    with pytest.raises(ApprovalMissing):
        run(stage)

    assert answered(stage).outcome == "approved"
    again = answered(stage, by="carl")
    assert (again.outcome, "is approved already: by ben" in again.said) == ("nothing to do", True)
    run(stage)
    for approve, outcome in ((True, "nothing to do"), (False, "too late"), (False, "too late")):
        used = answered(stage, by="dora", approve=approve)
        assert (used.outcome, "was approved and used" in used.said) == (outcome, True)
    assert (trail(stage), states(stage)["deploy"]) == (["waiting", "approved", "opened", "not counted"], "done")
    assert stage.app.value("SELECT detail->>'$.by' FROM _rollout_event WHERE outcome = 'not counted'") == "dora"


def test_a_yes_that_is_given_at_once_outlives_a_soak_that_is_longer_than_approvals_are(stage: Stage) -> None:
    gated(stage, 'approve = ["backfill"]\nexpires_s = 60\nsoak = { deploy = 3600 }')
    with pytest.raises(ApprovalMissing) as closed:
        run(stage, Through.BACKFILL)
    assert answered(stage, Phase.BACKFILL).outcome == "approved"

    opens = datetime.fromisoformat(str(closed.value.gate["opens_at"]))
    until = datetime.fromisoformat(stage.app.value("SELECT detail->>'$.until' FROM _rollout_event WHERE outcome = 'approved'"))
    assert until - opens >= timedelta(seconds=60)
    stage.app.run("UPDATE _rollout_phase SET at = at - INTERVAL 2 HOUR, detail = JSON_REMOVE(detail, '$.by_tool_clock') "
                  "WHERE phase = 'deploy'")
    assert run(stage, Through.BACKFILL).did == ["backfill"]


def test_a_rejection_is_final_for_what_was_asked_and_the_next_run_asks_anew(stage: Stage) -> None:
    gated(stage, 'approve = ["deploy"]')
    with pytest.raises(ApprovalMissing) as first:
        run(stage)

    assert answered(stage, approve=False).outcome == "rejected"
    assert answered(stage, approve=False).outcome == "nothing to do"
    with pytest.raises(Refused, match=r"was rejected: by ben at .*: looks good"):
        answered(stage)

    with pytest.raises(ApprovalMissing) as second:
        run(stage, by="carl")
    assert first.value.gate["gate"] != second.value.gate["gate"]
    assert (trail(stage), states(stage)) == (["waiting", "rejected", "refused", "waiting"], {"pre_deploy": "done"})


def test_a_yes_that_was_not_used_can_be_taken_back(stage: Stage) -> None:
    gated(stage, 'approve = ["deploy"]')
    with pytest.raises(ApprovalMissing):
        run(stage)
    answered(stage)

    assert answered(stage, by="carl", approve=False).outcome == "rejected"

    with pytest.raises(ApprovalMissing):
        run(stage)
    assert "deploy" not in states(stage)


def test_an_approval_that_was_not_used_in_time_is_void(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    gated(stage, 'approve = ["deploy"]\nexpires_s = 600')
    with pytest.raises(ApprovalMissing):
        run(stage)
    answered(stage)
    real = waits.clock
    monkeypatch.setattr(waits, "clock", lambda: real() + timedelta(seconds=700))  # either clock voids it

    with pytest.raises(ApprovalMissing, match="was not used by"):
        run(stage)
    assert trail(stage) == ["waiting", "approved", "expired", "waiting"]

    monkeypatch.setattr(waits, "clock", lambda: real() + timedelta(seconds=2000))
    with pytest.raises(Refused, match="waits no longer"):
        answered(stage)
    assert "deploy" not in states(stage)


def test_only_the_plans_approvers_count_also_for_the_one_who_runs_cleanup(stage: Stage) -> None:
    gated(stage, 'approvers = ["ben"]')

    with pytest.raises(ApprovalMissing, match="one of ben has to confirm that columns status") as closed:
        run(stage, Through.CLEANUP, accepted=ACCEPTED)
    assert "--accept cleanup" not in closed.value.remedy  # who is no approver is not told to approve himself
    with pytest.raises(Refused, match=r"gates.approvers are ben"):
        answered(stage, Phase.CLEANUP, by="ann")
    assert "`status`" in stage.app.create_table("job")

    assert run(stage, Through.CLEANUP, by="ben", accepted=ACCEPTED).did == ["cleanup"]
    assert "`status`" not in stage.app.create_table("job")
    assert trail(stage, "cleanup") == ["waiting", "refused", "approved", "opened"]
    detail = json.loads(stage.app.value("SELECT detail FROM _rollout_event WHERE phase = 'cleanup' AND outcome = 'approved'"))
    assert (detail["by"], detail["himself"]) == ("ben", "--accept cleanup")


def test_with_four_eyes_nobody_approves_his_own_cleanup(stage: Stage) -> None:
    gated(stage, "four_eyes = true")

    for _ in range(2):
        with pytest.raises(ApprovalMissing, match="a person other than ann has to confirm"):
            run(stage, Through.CLEANUP, accepted=ACCEPTED)
    assert "`status`" in stage.app.create_table("job")

    answered(stage, Phase.CLEANUP, by="ben")
    assert run(stage, Through.CLEANUP).did == ["cleanup"]
    assert "`status`" not in stage.app.create_table("job")


def test_cleanup_is_approved_only_while_its_conditions_hold_or_all_the_same(stage: Stage) -> None:
    stage.plan(cleanup=CLEANUP.replace("min_age_s = 0", "min_age_s = 3600"), **BY_COMMAND)
    with pytest.raises(ApprovalMissing, match=r"has to confirm .*; verify passed at .* less than cleanup.min_age_s = 3600 s ago") as closed:
        run(stage, Through.CLEANUP)
    assert ["less than cleanup.min_age_s" in text for text in closed.value.gate["unmet"]] == [True]
    rollout(stage).ledger.record(Event("shadow_write", "parity watch", "found", detail={"differing": 3}))

    with pytest.raises(Refused, match=r"conditions are not met: parity is lost: 3 rows disagree;") as refused:
        answered(stage, Phase.CLEANUP)
    assert "--accept cleanup-unready" in refused.value.remedy
    assert trail(stage, "cleanup") == ["waiting", "refused"]

    answered(stage, Phase.CLEANUP, accepted=("cleanup-unready",))
    with pytest.raises(GateClosed, match=r"less than cleanup.min_age_s") as young:  # approved, and still too early
        run(stage, Through.CLEANUP)
    assert not isinstance(young.value, ApprovalMissing)
    verified = datetime.fromisoformat(stage.app.value("SELECT at FROM _rollout_phase WHERE phase = 'verify'").isoformat() + "+00:00")
    assert abs(datetime.fromisoformat(young.value.gate["opens_at"]) - verified - timedelta(hours=1)) < timedelta(seconds=5)
    assert "`status`" in stage.app.create_table("job")


def test_a_yes_to_cleanup_may_come_before_verify_is_old_enough_and_waits_with_it(stage: Stage) -> None:
    stage.plan(cleanup=CLEANUP.replace("min_age_s = 0", "min_age_s = 3600"), **BY_COMMAND)
    with pytest.raises(ApprovalMissing) as closed:
        run(stage, Through.CLEANUP)
    assert f"rollout approve {stage.folder} cleanup --by NAME --reason WHY`" in closed.value.remedy

    assert answered(stage, Phase.CLEANUP).outcome == "approved"
    with pytest.raises(GateClosed, match=r"less than cleanup.min_age_s.*approved by ben at ") as young:
        run(stage, Through.CLEANUP)

    assert not isinstance(young.value, ApprovalMissing)
    assert "`status`" in stage.app.create_table("job")


def test_who_runs_cleanup_approves_it_himself_only_while_its_conditions_hold_or_all_the_same(stage: Stage) -> None:
    stage.plan(cleanup=CLEANUP, **BY_COMMAND)
    run(stage, Through.SHADOW_WRITE)
    rollout(stage).ledger.record(Event("shadow_write", "parity watch", "found", detail={"differing": 3}))
    accepted = ("cleanup", "cleanup-unseen")

    with pytest.raises(ApprovalMissing, match="conditions are not met: parity is lost: 3 rows disagree") as closed:
        run(stage, Through.CLEANUP, accepted=accepted)
    assert "add --accept cleanup-unready, or " in closed.value.remedy
    assert (trail(stage, "cleanup"), stage.exit_code(), "`status`" in stage.app.create_table("job")) == (["waiting"], 4, True)
    now = stage.standing()
    assert now["gates"][0]["calls"][0] == f"rollout approve {stage.folder} cleanup --by NAME --reason WHY --accept cleanup-unready"
    assert "found 3 rows that differ, and none was clean since; `rollout watch" in now["next"]  # what is broken comes first

    run(stage, Through.CLEANUP, accepted=(*accepted, "cleanup-unready"))
    assert trail(stage, "cleanup") == ["waiting", "approved", "opened"]
    unmet = stage.app.value("SELECT detail->>'$.unmet[0]' FROM _rollout_event WHERE outcome = 'approved'")
    assert unmet == "parity is lost: 3 rows disagree"
    assert "`status`" not in stage.app.create_table("job")


def test_a_yes_that_was_given_while_conditions_held_does_not_outlive_them(stage: Stage) -> None:
    stage.plan(cleanup=CLEANUP, **BY_COMMAND)
    run(stage, Through.SHADOW_WRITE)
    with pytest.raises(ApprovalMissing):
        run(stage, Through.CLEANUP)
    assert answered(stage, Phase.CLEANUP).outcome == "approved"
    rollout(stage).ledger.record(Event("shadow_write", "parity watch", "found", detail={"differing": 3}))

    with pytest.raises(ApprovalMissing, match="since conditions have ceased to hold; conditions are not met: parity is lost") as closed:
        run(stage, Through.CLEANUP)
    assert "cleanup --by NAME --reason WHY --accept cleanup-unready" in closed.value.remedy
    assert trail(stage, "cleanup") == ["waiting", "approved", "expired", "waiting"]
    assert "`status`" in stage.app.create_table("job")

    answered(stage, Phase.CLEANUP, accepted=("cleanup-unready",))  # who says yes to what is lost may have it
    run(stage, Through.CLEANUP)
    assert "`status`" not in stage.app.create_table("job")


def test_a_phase_that_has_begun_goes_on_whatever_its_gate_says(stage: Stage) -> None:
    gated(stage, 'approve = ["deploy"]', how="manual")
    with pytest.raises(ApprovalMissing):
        run(stage)
    answered(stage)
    with pytest.raises(WaitingForPerson, match=r"\(V1\) is deployed"):
        run(stage)
    gated(stage, 'approve = ["deploy"]\n[gates.window]\nnot_after = 2026-01-01T00:00:00', how="manual")

    assert run(stage, deployed_by="ben").did == ["deploy"]
    assert trail(stage) == ["waiting", "approved", "opened"]


def test_what_was_taken_back_is_asked_for_again(stage: Stage) -> None:
    gated(stage, 'approve = ["deploy"]', command="exit 1", rollback_command="true")
    with pytest.raises(ApprovalMissing):
        run(stage)
    answered(stage)
    with pytest.raises(RolledBack):
        run(stage)

    with pytest.raises(ApprovalMissing):
        run(stage)

    assert trail(stage) == ["waiting", "approved", "opened", "waiting"]


def test_a_yes_to_what_stood_before_a_way_back_is_void(stage: Stage) -> None:
    gated(stage, "")
    with pytest.raises(ApprovalMissing):
        run(stage, Through.CLEANUP)
    answered(stage, Phase.CLEANUP)
    before = stage.app.create_table("job")
    actions.rollback(rollout(stage, "carl"), RollbackRequest(plan=str(stage.folder), by="carl", reason="withdraw", to=Target.DEPLOY),
                     PlainConductor())

    with pytest.raises(ApprovalMissing, match=r"the approval by ben of .* was withdrawn: carl took the rollout back: CHG-1"):
        run(stage, Through.CLEANUP)

    assert stage.app.create_table("job") == before
    assert states(stage)["shadow_write"] == "done"
    assert trail(stage, "cleanup") == ["waiting", "approved", "withdrawn", "waiting"]


def test_a_gate_that_was_passed_otherwise_waits_no_longer(stage: Stage) -> None:
    gated(stage, 'approve = ["deploy"]')
    with pytest.raises(ApprovalMissing):
        run(stage)
    gated(stage, "")
    assert run(stage).did == ["deploy"]

    now = standing(rollout(stage))
    assert (now["gates"], now["next"]) == ([], f"backfill: rollout run {stage.folder}")


@pytest.mark.parametrize("decision", list(Decision))
def test_an_answer_after_the_phase_has_begun_is_on_record_and_a_no_ends_the_run_that_asked(stage: Stage, decision: Decision) -> None:
    gated(stage, 'approve = ["deploy"]')
    with pytest.raises(ApprovalMissing) as closed:
        run(stage)
    answered(stage)
    run(stage)
    answer = Approval(decision=decision, approver="carl", reason="wait")

    with pytest.raises(Rejected, match=r"was rejected by carl: wait; too late: .*the phase has begun: by ben") \
            if decision is Decision.REJECT else nullcontext():
        hearing.answered(rollout(stage), Phase.DEPLOY, str(closed.value.gate["gate"]), answer)

    late = ["not counted", "told"] if decision is Decision.REJECT else []
    assert trail(stage) == ["waiting", "approved", "opened", *late]
    assert states(stage) == {"pre_deploy": "done", "deploy": "done"}
    assert list(stage.app.rows("SELECT detail->>'$.by' FROM _rollout_event WHERE outcome = 'not counted'")) == \
        [("carl",)] * (decision is Decision.REJECT)


def test_a_second_life_of_the_plan_is_asked_for_again(stage: Stage) -> None:
    before = stage.app.create_table("job")
    gated(stage, 'approve = ["pre_deploy"]')
    with pytest.raises(ApprovalMissing):
        run(stage)
    assert stage.app.create_table("job") == before
    answered(stage, Phase.PRE_DEPLOY)
    run(stage)
    request = RollbackRequest(plan=str(stage.folder), by="ann", reason="CHG-1", to=Target.V0, drop_added=True)
    actions.rollback(rollout(stage), request, PlainConductor())
    assert stage.app.create_table("job") == before

    with pytest.raises(ApprovalMissing):
        run(stage)

    assert stage.app.create_table("job") == before
    assert trail(stage, "pre_deploy") == ["waiting", "approved", "opened", "waiting"]


def test_a_closed_window_names_when_it_opens_and_no_way_back_waits_for_it(stage: Stage) -> None:
    gated(stage, "")
    run(stage)
    opens = datetime.now(UTC).replace(microsecond=0) + timedelta(days=2)
    gated(stage, f'[gates.window]\nnot_before = {at(opens)}\ntime_zone = "Asia/Kathmandu"')
    offset = timedelta(hours=5, minutes=45)

    with pytest.raises(GateClosed, match=r"the change window \(from .*\+05:45 \(Asia/Kathmandu\) on.* is closed at .*\+05:45") as closed:
        run(stage, Through.BACKFILL)

    assert datetime.fromisoformat(closed.value.gate["opens_at"]) == opens - offset
    assert "run the same command after" in closed.value.remedy
    assert (states(stage).get("backfill"), stage.exit_code(), nothing_held(stage)) == (None, 4, [])
    assert stage.standing()["next"].startswith(f"gate of backfill (opens {closed.value.gate['opens_at']}")
    assert stage.back(Through.DEPLOY).did == ["deploy"]


def test_a_window_that_is_shut_once_the_soak_is_over_opens_when_it_opens_next(stage: Stage) -> None:
    now = datetime.now(UTC)
    opens = (now + timedelta(days=3)).replace(microsecond=0)
    gated(stage, f"approve = ['deploy']\nsoak = {{pre_deploy = 7200}}\n[[gates.window]]\nnot_after = {at(now + timedelta(hours=1))}\n"
                 f"[[gates.window]]\nnot_before = {at(opens)}")
    with pytest.raises(ApprovalMissing, match=r"is closed at .*, when the rest is over; it opens at") as closed:
        run(stage)

    assert closed.value.gate["opens_at"] == opens.isoformat(timespec="seconds")
    assert datetime.fromisoformat(closed.value.gate["until"]) >= opens + timedelta(seconds=259_200)
    said = answered(stage).gate.until
    assert min(said.server, said.tool) >= opens + timedelta(seconds=259_200)  # an early yes lives until the phase can begin


@pytest.mark.parametrize(("window", "is_open"), [
    ("not_before = 2026-01-01T00:00:00", True), ("not_after = 2026-01-01T00:00:00", False),
    ('not_after = 2026-01-01T00:00:00\nphases = ["cleanup"]', True)])
def test_a_window_holds_for_the_phases_that_it_names(stage: Stage, window: str, is_open: bool) -> None:
    gated(stage, f"[gates.window]\n{window}")

    if is_open:
        assert run(stage).did == ["pre_deploy", "deploy"]
        return
    with pytest.raises(GateClosed, match="does not open again") as closed:
        run(stage)
    assert (closed.value.gate["opens_at"], states(stage)) == (None, {})


def test_both_clocks_have_to_stand_in_the_window(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    gated(stage, f"[gates.window]\nnot_before = {at(datetime.now(UTC) - timedelta(hours=1))}")
    real = waits.clock
    monkeypatch.setattr(waits, "clock", lambda: real() - timedelta(hours=2))

    with pytest.raises(GateClosed, match=r"the server's clock is 7[12]\d\d s ahead of this machine's"):
        run(stage)
    assert states(stage) == {}

    monkeypatch.setattr(waits, "clock", real)
    assert run(stage).did == ["pre_deploy", "deploy"]


def test_a_soak_is_over_by_both_clocks_and_only_if_parity_was_kept(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    gated(stage, "soak = { deploy = 3600 }")
    with pytest.raises(GateClosed, match=r"deploy was done at .*, less than gates.soak.deploy = 3600 s ago") as closed:
        run(stage, Through.BACKFILL)
    assert closed.value.gate["opens_at"] is not None
    assert (states(stage).get("backfill"), trail(stage)) == (None, ["soaking"])

    stage.app.run("UPDATE _rollout_phase SET at = at - INTERVAL 2 HOUR WHERE phase = 'deploy'")
    line = stage.app.value("SELECT CONCAT(state, ' ', DATE_FORMAT(at, '%Y-%m-%dT%H:%i:%s.'), LPAD(MICROSECOND(at) DIV 1000, 3, '0'), 'Z') "
                           "FROM _rollout_phase WHERE phase = 'deploy'")
    stage.app.run("UPDATE _rollout_event SET detail = JSON_SET(detail, '$.row', %s) WHERE outcome = 'soaking'", line)
    with pytest.raises(GateClosed, match=r"less than gates.soak.deploy"):  # the server's clock alone says that it is over
        run(stage, Through.BACKFILL)
    real = waits.clock
    monkeypatch.setattr(waits, "clock", lambda: real() + timedelta(hours=2))
    rollout(stage).ledger.set_phase(Phase.SHADOW_WRITE, "undone")  # looks count from there on
    rollout(stage).ledger.record(Event("shadow_write", "parity watch", "found", detail={"differing": 2}))
    with pytest.raises(GateClosed, match=r"is not clean: the parity watch of .* found 2 rows") as lost:
        run(stage, Through.BACKFILL)
    assert (lost.value.gate["opens_at"], "remove the cause" in lost.value.remedy) == (None, True)

    rollout(stage).ledger.record(Event("shadow_write", "parity watch", "clean", detail={"differing": 0}))
    assert run(stage, Through.BACKFILL).did == ["backfill"]


def test_all_reasons_are_told_at_once(stage: Stage) -> None:
    gated(stage, "")
    run(stage, Through.PRE_DEPLOY)
    gated(stage, 'approve = ["deploy"]\nsoak = { pre_deploy = 3600 }\n[gates.window]\nnot_after = 2026-01-01T00:00:00')

    with pytest.raises(ApprovalMissing) as closed:
        run(stage)

    assert [word in text for word, text in zip(("has to approve", "gates.soak", "change window"), closed.value.gate["reasons"], strict=True)
            ] == [True] * 3


def test_typed_on_a_terminal_the_person_who_runs_cleanup_approves_it(stage: Stage) -> None:
    gated(stage, "")
    run(stage, Through.SHADOW_WRITE)
    asked: list[str] = []

    def typing(answer: bool) -> Callable[[str], bool]:
        def confirm(what: str) -> bool:
            asked.append(what)
            return answer
        return confirm

    def cleanup(answer: bool) -> actions.Result:
        desk = rollout(stage)
        desk.person = Person("ann", "CHG-1", "ben", typing(answer))
        return actions.run(desk, RunRequest(plan=str(stage.folder), by="ann", reason="CHG-1", through=Through.CLEANUP), PlainConductor())

    with pytest.raises(Stopped, match="--accept cleanup"):
        cleanup(False)
    assert "`status`" in stage.app.create_table("job")
    assert cleanup(True).did == ["cleanup"]
    assert "`status`" not in stage.app.create_table("job")
    assert len(asked) == 2
    assert "columns status of job may go" in asked[0]
