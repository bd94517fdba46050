"""A dead Prefect API costs the cockpit, never the rollout. And what the command line tells a living one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import make_url

from flows import actions, report
from flows.cli import performing
from flows.cli.ending import Ending
from flows.params import RollbackRequest, RunRequest
from steps.rollout import Rollout
from steps.target import ENVIRONMENT, Target
from tests.conftest import App
from tests.doubles.api_relay import ApiRelay

Rollouts = Callable[..., Rollout]
NOWHERE = "http://127.0.0.1:9/api"
LONGEST_S = 60
LATER = "rollout report ai_analysis_job --sync"
ALL_DONE = dict.fromkeys(("pre_deploy", "deploy", "backfill", "verify", "shadow_write"), "done")


def begun(url: str, *words: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen([Path(sys.executable).with_name("rollout"), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env={**os.environ, ENVIRONMENT: url, **environment})


def rollout(url: str, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    process = begun(url, *words, **environment)
    output, errors = process.communicate(timeout=LONGEST_S)
    return subprocess.CompletedProcess(words, process.returncode, output, errors)


def test_a_dead_api_does_not_stop_the_run_is_said_and_told_later(prefect_server: None, seeded: App, url: str, tmp_path: Path) -> None:
    from prefect.settings import PREFECT_API_URL

    ended = rollout(url, "run", "ai_analysis_job", "--json", "--set", "deploy.command=true", "--set", "deploy.rollback_command=true",
                    PREFECT_API_URL=NOWHERE, PREFECT_HOME=str(tmp_path))

    assert ended.returncode == 0, ended.stderr
    document = json.loads(ended.stdout)
    assert document["phases"] == list(ALL_DONE)
    assert (document["prefect"]["told"], document["prefect"]["remedy"]) == (False, LATER)
    assert f"Prefect could not be told ({document['prefect']['reason']}); the ledger has all of it" in ended.stderr
    assert dict(seeded.rows("SELECT phase, state FROM _rollout_phase")) == ALL_DONE
    assert seeded.rows("SELECT verb, exit_code, outcome FROM _rollout_run") == [("run", 0, "done")]

    told = rollout(url, *LATER.split()[1:], "--json", PREFECT_API_URL=str(PREFECT_API_URL.value()))
    assert told.returncode == 0, told.stderr
    summary = json.loads(told.stdout)["prefect"]
    assert (summary["runs"], summary["completed"], summary["known"]) == (1, 0, 0)
    assert summary["events"] == seeded.value("SELECT COUNT(*) FROM _rollout_event")


@pytest.mark.parametrize("trouble", ["gone", "silent"])
def test_an_api_that_falls_out_on_the_way_costs_the_cockpit_alone(
        prefect_server: None, seeded: App, url: str, rollouts: Rollouts, tmp_path: Path, trouble: str) -> None:
    """Between two phases; the exit code is the database work's, and what Prefect missed is told to its end afterwards."""
    from prefect.client.orchestration import get_client
    from prefect.settings import PREFECT_API_URL

    from flows import telling

    waits = f"deploy.command=touch {tmp_path}/begun; while [ ! -e {tmp_path}/go ]; do sleep 0.05; done"
    with ApiRelay(str(PREFECT_API_URL.value())) as relay:
        process = begun(url, "run", "ai_analysis_job", "--json", "--set", waits, "--set", "deploy.rollback_command=true",
                        PREFECT_API_URL=relay.url, PREFECT_API_REQUEST_TIMEOUT="1")
        until = time.monotonic() + LONGEST_S
        while not (tmp_path / "begun").exists():
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < until
            time.sleep(0.02)
        getattr(relay, trouble)()
        (tmp_path / "go").touch()
        output, errors = process.communicate(timeout=LONGEST_S)

    assert process.returncode == 0, errors
    document = json.loads(output)
    assert (document["outcome"], document["phases"], document["prefect"]["told"]) == ("done", list(ALL_DONE), False)
    assert LATER in errors
    assert dict(seeded.rows("SELECT phase, state FROM _rollout_phase")) == ALL_DONE
    assert seeded.rows("SELECT verb, exit_code, outcome FROM _rollout_run") == [("run", 0, "done")]
    with get_client(sync_client=True) as client:
        assert not client.read_flow_run(document["prefect"]["flow_run"]).state.is_final()  # type: ignore[union-attr]
        summary = telling.sync(report.audit_trail(rollouts().ledger), at_work=False)
        assert (summary.runs, summary.completed, summary.known) == (0, 1, 0)
        assert client.read_flow_run(document["prefect"]["flow_run"]).state.name == "Completed"  # type: ignore[union-attr]


