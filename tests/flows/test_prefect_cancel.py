"""Cancel in the Prefect UI on a served run, and a server of runs that is killed while one works."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from steps.target import ENVIRONMENT
from tests.flows.deploy_stage import ROOT, Stage
from tests.flows.nothing_held import nothing_held

SOON_S = 60


@pytest.fixture
def served(prefect_server: None, stage: Stage, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """`rollout serve` for the stage's database; whatever it has started is gone with the test."""
    from prefect.settings import PREFECT_API_URL

    environment = {**os.environ, ENVIRONMENT: stage.target.url.render_as_string(hide_password=False), "PYTHONPATH": str(ROOT),
                   "PREFECT_API_URL": str(PREFECT_API_URL.value()), "PREFECT_RUNNER_POLL_FREQUENCY": "1"}
    with (tmp_path / "served").open("wb") as said:
        process = subprocess.Popen([Path(sys.executable).with_name("rollout"), "serve"], env=environment, cwd=tmp_path, stdout=said,
                                   stderr=subprocess.STDOUT, start_new_session=True)
    yield process
    process.terminate()
    process.wait(SOON_S)


def until(what: Callable[[], Any]) -> Any:
    ends = time.monotonic() + SOON_S
    while not (found := what()):
        assert time.monotonic() < ends, "never seen"
        time.sleep(0.1)
    return found


def test_cancel_in_the_ui_ends_cancelled_and_resumable_and_a_killed_server_of_runs_takes_no_run_with_it(
        served: subprocess.Popen[bytes], stage: Stage) -> None:
    from prefect.client.orchestration import get_client
    from prefect.exceptions import ObjectNotFound
    from prefect.states import Cancelling

    begun, go = stage.folder / "begun", stage.folder / "go"
    stage.plan(command=f"touch {begun}; while [ ! -e {go} ]; do sleep 0.05; done", rollback_command="true")

    with get_client(sync_client=True) as client:
        def deployment() -> Any:
            try:
                return client.read_deployment_by_name("rollout/rollout")
            except ObjectNotFound:
                return None

        def started() -> Any:
            begun.unlink(missing_ok=True)
            request = {"plan": str(stage.folder), "by": "ann", "reason": "it is due", "through": "deploy"}
            made = client.create_flow_run_from_deployment(until(deployment).id, parameters={"request": request})
            until(begun.exists)
            return made.id

        def ended(flow_run: Any) -> Any:
            state = client.read_flow_run(flow_run).state
            return state if state and state.is_final() else None

        cancelled = started()
        client.set_flow_run_state(cancelled, Cancelling())
        state = until(lambda: ended(cancelled))
        assert (state.type.value, state.name) == ("CANCELLED", "Cancelled")
        assert nothing_held(stage) == []
        assert stage.app.rows("SELECT exit_code, outcome FROM _rollout_run") == [(4, "cancelled by SIGTERM")]
        assert stage.phase()[0] == "running"

        again = started()
        served.kill()
        go.touch()
        state = until(lambda: ended(again))
        assert (state.type.value, state.name, state.message) == ("COMPLETED", "Completed", "done: deploy")
        assert (stage.phase()[0], nothing_held(stage)) == ("done", [])
