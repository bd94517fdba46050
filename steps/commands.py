"""Programs that a plan names: a process group of their own, a deadline, no login of ours, masked output."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress

from steps.masking import kept_back, mask
from steps.target import ENVIRONMENT

SHOWN_OUTPUT = 2000
GRACE_S = 5


def run_command(command: str, deadline_s: float, extra: dict[str, str]) -> tuple[int | None, str]:
    """
    Run *command* in a shell: (exit code or None when it ran over *deadline_s*, the end of its masked output).

    When it fails, or runs over its deadline, whatever it has started is ended with it. Neither the database URL nor a replica's is handed
    on: a deploy command has its own credentials or none.
    """
    code, output = run_program(["/bin/sh", "-c", command], deadline_s, extra, with_errors=True)
    return code, output[-SHOWN_OUTPUT:]


def run_program(words: Sequence[str], deadline_s: float, extra: dict[str, str], *, folder: str | None = None,
                with_errors: bool = False) -> tuple[int | None, str]:
    """
    The same without a shell and with the whole output, of stdout alone unless *with_errors* or when it failed.

    Raises:
        OSError: there is no such program, or it may not be run.
    """
    environment = {key: value for key, value in os.environ.items() if key not in {ENVIRONMENT, *kept_back()}} | extra
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT if with_errors else subprocess.PIPE,
                          stdin=subprocess.DEVNULL, env=environment, start_new_session=True, cwd=folder) as process:
        try:
            output, errors = process.communicate(timeout=deadline_s)
            code: int | None = process.returncode
            if code:
                _end_group(process.pid)
        except BaseException as error:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                output, errors = process.communicate(timeout=GRACE_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                output, errors = process.communicate()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            code = None
    return code, mask((output + (errors or b"" if code != 0 else b"")).decode(errors="replace"))


def _end_group(group: int) -> None:
    """What a failed command left at work would go on with what was just taken back."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGTERM)
