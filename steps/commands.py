"""Programs that a plan names: a process group of their own, a deadline, no login of ours, masked output."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress

from steps import cancellation, processes, tenure, waits
from steps.masking import kept_back, mask
from steps.target import ENVIRONMENT, ENVIRONMENT_FILE

SHOWN_OUTPUT = 2000
GRACE_S = 5
SLICE_S = 0.1
HELD_BACK = ("/bin/sh", "-c", 'read -r rollout_says_go && exec "$@" </dev/null', "rollout-command")
Begins = Callable[[int], None]


def handed_on(*but: str) -> dict[str, str]:
    """The environment that a program of ours is given: this one's, without our logins (case C86) and without the variables *but*."""
    return {key: value for key, value in os.environ.items() if key not in {ENVIRONMENT, ENVIRONMENT_FILE, *kept_back(), *but}}


def run_command(command: str, deadline_s: float, extra: dict[str, str], begins: Begins | None = None) -> tuple[int | None, str]:
    """
    Run *command* in a shell: (exit code or None when it ran over *deadline_s*, the end of its masked output).

    When it fails, runs over its deadline, is cancelled or loses its table, whatever it has started is ended with it. Neither the database
    URL nor a replica's is handed on: a deploy command has its own credentials or none. *begins* is told the id of the process, and of
    its group, before the command starts; when that raises, or we are killed in it, nothing starts at all.

    Raises:
        Cancelled: this run was asked to stop.
        OwnershipLost: another run may have taken over; the command was ended.
    """
    code, output = run_program(["/bin/sh", "-c", command], deadline_s, extra, with_errors=True, begins=begins)
    return code, output[-SHOWN_OUTPUT:]


def run_program(words: Sequence[str], deadline_s: float, extra: dict[str, str], *, folder: str | None = None,
                with_errors: bool = False, begins: Begins | None = None) -> tuple[int | None, str]:
    """
    The same without a shell and with the whole output, of stdout alone unless *with_errors* or when it failed.

    Raises:
        OSError: there is no such program, or it may not be run; with *begins* that is exit code 127 or 126.
        Cancelled, OwnershipLost: see there.
    """
    with subprocess.Popen([*HELD_BACK, *words] if begins else words, stdin=subprocess.PIPE if begins else subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT if with_errors else subprocess.PIPE, cwd=folder,
                          env=handed_on() | extra, start_new_session=True) as process:
        try:
            if begins:
                begins(process.pid)
                _let_go(process)
            output, errors = _ended_by_itself(process, deadline_s)
            code: int | None = process.returncode
            if code:
                _end_group(process.pid)
        except BaseException as error:
            output, errors = _ended_by_us(process)
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            code = None
    return code, mask((output + (errors or b"" if code != 0 else b"")).decode(errors="replace"))


def _let_go(process: subprocess.Popen[bytes]) -> None:
    if process.stdin:
        with suppress(BrokenPipeError):  # somebody ended it already
            process.stdin.write(b"\n")
            process.stdin.close()
        process.stdin = None


def _ended_by_itself(process: subprocess.Popen[bytes], deadline_s: float) -> tuple[bytes, bytes | None]:
    """Both outputs; an edge all the while. Raises TimeoutExpired at the deadline."""
    until_s = waits.now_s() + deadline_s
    while True:
        cancellation.edge()
        tenure.edge()
        try:
            return process.communicate(timeout=max(0.0, min(SLICE_S, until_s - waits.now_s())))
        except subprocess.TimeoutExpired:
            if waits.now_s() >= until_s:
                raise


def _ended_by_us(process: subprocess.Popen[bytes]) -> tuple[bytes, bytes | None]:
    """What it said until then. Whoever it started in a session of its own may hold its outputs open; nobody waits for that."""
    said = b""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        try:
            return process.communicate(timeout=GRACE_S)
        except subprocess.TimeoutExpired as late:
            said = late.output or b""
    return said, None


def _end_group(group: int) -> None:
    """What a failed command left at work would go on with what was just taken back; what does not heed SIGTERM is killed."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)
        until_s = waits.now_s() + GRACE_S
        while processes.group_is_at_work(group):
            if waits.now_s() >= until_s:
                break
            waits.sleep_s(SLICE_S)
        else:
            return
