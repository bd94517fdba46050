"""Cancel in the Prefect UI on a served run, and a server of runs that is killed while one works."""

from __future__ import annotations

from typing import Any

from tests.flows.deploy_stage import Stage
from tests.flows.nothing_held import nothing_held
from tests.flows.serving import Serving, until


def test_cancel_in_the_ui_ends_cancelled_and_resumable_and_a_killed_server_of_runs_takes_no_run_with_it(
        serving: Serving, stage: Stage) -> None:
    from prefect.states import Cancelling

    begun, go = stage.folder / "begun", stage.folder / "go"
    stage.plan(command=f"touch {begun}; while [ ! -e {go} ]; do sleep 0.05; done", rollback_command="true")

    def started() -> Any:
        begun.unlink(missing_ok=True)
        made = serving.begun(through="deploy")
        until(begun.exists)
        return made

    cancelled = started()
    serving.client.set_flow_run_state(cancelled, Cancelling())
    state = serving.ended(cancelled)
    assert (state.type.value, state.name) == ("CANCELLED", "Cancelled")
    assert nothing_held(stage) == []
    assert stage.app.rows("SELECT exit_code, outcome FROM _rollout_run") == [(4, "cancelled by SIGTERM")]
    assert stage.phase()[0] == "running"

    again = started()
    serving.kill()
    go.touch()
    state = serving.ended(again)
    assert (state.type.value, state.name, state.message) == ("COMPLETED", "Completed", "done: deploy")
    assert (stage.phase()[0], nothing_held(stage)) == ("done", [])
