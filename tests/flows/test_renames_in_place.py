"""`rename_mode = "in_place"` set by itself: the way back reverses every rename, also where an index came after them, and after a stop."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from flows import actions
from flows.conductor import PlainConductor
from flows.params import RollbackRequest, RunRequest
from flows.params import Target as Where
from steps import plan_loader
from steps.rollout import Rollout
from tests.conftest import BY_COMMAND, App
from tests.flows.between import AfterEachStep

Rollouts = Callable[..., Rollout]
RUN = RunRequest(plan="ai_analysis_job", by="tester", reason="because")
BACK = RollbackRequest(plan="ai_analysis_job", by="tester", reason="because", to=Where.V0)
PATHS = [("rename_mode=in_place",), ("path=adr",)]


def v0_columns(app: App) -> set[str]:
    return {name for name in ("completedAt", "errorMessage", "finishedAt", "internalErrorMessage") if f"`{name}`" in app.create_table()}


@pytest.mark.parametrize("settings", PATHS, ids=" ".join)
def test_v0_has_both_its_columns_again(rollouts: Rollouts, seeded: App, settings: tuple[str, ...]) -> None:
    plan, accepted = plan_loader.load("ai_analysis_job", (*BY_COMMAND, *settings)), frozenset(["rename-in-place"])
    before = seeded.rows("SELECT id, status, completedAt, errorMessage FROM AiAnalysisJob ORDER BY id")
    actions.run(rollouts(plan=plan, accepted=accepted), RUN, PlainConductor())
    assert v0_columns(seeded) == {"finishedAt", "internalErrorMessage"}

    actions.rollback(rollouts(plan=plan), BACK, PlainConductor())

    assert v0_columns(seeded) == {"completedAt", "errorMessage"}
    assert seeded.rows("SELECT id, status, completedAt, errorMessage FROM AiAnalysisJob ORDER BY id") == before
    assert actions.rollback(rollouts(plan=plan), BACK, PlainConductor()).outcome == "nothing to do"
    assert actions.run(rollouts(plan=plan, accepted=accepted), RUN, PlainConductor()).outcome == "done"
    assert v0_columns(seeded) == {"finishedAt", "internalErrorMessage"}
    assert "`idx_lifecycleStatus_createdAt`" in seeded.create_table()


def test_stopped_between_triggers_and_renames_the_same_rollback_reverses_them(rollouts: Rollouts, seeded: App) -> None:
    plan = plan_loader.load("ai_analysis_job", (*BY_COMMAND, "rename_mode=in_place"))
    actions.run(rollouts(plan=plan, accepted=frozenset(["rename-in-place"])), RUN, PlainConductor())

    def interrupt(_: str, step: str) -> None:
        if step == "sync triggers off":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        actions.rollback(rollouts(plan=plan), BACK, AfterEachStep(interrupt))
    assert (seeded.triggers(), v0_columns(seeded)) == ([], {"finishedAt", "internalErrorMessage"})

    assert actions.rollback(rollouts(plan=plan), BACK, PlainConductor()).did == ["pre_deploy"]

    assert v0_columns(seeded) == {"completedAt", "errorMessage"}
    assert seeded.value("SELECT state FROM _rollout_phase WHERE phase = 'pre_deploy'") == "undone"
