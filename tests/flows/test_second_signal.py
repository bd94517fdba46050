"""However many signals come, and whenever: a run that was asked to stop ends with the code that it said, and without a trace."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from steps import control
from steps.target import ENVIRONMENT
from tests.flows.deploy_stage import ROOT, Stage
from tests.flows.nothing_held import nothing_held
from tests.flows.watched import seen

SOON_S = 60
BETWEEN_S = 0.02


def begun(stage: Stage, *words: str, **environment: str) -> subprocess.Popen[str]:
    url = stage.target.url.render_as_string(hide_password=False)
    arguments = [str(Path(sys.executable).with_name("rollout")), "run", str(stage.folder), "--json", "--through", "deploy", *words]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env={**os.environ, "PYTHONPATH": str(ROOT), ENVIRONMENT: url, **environment})


def pelted(process: subprocess.Popen[str], *numbers: signal.Signals) -> tuple[int, int, str]:
    """Signals without end, *numbers* by turns: (how it ended, the code that it said, its other words)."""
    turn, until = 0, time.monotonic() + SOON_S
    while process.poll() is None and time.monotonic() < until:
        process.send_signal(numbers[turn % len(numbers)])
        turn += 1
        time.sleep(BETWEEN_S)
    said, errors = process.communicate(timeout=SOON_S)
    assert said, errors
    return process.returncode, json.loads(said)["exit_code"], errors


@pytest.mark.parametrize("numbers", [(signal.SIGTERM,), (signal.SIGINT,), (signal.SIGTERM, signal.SIGINT)])
def test_signals_without_end_in_a_deploy_command_end_the_run_as_the_first_one_does(
        stage: Stage, numbers: tuple[signal.Signals, ...]) -> None:
    mark = stage.folder / "begun"
    stage.plan(command=f"touch {mark}; sleep 46", rollback_command="true")
    process = begun(stage, "--no-prefect")
    seen(mark.exists, process)

    ended, said, errors = pelted(process, *numbers)

    assert (ended, said) == (4, 4), errors
    assert "Traceback" not in errors
    assert "ignored in" not in errors
    assert stage.app.rows("SELECT exit_code, outcome FROM _rollout_run") == [(4, f"cancelled by {numbers[0].name}")]
    assert (nothing_held(stage), stage.phase()[0]) == ([], "running")


def test_signals_without_end_in_a_pause_do_so_too(stage: Stage) -> None:
    stage.plan(command="true", rollback_command="true")
    ledger = stage.rollout().ledger
    ledger.create()
    control.ask(ledger, control.PAUSE, "ann", "lunch")
    process = begun(stage, "--no-prefect")
    seen(lambda: stage.app.value("SELECT COUNT(*) FROM _rollout_event WHERE outcome = 'paused'"), process)

    ended, said, errors = pelted(process, signal.SIGTERM, signal.SIGINT)

    assert (ended, said) == (4, 4), errors
    assert "Traceback" not in errors
    assert stage.app.rows("SELECT exit_code, outcome FROM _rollout_run") == [(4, "cancelled by SIGTERM")]
    assert nothing_held(stage) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_that_come_when_the_work_has_ended_change_nothing_while_prefect_hears_of_it(
        prefect_server: None, stage: Stage, number: signal.Signals) -> None:
    from prefect.settings import PREFECT_API_URL

    stage.plan(command="true", rollback_command="true")
    process = begun(stage, PREFECT_API_URL=str(PREFECT_API_URL.value()))
    seen(lambda: stage.app.value("SELECT COUNT(*) FROM _rollout_run WHERE ended_at IS NOT NULL"), process)
    seen(lambda: nothing_held(stage) == [], process)

    ended, said, errors = pelted(process, number)

    assert (ended, said) == (0, 0), errors
    assert "Traceback" not in errors
    assert "ignored in" not in errors
    assert stage.phase()[0] == "done"
