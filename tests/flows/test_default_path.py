"""The main job on a real server: forward, again, every way back, and forward after it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from flows import actions
from flows.conductor import PlainConductor
from flows.params import RollbackRequest, RunRequest, Target, Through
from steps.errors import Refused
from steps.phase import Phase
from steps.rollout import Rollout
from tests.conftest import App, add_jobs

RUN = RunRequest(plan="ai_analysis_job", by="tester", reason="because", database="command line")


def back(**what: object) -> RollbackRequest:
    return RollbackRequest(plan="ai_analysis_job", by="tester", reason="because", database="command line", **what)  # type: ignore[arg-type]


def forward(rollouts: Callable[..., Rollout], **what: object) -> actions.Result:
    return actions.run(rollouts(**what), RUN, PlainConductor())


def disagreeing(app: App) -> int:
    return int(app.value(
        "SELECT COUNT(*) FROM AiAnalysisJob WHERE NOT (completedAt <=> finishedAt) OR NOT (errorMessage <=> internalErrorMessage) OR "
        "(status, lifecycleStatus) NOT IN (('pending','pending'),('processing','running'),('completed','succeeded'),('failed','failed'))"))


def test_history_is_filled_and_updated_at_is_not_bumped(rollouts: Callable[..., Rollout], seeded: App) -> None:
    result = forward(rollouts)

    assert result.did == ["pre_deploy", "deploy", "backfill", "verify", "shadow_write"]
    assert disagreeing(seeded) == 0
    assert seeded.value("SELECT COUNT(*) FROM AiAnalysisJob WHERE updatedAt <> '2026-01-02 03:04:05.678'") == 0
    assert seeded.triggers() == ["rollout_ai_analysis_job_bi", "rollout_ai_analysis_job_bu"]


def test_a_second_run_sends_no_ddl(rollouts: Callable[..., Rollout], seeded: App) -> None:
    forward(rollouts)
    before = seeded.rows("SHOW GLOBAL STATUS WHERE Variable_name IN ('Com_alter_table', 'Com_create_trigger', 'Com_lock_tables')")

    assert forward(rollouts).outcome == "nothing to do"
    assert seeded.rows("SHOW GLOBAL STATUS WHERE Variable_name IN ('Com_alter_table', 'Com_create_trigger', 'Com_lock_tables')") == before


def test_back_to_v0_with_everything_dropped_is_the_baseline_to_the_byte(rollouts: Callable[..., Rollout], seeded: App) -> None:
    tables = ("AiAnalysisJob", "User", "AiAnalysisResult", "AiRuntimeJob", "AiRuntimeResult")
    before = {table: seeded.create_table(table) for table in tables}
    rows = seeded.rows("SELECT * FROM AiAnalysisJob ORDER BY id")
    forward(rollouts)

    result = actions.rollback(rollouts(), back(to=Target.V0, drop_added=True), PlainConductor())

    assert result.did == ["shadow_write", "verify", "backfill", "deploy", "pre_deploy"]
    assert {table: seeded.create_table(table) for table in tables} == before
    assert seeded.rows("SELECT * FROM AiAnalysisJob ORDER BY id") == rows
    assert seeded.triggers() == []
    assert actions.rollback(rollouts(), back(to=Target.V0, drop_added=True), PlainConductor()).outcome == "nothing to do"


def test_v0_moves_on_without_sync_and_the_next_run_lets_the_old_side_decide(rollouts: Callable[..., Rollout], seeded: App) -> None:
    forward(rollouts)
    actions.rollback(rollouts(), back(to=Target.V0), PlainConductor())
    assert seeded.triggers() == []
    seeded.run("UPDATE AiAnalysisJob SET status = 'completed', completedAt = '2026-02-02 02:02:02.222', errorMessage = NULL")
    add_jobs(seeded, 4, prefix="later")
    assert disagreeing(seeded) > 0

    forward(rollouts)

    assert disagreeing(seeded) == 0
    assert seeded.value("SELECT COUNT(*) FROM AiAnalysisJob WHERE lifecycleStatus = 'succeeded'") == 10


STANDING = tuple(phase for phase in Through if phase is not Through.CLEANUP)


@pytest.mark.parametrize("phase", STANDING)
def test_a_phase_that_stands_below_another_is_not_undone(rollouts: Callable[..., Rollout], seeded: App, phase: Through) -> None:
    forward(rollouts)
    if phase is Through.SHADOW_WRITE:
        assert actions.rollback(rollouts(), back(phase=phase), PlainConductor()).did == ["shadow_write"]
        return

    with pytest.raises(Refused, match="stands, which comes later"):
        actions.rollback(rollouts(), back(phase=phase), PlainConductor())

    assert rollouts().ledger.phase_state(Phase.SHADOW_WRITE) == "done"


def test_every_phase_goes_back_one_by_one_and_forward_again(rollouts: Callable[..., Rollout], seeded: App) -> None:
    forward(rollouts)
    for phase in reversed(STANDING):
        assert actions.rollback(rollouts(), back(phase=phase), PlainConductor()).did == [phase.value]
        assert actions.rollback(rollouts(), back(phase=phase), PlainConductor()).outcome == "nothing to do"

    assert forward(rollouts).outcome == "done"
    assert disagreeing(seeded) == 0
