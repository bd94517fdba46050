"""Commands of a plan: a shell of their own, a deadline, no database URL, masked output."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from steps import cancellation, commands, masking, waits
from steps.commands import run_command
from steps.target import ENVIRONMENT, ENVIRONMENT_FILE
from tests.plans import small


def test_exit_code_and_both_outputs_come_back() -> None:
    assert run_command("echo out; echo err >&2; exit 3", 10, {}) == (3, "out\nerr\n")


def test_the_database_url_is_not_handed_on_and_the_plan_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT, "mysql://u:hunter22@h/d")
    monkeypatch.setenv(ENVIRONMENT_FILE, "/run/secrets/url")

    assert run_command(f"echo [${ENVIRONMENT}${ENVIRONMENT_FILE}] [$ROLLOUT_PLAN]", 10, {"ROLLOUT_PLAN": "p"}) == (0, "[] [p]\n")


def test_a_replicas_url_is_not_handed_on_either(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(masking, "_variables", set())
    monkeypatch.setenv("REPLICA_ONE", "mysql://u:hunter22@r/d")
    monkeypatch.setenv("REGION", "eu")
    small(tmp_path, overrides=('backfill.replicas=["REPLICA_ONE"]',))

    assert run_command("echo [$REPLICA_ONE] [$REGION]", 10, {}) == (0, "[] [eu]\n")


def test_secrets_in_the_output_are_masked() -> None:
    masking.remember("hunter22")

    assert run_command("echo password is hunter22", 10, {}) == (0, "password is ***\n")


def test_a_command_that_fails_leaves_nobody_behind(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"

    code, _output = run_command(f"sleep 300 >/dev/null 2>&1 & echo $! > {pid_file}; exit 3", 10, {})

    assert code == 3
    until = waits.now_s() + 5
    while _alive(int(pid_file.read_text())) and waits.now_s() < until:
        waits.sleep_s(0.01)
    assert not _alive(int(pid_file.read_text()))


def test_what_a_failed_command_left_behind_is_killed_where_it_heeds_no_sigterm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "GRACE_S", 0.2)
    pid_file = tmp_path / "pid"

    code, _output = run_command(f"trap '' TERM; sleep 300 >/dev/null 2>&1 & echo $! > {pid_file}; exit 3", 10, {})

    assert (code, _alive(int(pid_file.read_text()))) == (3, False)


def test_a_command_over_its_deadline_is_ended_with_all_its_children(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    code, output = run_command(f"sleep 300 & echo $! > {pid_file}; echo begun; wait", 0.5, {})

    assert (code, output) == (None, "begun\n")
    until = waits.now_s() + 5
    while _alive(int(pid_file.read_text())) and waits.now_s() < until:
        waits.sleep_s(0.01)
    assert not _alive(int(pid_file.read_text()))


def test_who_left_the_commands_group_and_holds_its_output_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "GRACE_S", 0.1)
    pid_file = tmp_path / "pid"

    ended = run_command(f"setsid sleep 600 & echo $! > {pid_file}; echo begun; wait", 0.5, {})

    os.kill(int(pid_file.read_text()), signal.SIGKILL)
    assert ended == (None, "begun\n")


def test_a_command_is_ended_with_the_run_that_is_cancelled(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    with cancellation.heeded(lambda: None), pytest.raises(cancellation.Cancelled):
        run_command(f"sleep 300 & echo $! > {pid_file}; kill -TERM {os.getpid()}; wait", 200, {})

    until = waits.now_s() + 5
    while _alive(int(pid_file.read_text())) and waits.now_s() < until:
        waits.sleep_s(0.01)
    assert not _alive(int(pid_file.read_text()))


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False  # it was one that nobody had asked after yet


def test_a_long_output_keeps_its_end() -> None:
    code, output = run_command("seq 1 5000; echo the end", 10, {})

    assert code == 0
    assert len(output) == 2000
    assert output.endswith("5000\nthe end\n")
