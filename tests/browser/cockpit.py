"""A Prefect server of its own and `rollout serve`, processes as a person starts them; nothing of the machine's own is touched."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from deploy.mysql_server.running import free_port
from steps.target import ENVIRONMENT

ROOT = Path(__file__).resolve().parents[2]
START_S, STOP_S = 300, 20
BATCHES = {  # a transaction per task event is slow on SQLite
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "50", "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_READ_BATCH_SIZE": "50",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "1", "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_READ_BATCH_SIZE": "50",
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_BATCH_SIZE": "100", "PREFECT_LOGGING_TO_API_BATCH_INTERVAL": "0.2",
}


class DidNotStartError(RuntimeError):
    """A process did not come up or ended early; its own last words are the text."""


class Cockpit:
    """`folder` holds Prefect's home and what the processes said; `url` is the page."""

    def __init__(self, folder: Path) -> None:
        port = free_port()
        self.folder, self.url = folder, f"http://127.0.0.1:{port}"
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}, **BATCHES,
            "PREFECT_HOME": str(folder / "prefect"), "PREFECT_API_URL": f"{self.url}/api", "PREFECT_UI_API_URL": f"{self.url}/api",
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false", "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false", "DO_NOT_TRACK": "1",
            "PREFECT_RUNNER_POLL_FREQUENCY": "1", "PYTHONPATH": str(ROOT),
        }
        self._port = port
        self._said: dict[str, Path] = {}

    @contextmanager
    def server(self) -> Iterator[None]:
        """`prefect server start`; come back when its API answers."""
        command = (sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(self._port))
        with self._process("server", command, {}) as process:
            self.until(lambda: self._answers(f"{self.url}/api/health"), process, "server")
            yield

    @contextmanager
    def served(self, database_url: str) -> Iterator[None]:
        """`rollout serve` for the database at *database_url*; come back when it has registered its deployments."""
        command = (str(Path(sys.executable).with_name("rollout")), "serve")
        with self._process("serve", command, {ENVIRONMENT: database_url}) as process:
            self.until(lambda: "rollout/rollout" in self._said["serve"].read_text(errors="replace"), process, "serve")
            yield

    def until(self, reached: Callable[[], bool], process: subprocess.Popen[bytes], name: str) -> None:
        """
        Raises:
            DidNotStartError: not *reached* in five minutes, or *process* has ended.
        """
        deadline = time.monotonic() + START_S
        while not reached():
            if process.poll() is not None or time.monotonic() > deadline:
                raise DidNotStartError(f"{name}: {self.said(name)}")
            time.sleep(0.1)

    def said(self, name: str) -> str:
        """The last words of the process *name*."""
        return self._said[name].read_text(errors="replace")[-3000:]

    @contextmanager
    def _process(self, name: str, command: Sequence[str], more: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
        self._said[name] = self.folder / f"{name}.log"
        with self._said[name].open("wb") as said:
            process = self._popen(command, {**self.environment, **more}, said)
        try:
            yield process
        finally:
            _end(process)

    def _popen(self, command: Sequence[str], environment: dict[str, str], said: IO[bytes]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(command, env=environment, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT,
                                start_new_session=True)

    @staticmethod
    def _answers(url: str) -> bool:
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310  # our own, on loopback
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False


def _end(process: subprocess.Popen[bytes]) -> None:
    """End *process* as Ctrl-C does, then whatever it has started."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(STOP_S)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(STOP_S)
