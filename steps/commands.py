"""Programs that a plan names: a process group of their own, a deadline, no login of ours, masked output."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress

from steps import cancellation, waits
from steps.masking import kept_back, mask
from steps.target import ENVIRONMENT, ENVIRONMENT_FILE

SHOWN_OUTPUT = 2000
GRACE_S = 5
SLICE_S = 0.1


def handed_on(*but: str) -> dict[str, str]:
    """The environment that a program of ours is given: this one's, without our logins (case C86) and without the variables *but*."""
    return {key: value for key, value in os.environ.items() if key not in {ENVIRONMENT, ENVIRONMENT_FILE, *kept_back(), *but}}


def run_command(command: str, deadline_s: float, extra: dict[str, str]) -> tuple[int | None, str]:
    """
    Run *command* in a shell: (exit code or None when it ran over *deadline_s*, the end of its masked output).

    When it fails, runs over its deadline or is cancelled, whatever it has started is ended with it. Neither the database URL nor a
    replica's is handed on: a deploy command has its own credentials or none.

    Raises:
        Cancelled: this run was asked to stop.
    """
    code, output = run_program(["/bin/sh", "-c", command], deadline_s, extra, with_errors=True)
    return code, output[-SHOWN_OUTPUT:]


def run_program(words: Sequence[str], deadline_s: float, extra: dict[str, str], *, folder: str | None = None,
                with_errors: bool = False) -> tuple[int | None, str]:
    """
    The same without a shell and with the whole output, of stdout alone unless *with_errors* or when it failed.

    Raises:
        OSError: there is no such program, or it may not be run.
        Cancelled: see there.
    """
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT if with_errors else subprocess.PIPE,
                          stdin=subprocess.DEVNULL, env=handed_on() | extra, start_new_session=True, cwd=folder) as process:
        try:
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


def _ended_by_itself(process: subprocess.Popen[bytes], deadline_s: float) -> tuple[bytes, bytes | None]:
    """Both outputs; an edge all the while. Raises TimeoutExpired at the deadline."""
    until_s = waits.now_s() + deadline_s
    while True:
        cancellation.edge()
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
    """What a failed command left at work would go on with what was just taken back."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGTERM)
