"""A failed verify goes where the plan's on_fail says; a failed deploy is taken back; what cannot go back waits or says so."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flows import actions
from flows.conductor import PlainConductor
from flows.params import RollbackRequest, RunRequest
from flows.params import Target as Where
from steps import deploy, plan_loader
from steps.errors import ConnectionLost, LockTimeout, OwnershipLost, RollbackFailed, RolledBack, StatementFailed, Stopped
from steps.plan import Plan
from steps.rollout import Rollout
from steps.step import Step
from tests.conftest import BY_COMMAND, App
from tests.flows.between import After

Rollouts = Callable[..., Rollout]
BACK = RollbackRequest(plan="ai_analysis_job", by="tester", reason="because", to=Where.PRE_DEPLOY)
RUN = RunRequest(plan="ai_analysis_job", by="tester", reason="because")
ON = ["rollout_ai_analysis_job_bi", "rollout_ai_analysis_job_bu"]
UP_TO_VERIFY = {"pre_deploy": "done", "deploy": "done", "backfill": "done"}
BACK_AT_PRE_DEPLOY = {"pre_deploy": "done", "deploy": "undone", "backfill": "undone", "verify": "undone"}


def planned(*settings: str) -> Plan:
    return plan_loader.load("ai_analysis_job", (*BY_COMMAND, *settings))


def states(app: App) -> dict[str, str]:
    return {str(phase): str(state) for phase, state in app.rows("SELECT phase, state FROM _rollout_phase")}


def last_run(app: App) -> tuple[int, str]:
    return app.rows("SELECT exit_code, outcome FROM _rollout_run ORDER BY started_at DESC LIMIT 1")[0]  # type: ignore[return-value]


def v0_view(app: App) -> list[tuple[Any, ...]]:
    """What the old application sees of the jobs."""
    return app.rows("SELECT id, status, errorMessage, completedAt FROM AiAnalysisJob ORDER BY id")


def plant(app: App) -> Callable[[], object]:
    """A row that only a fault could make: finished for V0, locked for V1. V1 writes it, after the deploy."""

    def planted() -> None:
        app.run("UPDATE AiAnalysisJob SET status = 'completed', lifecycleStatus = 'locked' WHERE id = 'c000002'")
        assert app.rows("SELECT status, lifecycleStatus FROM AiAnalysisJob WHERE id = 'c000002'") == [("completed", "locked")]

    return planted


def correct(app: App) -> None:
    app.run("UPDATE AiAnalysisJob SET lifecycleStatus = 'succeeded' WHERE id = 'c000002'")


def test_a_verify_that_fails_after_the_table_was_lost_goes_nowhere(rollouts: Rollouts, seeded: App) -> None:
    planted = plant(seeded)

    def planted_by_who_took_over() -> None:
        planted()
        seeded.run("UPDATE _rollout_owner SET token = REPEAT('f', 32)")

    with pytest.raises(OwnershipLost) as lost:
        actions.run(rollouts(), RUN, After("backfill", planted_by_who_took_over))

    assert lost.value.exit_code == 4
    assert states(seeded) == UP_TO_VERIFY
    assert seeded.triggers() == ON
    assert last_run(seeded)[0] == 4

    correct(seeded)
    assert actions.run(rollouts(), RUN, PlainConductor()).did == ["verify", "shadow_write"]


def test_on_fail_pre_deploy_puts_v0_back_with_sync_still_on_and_runs_again_after_correction(rollouts: Rollouts, seeded: App) -> None:
    before = v0_view(seeded)

    with pytest.raises(RolledBack, match="1 of 9 rows disagree") as failed:
        actions.run(rollouts(), RUN, After("deploy", plant(seeded)))

    assert failed.value.exit_code == 5
    assert "c000002" in str(failed.value)
    assert states(seeded) == BACK_AT_PRE_DEPLOY
    assert seeded.triggers() == ON
    assert v0_view(seeded) == before
    assert last_run(seeded)[0] == 5
    seeded.run("UPDATE AiAnalysisJob SET status = 'processing' WHERE id = 'c000000'")
    assert seeded.value("SELECT lifecycleStatus FROM AiAnalysisJob WHERE id = 'c000000'") == "running"

    correct(seeded)
    assert actions.run(rollouts(), RUN, PlainConductor()).did == ["deploy", "backfill", "verify", "shadow_write"]


def test_on_fail_v0_takes_sync_off_and_leaves_the_columns(rollouts: Rollouts, seeded: App) -> None:
    before = v0_view(seeded)

    with pytest.raises(RolledBack):
        actions.run(rollouts(plan=planned("verify.on_fail=v0")), RUN, After("deploy", plant(seeded)))

    assert states(seeded) == {**BACK_AT_PRE_DEPLOY, "pre_deploy": "undone"}
    assert seeded.triggers() == []
    assert "`lifecycleStatus`" in seeded.create_table()
    assert v0_view(seeded) == before
    assert actions.run(rollouts(), RUN, PlainConductor()).outcome == "done"  # the old side decides, so the planted row is gone
    assert seeded.value("SELECT lifecycleStatus FROM AiAnalysisJob WHERE id = 'c000002'") == "succeeded"


def test_on_fail_stop_leaves_everything_standing(rollouts: Rollouts, seeded: App) -> None:
    plan = planned("verify.on_fail=stop")

    with pytest.raises(Stopped, match="on_fail = stop") as stopped:
        actions.run(rollouts(plan=plan), RUN, After("deploy", plant(seeded)))

    assert stopped.value.exit_code == 4
    assert states(seeded) == {**UP_TO_VERIFY, "verify": "fail"}
    assert seeded.triggers() == ON
    assert last_run(seeded)[0] == 4
    correct(seeded)
    assert actions.run(rollouts(plan=plan), RUN, PlainConductor()).did == ["verify", "shadow_write"]


@pytest.mark.parametrize("trouble", [ConnectionLost("UPDATE", "gone", "", 2013), LockTimeout("UPDATE", "1205", "", 1205),
                                     StatementFailed("UPDATE", "MySQL error 1290", "", 1290)], ids=lambda error: str(error.errno))
def test_a_way_back_that_the_server_interrupts_has_not_failed(rollouts: Rollouts, seeded: App, monkeypatch: pytest.MonkeyPatch,
                                                              trouble: StatementFailed) -> None:
    def interrupted(_: Rollout) -> list[Step]:
        raise trouble

    with monkeypatch.context() as patched:
        patched.setattr(deploy, "back", interrupted)
        with pytest.raises(Stopped, match="1 of 9 rows disagree") as stopped:
            actions.run(rollouts(), RUN, After("deploy", plant(seeded)))
        assert (stopped.value.exit_code, last_run(seeded)[0]) == (4, 4)
        assert "what stands: deploy, pre_deploy" in str(stopped.value)
        with pytest.raises((ConnectionLost, Stopped)):
            actions.rollback(rollouts(), BACK, PlainConductor())
        assert last_run(seeded)[0] == 4

    assert actions.rollback(rollouts(), BACK, PlainConductor()).outcome == "done"
    assert states(seeded) == {**BACK_AT_PRE_DEPLOY, "pre_deploy": "done"}


def test_after_a_manual_deploy_the_way_back_waits_for_a_person_and_prints_the_call(rollouts: Rollouts, seeded: App) -> None:
    """Who confirmed that V1 is out did not thereby confirm that it is gone again."""
    manual = plan_loader.load("ai_analysis_job")

    with pytest.raises(Stopped, match="1 of 9 rows disagree") as stopped:
        actions.run(rollouts(plan=manual, deployed_by="ben"), RUN, After("deploy", plant(seeded)))

    assert stopped.value.exit_code == 4
    assert "rollout rollback ai_analysis_job --to pre_deploy --deployed-by NAME" in str(stopped.value)
    assert states(seeded) == {**UP_TO_VERIFY, "verify": "fail"}
    assert seeded.triggers() == ON

    assert actions.rollback(rollouts(plan=manual, deployed_by="ben"), BACK, PlainConductor()).did == ["verify", "backfill", "deploy"]
    assert states(seeded) == BACK_AT_PRE_DEPLOY


def test_a_rollback_command_that_fails_after_verify_failed_needs_a_person_and_says_what_stands(rollouts: Rollouts, seeded: App) -> None:
    with pytest.raises(RollbackFailed, match="command for v0: ended with 9") as failed:
        actions.run(rollouts(plan=planned("deploy.rollback_command=exit 9")), RUN, After("deploy", plant(seeded)))

    assert failed.value.exit_code == 7
    assert "what stands: deploy, pre_deploy" in str(failed.value)
    assert states(seeded) == {"pre_deploy": "done", "deploy": "done", "backfill": "undone", "verify": "undone"}
    assert seeded.triggers() == ON
    assert last_run(seeded)[0] == 7


def test_a_rollback_that_was_asked_for_and_fails_half_way_says_what_stands(rollouts: Rollouts, seeded: App) -> None:
    actions.run(rollouts(), RUN, PlainConductor())
    back = RollbackRequest(plan="ai_analysis_job", by="tester", reason="because", to=Where.V0)

    with pytest.raises(RollbackFailed, match="ended with 9") as failed:
        actions.rollback(rollouts(plan=planned("deploy.rollback_command=exit 9")), back, PlainConductor())

    assert failed.value.exit_code == 7
    assert "what stands: deploy, pre_deploy" in str(failed.value)
    assert states(seeded)["deploy"] == "done"
    assert seeded.triggers() == ON
    assert last_run(seeded)[0] == 7
    assert actions.rollback(rollouts(), back, PlainConductor()).did == ["deploy", "pre_deploy"]


def test_a_failing_verify_command_is_a_failed_verify(rollouts: Rollouts, seeded: App) -> None:
    with pytest.raises(RolledBack, match=r"verify\.command ended with 1"):
        actions.run(rollouts(plan=planned("verify.command=exit 1")), RUN, PlainConductor())

    assert states(seeded) == BACK_AT_PRE_DEPLOY
    detail = json.loads(seeded.value("SELECT detail FROM _rollout_event WHERE step = 'verify command'"))
    assert detail["exit"] == 1


@pytest.mark.parametrize(("command", "deadline_s", "said"), [
    ("no-such-program-at-all", 30, "could not be started"), ("sleep 60", 0.2, "deadline of 0.2 s")])
def test_a_verify_command_that_gives_no_answer_is_inconclusive(rollouts: Rollouts, seeded: App, command: str, deadline_s: float,
                                                               said: str) -> None:
    plan = planned(f"verify.command={command}")
    plan = plan.model_copy(update={"verify": plan.verify.model_copy(update={"deadline_s": deadline_s})})

    with pytest.raises(Stopped, match="inconclusive") as stopped:
        actions.run(rollouts(plan=plan), RUN, PlainConductor())

    assert said in str(stopped.value)
    assert stopped.value.exit_code == 4
    assert states(seeded) == {**UP_TO_VERIFY, "verify": "inconclusive"}
    assert seeded.triggers() == ON
    assert actions.run(rollouts(), RUN, PlainConductor()).did == ["verify", "shadow_write"]


def test_a_smoke_query_with_another_answer_is_named_without_any_row(rollouts: Rollouts, seeded: App, plan: Plan) -> None:
    name = "verify/900_nobody_failed.sql"
    queries = {**plan.queries, name: "-- expect: no rows\nSELECT id, errorMessage FROM AiAnalysisJob WHERE status = 'failed'"}

    with pytest.raises(RolledBack, match=name) as failed:
        actions.run(rollouts(plan=plan.model_copy(update={"queries": queries})), RUN, PlainConductor())

    assert "expected no rows, got 2 rows of 2 columns" in str(failed.value)
    record = str(seeded.rows("SELECT * FROM _rollout_event") + seeded.rows("SELECT * FROM _rollout_phase")
                 + seeded.rows("SELECT * FROM _rollout_run"))
    for text in (str(failed.value), record):
        assert "boom" not in text
    assert states(seeded) == BACK_AT_PRE_DEPLOY


def test_a_failed_deploy_is_taken_back_by_the_rollback_command(rollouts: Rollouts, seeded: App, tmp_path: Path) -> None:
    plan = planned("deploy.command=echo no room; exit 3",
                   f"deploy.rollback_command=echo $ROLLOUT_GENERATION $ROLLOUT_PLAN $ROLLOUT_TABLE > {tmp_path}/back")

    with pytest.raises(RolledBack, match="command for v1: ended with 3: no room"):
        actions.run(rollouts(plan=plan), RUN, PlainConductor())

    assert (tmp_path / "back").read_text().split() == ["v0", "ai_analysis_job", "AiAnalysisJob"]
    assert states(seeded) == {"pre_deploy": "done", "deploy": "undone"}
    assert seeded.triggers() == ON
    assert last_run(seeded)[0] == 5
    assert actions.run(rollouts(), RUN, PlainConductor()).did == ["deploy", "backfill", "verify", "shadow_write"]


def test_a_failed_deploy_without_a_rollback_command_waits_for_a_person(rollouts: Rollouts, seeded: App) -> None:
    plan = plan_loader.load("ai_analysis_job", ("deploy.command=exit 3",))

    with pytest.raises(Stopped, match="rollout rollback ai_analysis_job deploy --deployed-by NAME") as stopped:
        actions.run(rollouts(plan=plan), RUN, PlainConductor())

    assert stopped.value.exit_code == 4
    assert states(seeded) == {"pre_deploy": "done", "deploy": "running"}
    assert seeded.triggers() == ON
    assert actions.run(rollouts(), RUN, PlainConductor()).outcome == "done"


def test_a_deploy_over_its_deadline_is_ended_with_all_that_it_started(rollouts: Rollouts, seeded: App, tmp_path: Path) -> None:
    plan = planned(f"deploy.command=sleep 60 & echo $! > {tmp_path}/pid; wait")
    plan = plan.model_copy(update={"deploy": plan.deploy.model_copy(update={"deadline_s": 0.3})})

    with pytest.raises(RolledBack, match=r"ran over its deadline of 0\.3 s"):
        actions.run(rollouts(plan=plan), RUN, PlainConductor())

    assert states(seeded) == {"pre_deploy": "done", "deploy": "undone"}
    assert gone(int((tmp_path / "pid").read_text()))


def gone(pid: int) -> bool:
    """Whether the process has ended; one that nobody has waited for yet counts as ended."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def test_health_is_asked_until_it_says_yes(rollouts: Rollouts, seeded: App, tmp_path: Path, slept: list[float]) -> None:
    plan = planned(f"deploy.health_command=echo x >> {tmp_path}/asked; test $(wc -l < {tmp_path}/asked) -ge 3", "deploy.health_every_s=7")

    assert actions.run(rollouts(plan=plan), RUN, PlainConductor()).outcome == "done"

    assert (tmp_path / "asked").read_text() == "x\n" * 3
    assert slept.count(7) == 2


def test_health_that_never_says_yes_takes_the_deploy_back(rollouts: Rollouts, seeded: App) -> None:
    plan = planned("deploy.health_command=echo still starting; false")
    plan = plan.model_copy(update={"deploy": plan.deploy.model_copy(update={"deadline_s": 0.3})})

    with pytest.raises(RolledBack, match=r"did not say yes within 0\.3 s: still starting"):
        actions.run(rollouts(plan=plan), RUN, PlainConductor())

    assert states(seeded) == {"pre_deploy": "done", "deploy": "undone"}


def test_a_deploy_command_does_not_get_the_databases_url(rollouts: Rollouts, seeded: App, tmp_path: Path,
                                                         monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROLLOUT_DATABASE_URL", "mysql://u:secret-word@h/d")

    actions.run(rollouts(plan=planned(f"deploy.command=env > {tmp_path}/env")), RUN, PlainConductor())

    assert "ROLLOUT_GENERATION=v1" in (tmp_path / "env").read_text()
    assert "secret-word" not in (tmp_path / "env").read_text()