@pytest.mark.parametrize("trouble", ["gone", "silent", "failing"])
def test_an_api_in_trouble_is_asked_once_and_told_nothing(prefect_server: None, trouble: str) -> None:
    from prefect.settings import PREFECT_API_URL, temporary_settings

    from flows import api

    with ApiRelay(str(PREFECT_API_URL.value())) as relay, temporary_settings({PREFECT_API_URL: relay.url}):
        assert api.why_not() is None
        getattr(relay, trouble)()
        assert api.why_not()


ASKED: dict[str, Any] = {"plan": "ai_analysis_job", "by": "ann", "reason": "due", "database": "command line",
                         "settings": ["deploy.command=true", "deploy.rollback_command=true"]}


def performed(database: Target, request: RunRequest | RollbackRequest | None = None) -> Ending:
    """A run through Prefect in this process."""
    end = Ending(as_json=True)
    performing.perform(request or RunRequest(**ASKED), database, end, performing.Ask(end, quiet=True), prefect=True)
    return end


def test_a_fault_of_ours_is_not_tried_again_without_prefect(
        prefect_server: None, seeded: App, database: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[object] = []

    def faulty(*_: object) -> None:
        tried.append(1)
        raise ZeroDivisionError

    monkeypatch.setattr(actions, "run", faulty)

    with pytest.raises(ZeroDivisionError):
        performed(database)
    assert tried == [1]


def ended_before(**_named: object) -> Callable[..., Callable[..., object]]:
    from prefect.states import Pending

    return lambda _body: lambda **_: Pending(name="NotReady", message="upstream")


def out_of_order(**_named: object) -> Callable[..., Callable[..., object]]:
    def made(**_: object) -> object:
        raise RuntimeError("no task today")

    return lambda _body: made


@pytest.mark.parametrize(("task", "reason"), [(ended_before, "Prefect ended task pre-checks as NotReady: upstream"),
                                              (out_of_order, "Prefect could not run task pre-checks: RuntimeError")])
def test_where_prefect_lets_no_task_run_the_run_goes_on_without_it_and_says_so(
        prefect_server: None, seeded: App, database: Target, monkeypatch: pytest.MonkeyPatch, task: object, reason: str) -> None:
    from flows import tasks

    monkeypatch.setattr(tasks, "task", task)

    document = performed(database).document

    assert (document["outcome"], document["phases"]) == ("done", list(ALL_DONE))
    assert (document["prefect"]["told"], document["prefect"]["reason"]) == (False, reason)
    assert dict(seeded.rows("SELECT phase, state FROM _rollout_phase")) == ALL_DONE
    assert seeded.rows("SELECT verb, exit_code, outcome FROM _rollout_run") == [("run", 0, "done")]  # not once more from the start


def test_where_prefect_lets_no_task_run_a_way_back_is_no_failed_one(
        prefect_server: None, seeded: App, database: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    from flows import tasks

    performed(database)
    monkeypatch.setattr(tasks, "task", ended_before)

    document = performed(database, RollbackRequest(**ASKED, to="v0")).document

    assert (document["outcome"], document["prefect"]["told"]) == ("done", False)
    assert document["prefect"]["reason"] == "Prefect ended task rollback of shadow_write as NotReady: upstream"
    assert {*dict(seeded.rows("SELECT phase, state FROM _rollout_phase")).values()} == {"undone"}
    assert seeded.rows("SELECT verb, exit_code, outcome FROM _rollout_run")[1:] == [("rollback", 0, "done")]
    assert seeded.triggers() == []


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
