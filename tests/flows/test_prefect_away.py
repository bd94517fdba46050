"""A dead Prefect API costs the cockpit, never the rollout. And what the command line tells a living one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from sqlalchemy import make_url

from steps.target import ENVIRONMENT
from tests.conftest import App

NOWHERE = "http://127.0.0.1:9/api"
LONGEST_S = 60
ALL_DONE = dict.fromkeys(("pre_deploy", "deploy", "backfill", "verify", "shadow_write"), "done")


def rollout(url: str, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([Path(sys.executable).with_name("rollout"), *words], capture_output=True, text=True, timeout=120, check=False,
                          env={**os.environ, ENVIRONMENT: url, **environment})


def test_a_dead_api_does_not_stop_the_run_and_is_said(seeded: App, url: str, tmp_path: Path) -> None:
    began = time.monotonic()

    ended = rollout(url, "run", "ai_analysis_job", "--json", "--set", "deploy.command=true", "--set", "deploy.rollback_command=true",
                    PREFECT_API_URL=NOWHERE, PREFECT_HOME=str(tmp_path))

    assert ended.returncode == 0, ended.stderr
    assert time.monotonic() - began < LONGEST_S
    assert json.loads(ended.stdout)["phases"] == list(ALL_DONE)
    assert "Prefect" in ended.stderr
    assert dict(seeded.rows("SELECT phase, state FROM _rollout_phase")) == ALL_DONE
    assert seeded.rows("SELECT verb, exit_code, outcome FROM _rollout_run") == [("run", 0, "done")]


def test_what_the_command_line_tells_prefect_holds_no_secret(prefect_server: None, seeded: App, url: str, tmp_path: Path) -> None:
    from prefect.client.orchestration import get_client
    from prefect.settings import PREFECT_API_URL

    password = str(make_url(url).password)
    command = f"deploy.command=echo {password} | tee {tmp_path}/got"
    ended = rollout(url, "run", "ai_analysis_job", "--json", "--by", "cli-ann", "--set", command, "--set", "deploy.rollback_command=true",
                    PREFECT_API_URL=str(PREFECT_API_URL.value()))

    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "got").read_text().strip() == password  # what ran is what was asked for
    assert dict(seeded.rows("SELECT phase, state FROM _rollout_phase")) == ALL_DONE
    with get_client(sync_client=True) as client:
        (run,) = [run for run in client.read_flow_runs() if run.name == "rollout ai_analysis_job by cli-ann"]
    assert run.state is not None
    assert run.state.name == "Completed"
    assert password not in json.dumps(run.parameters)
    assert "echo ***" in json.dumps(run.parameters)
    ledger = repr([seeded.rows(f"SELECT * FROM _rollout_{table}") for table in ("run", "event", "phase", "plan")])
    assert password not in ended.stdout + ended.stderr + ledger
