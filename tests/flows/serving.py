"""`rollout serve` as a process of its own, to be killed and started again, and what Prefect's API knows of its runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

from httpx import HTTPStatusError

from steps.target import ENVIRONMENT, ENVIRONMENT_FILE
from tests.flows.deploy_stage import ROOT, Stage

SOON_S, BUSY_TRIES = 90, 5


def until(what: Callable[[], Any]) -> Any:
    """The first answer of *what* that is something."""
    ends = time.monotonic() + SOON_S
    while not (found := what()):
        assert time.monotonic() < ends, "never seen"
        time.sleep(0.1)
    return found


class Runner:
    """`rollout serve` as a process; whose database it works on stands in a file that each run reads as it begins."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process: subprocess.Popen[bytes] | None = None

    def works_on(self, stage: Stage) -> None:
        (self.folder / "database").write_text(stage.target.url.render_as_string(hide_password=False))
        if self.process is None or self.process.poll() is not None:
            self.start()

    def start(self) -> None:
        from prefect.settings import PREFECT_API_URL

        environment = {**os.environ, ENVIRONMENT_FILE: str(self.folder / "database"), "PYTHONPATH": str(ROOT),
                       "PREFECT_API_URL": str(PREFECT_API_URL.value()), "PREFECT_RUNNER_POLL_FREQUENCY": "1"}
        environment.pop(ENVIRONMENT, None)  # which would come first
        with (self.folder / "said").open("ab") as said:
            self.process = subprocess.Popen([sys.executable, "-c", "from flows.cli.app import main; main()", "serve"], env=environment,
                                            cwd=self.folder, stdout=said, stderr=subprocess.STDOUT, start_new_session=True)

    def kill(self) -> None:
        """Kill -9, as when a machine is gone."""
        if self.process:
            self.process.kill()
            self.process.wait(SOON_S)

    def stop(self) -> None:
        if self.process and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(SOON_S)


class Serving:
    """The runs of one stage's database on that runner, and what Prefect knows of them."""

    def __init__(self, stage: Stage, runner: Runner, client: Any) -> None:
        self.stage, self.client = stage, client
        self.start, self.kill = runner.start, runner.kill

    def begun(self, flow: str = "rollout", **request: Any) -> Any:
        """A new run of that deployment."""
        from prefect.exceptions import ObjectNotFound, PrefectHTTPStatusError

        def deployment() -> Any:
            try:
                return self.client.read_deployment_by_name(f"{flow}/{flow}")
            except ObjectNotFound:
                return None

        asked = {"plan": str(self.stage.folder), "by": "ann", "reason": "it is due", **request}
        found, key = until(deployment).id, uuid4().hex

        def made() -> Any:
            try:
                return self.client.create_flow_run_from_deployment(found, parameters={"request": asked}, idempotency_key=key).id
            except PrefectHTTPStatusError as busy:
                if not busy.response.is_server_error:
                    raise
                return None  # a server on SQLite answers 503 while it is busy

        return until(made)

    def state(self, flow_run: Any) -> Any:
        return self.client.read_flow_run(flow_run).state

    def ended(self, flow_run: Any) -> Any:
        """The state in which it ends."""
        return until(lambda: state if (state := self.state(flow_run)) and state.is_final() else None)

    def suspended(self, flow_run: Any, before: Any = None) -> Any:
        """The state in which it waits and can be answered, a later one than *before*; an end instead is told."""
        def now() -> Any:
            state = self.state(flow_run)
            assert not (state and state.is_final()), f"{state.name}: {state.message}"
            return state if state and state.is_paused() and (before is None or state.id != before.id) else None
        state = until(now)
        if keys := state.state_details.run_input_keyset:
            until(lambda: self._stored(flow_run, keys["schema"]))  # left a moment after the state; an answer before it is refused
        return state

    def asked(self, flow_run: Any, state: Any) -> tuple[str, dict[str, Any]]:
        """What a suspended run shows, and the schema that it wants."""
        keys = state.state_details.run_input_keyset
        text, schema = (until(lambda key=key: self._stored(flow_run, keys[key])) for key in ("description", "schema"))
        return str(text), dict(schema if isinstance(schema, dict) else json.loads(schema))

    def _stored(self, flow_run: Any, key: str) -> Any:
        from prefect.exceptions import PrefectHTTPStatusError

        try:
            return self.client.request("GET", f"/flow_runs/{flow_run}/input/{key}").json()
        except PrefectHTTPStatusError:
            return None

    def artifact(self, flow_run: Any, key: str) -> str:
        """What the run's page of that key says."""
        return str(next(one["data"] for one in self._artifacts(flow_run) if one["key"] == key))

    def artifacts(self, flow_run: Any) -> list[str]:
        """The keys of all that the run left."""
        return [str(one["key"]) for one in self._artifacts(flow_run)]

    def _artifacts(self, flow_run: Any) -> list[dict[str, Any]]:
        asked = {"limit": 200, "artifacts": {"flow_run_id": {"any_": [str(flow_run)]}}}
        return list(self.client.request("POST", "/artifacts/filter", json=asked).json())

    def runs_of(self, flow: str) -> list[Any]:
        """All flow runs of that flow."""
        from prefect.client.schemas.filters import FlowFilter, FlowFilterName

        return list(self.client.read_flow_runs(flow_filter=FlowFilter(name=FlowFilterName(any_=[flow]))))

    def now(self, flow_run: Any) -> None:
        """A scheduled run is to begin at once."""
        from prefect.states import Scheduled

        self.client.set_flow_run_state(flow_run, Scheduled(), force=True)

    def cancel(self, flow_run: Any) -> None:
        """As the button in the UI does with a run that has no process."""
        from prefect.states import Cancelling

        self.client.set_flow_run_state(flow_run, Cancelling(message="not today"))

    def answer(self, flow_run: Any, **run_input: Any) -> Any:
        """What Prefect's API says to an answer. Its server on SQLite answers 503 while it is busy, and is asked again."""
        for _ in range(BUSY_TRIES):
            try:
                return self.client.resume_flow_run(flow_run, run_input=run_input or None)
            except HTTPStatusError as busy:
                if busy.response.is_client_error:
                    raise
                time.sleep(1)
        return self.client.resume_flow_run(flow_run, run_input=run_input or None)
