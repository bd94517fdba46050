"""A private Prefect server for the demo: loopback, a home folder of its own, ended with the demo."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from flows import cockpit

START_S = 90
END_S = 10
POLL_S = 0.2


class CockpitDown(RuntimeError):
    """The Prefect server did not start; the text says where its log is."""


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Yield the address of a Prefect server that is starting, and its process; point this process's Prefect at it."""
    port = _free_port()
    address = f"http://127.0.0.1:{port}"
    settings = {"PREFECT_HOME": str(folder / "prefect"), "PREFECT_API_URL": f"{address}/api", "PREFECT_UI_API_URL": f"{address}/api",
                "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "50", "PREFECT_LOGGING_SERVER_LEVEL": "WARNING"}
    cockpit.prepare(quiet=True)
    os.environ |= settings
    with (folder / "prefect-server.log").open("wb") as log:
        process = subprocess.Popen([sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)],
                                   stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    try:
        yield address, process
    finally:
        process.terminate()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for name in settings:
            os.environ.pop(name, None)


def wait_until_up(address: str, process: subprocess.Popen[bytes], folder: Path) -> None:
    """
    Raises:
        CockpitDown: it ended, or was not healthy in time.
    """
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{address}/api/health", timeout=2) as answer:  # noqa: S310  # our own server on loopback
                if answer.status == 200:  # noqa: PLR2004
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(POLL_S)
    raise CockpitDown(f"Prefect server did not start within {START_S} s; see {folder / 'prefect-server.log'}")
