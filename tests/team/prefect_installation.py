"""A Prefect server on PostgreSQL and a process worker, each a process of its own in the installed product's environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from deploy.mysql_server import keeper
from deploy.mysql_server.running import free_port
from flows import cockpit

START_S = 120
SOON_S = 180
POOL = "mysql-rollout"


def until(what: Callable[[], Any], within_s: float = SOON_S) -> Any:
    """What *what* says once it says anything."""
    ends = time.monotonic() + within_s
    while not (found := what()):
        assert time.monotonic() < ends, "never seen"
        time.sleep(0.1)
    return found


class Api:
    """Prefect's API as any client has it."""

    def __init__(self, url: str) -> None:
        self.url = url

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(  # noqa: S310  # our own server on loopback
            f"{self.url}{path}", data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
            return json.loads(answer.read() or b"null")

    def refused(self, method: str, path: str, body: Any) -> tuple[int, str]:
        """The status and text of an answer that says no."""
        try:
            said = self.ask(method, path, body)
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        raise AssertionError(said)

    def is_up(self) -> bool:
        try:
            return bool(self.ask("GET", "/health"))
        except OSError:
            return False

    def deployment(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.ask("GET", f"/deployments/name/{name}/{name}")
        return found

    def start(self, name: str, request: dict[str, Any]) -> str:
        made = self.ask("POST", f"/deployments/{self.deployment(name)['id']}/create_flow_run", {"parameters": {"request": request}})
        return str(made["id"])

    def run(self, flow_run: str) -> dict[str, Any]:
        found: dict[str, Any] = self.ask("GET", f"/flow_runs/{flow_run}")
        return found

    def ended(self, flow_run: str) -> dict[str, Any]:
        """The flow run once it has ended."""
        def end() -> dict[str, Any] | None:
            found = self.run(flow_run)
            return found if found["state_type"] in ("COMPLETED", "FAILED", "CRASHED", "CANCELLED") else None

        found: dict[str, Any] = until(end)
        return found


@contextmanager
def started(words: list[str | Path], log: Path, *, keep_path: bool = False, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """
    A process in a session of its own, which without *keep_path* knows nothing of the checkout.

    It ends with the context, and also when this process is killed.
    """
    inherited = {key: value for key, value in os.environ.items() if keep_path or key != "PYTHONPATH"}
    with log.open("wb") as said:
        process = subprocess.Popen([sys.executable, "-I", "-S", keeper.__file__, "", *words], env={**inherited, **environment},
                                   cwd=log.parent, stdin=subprocess.PIPE, stdout=said, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        yield process
    finally:
        with suppress(BrokenPipeError):
            process.communicate(b"stop")


@contextmanager
def prefect_server(python: Path, home: Path, database: str | None = None) -> Iterator[Api]:
    """A Prefect server on the PostgreSQL at *database*, else on SQLite in *home*."""
    port = free_port()
    api = Api(f"http://127.0.0.1:{port}/api")
    settings = cockpit.SETTINGS | {"PREFECT_HOME": str(home), "PREFECT_UI_API_URL": api.url}
    if database:
        settings["PREFECT_SERVER_DATABASE_CONNECTION_URL"] = database
    with started([python, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)], home / "server.log",
                 **settings) as process:
        ends = time.monotonic() + START_S
        while not api.is_up():
            assert process.poll() is None, (home / "server.log").read_text()[-2000:]
            assert time.monotonic() < ends, (home / "server.log").read_text()[-2000:]
            time.sleep(0.2)
        yield api
