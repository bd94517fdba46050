"""Application instances as processes on loopback, by files in a folder: whoever knows the folder can end them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.applications import installed

ROOT = Path(__file__).resolve().parents[2]
URL_NAME = "APPLICATION_DATABASE_URL"
LATENCY_NAME = "APPLICATION_LATENCY_MS"  # of the instances on Prisma, where it is set
READY_S, END_S = 60, 20
CONNECTIONS = 8  # of an instance's pool


class ServiceError(RuntimeError):
    """An application instance did not come up or did not end; the text has the end of its log."""


def start(url: str, folder: Path, generation: str, stack: str, *, watched: int) -> str:
    """
    Start one instance; return its base URL once its health route has read the table, over all of its connections.

    It ends with :func:`stop`, or when the process *watched* is gone.

    Raises:
        ServiceError: it is not healthy within a minute.
        NotInstalledError: there is no Node, or npm refused.
    """
    folder.mkdir(parents=True, exist_ok=True)
    command = _prisma(folder, generation, watched) if stack == "prisma" else [
        sys.executable, "-m", "tests.applications.sqlalchemy_v0", str(watched)]
    log = folder / f"{generation}-{stack}.log"
    with log.open("ab") as errors:
        process = subprocess.Popen(command, cwd=folder if stack == "prisma" else ROOT, env={**os.environ, URL_NAME: url}, stderr=errors,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout
    port = process.stdout.readline().decode().strip()
    process.stdout.close()
    if not port:
        raise ServiceError(f"{generation} on {stack} ended at once: {log.read_text()[-800:]}")
    (folder / f"{generation}-{stack}.json").write_text(json.dumps({"pid": process.pid, "port": int(port)}))
    base = f"http://127.0.0.1:{port}"
    _wait_for_health(base, generation, stack, log)
    with ThreadPoolExecutor(CONNECTIONS) as warming:
        list(warming.map(lambda _: _wait_for_health(base, generation, stack, log), range(CONNECTIONS)))
    return base


def base_url(folder: Path, generation: str, stack: str) -> str:
    """Where the running instance listens."""
    return f"http://127.0.0.1:{json.loads((folder / f'{generation}-{stack}.json').read_text())['port']}"


def stop(folder: Path, generation: str) -> None:
    """End every instance of *generation*, after the requests in hand. Safe to repeat."""
    for file in folder.glob(f"{generation}-*.json"):
        pid = int(json.loads(file.read_text())["pid"])
        _signal(pid, signal.SIGTERM)
        deadline = time.monotonic() + END_S
        while _lives(pid) and time.monotonic() < deadline:
            time.sleep(0.02)
        if _lives(pid):
            _signal(pid, signal.SIGKILL)
        file.unlink()


def _prisma(folder: Path, generation: str, watched: int) -> list[str]:
    """Lay the programs beside the clients, and return the command."""
    made = installed.clients()
    for link in (made / "node_modules", made / f"client_{generation}"):
        if not (folder / link.name).is_symlink():
            (folder / link.name).symlink_to(link)
    for program in installed.HERE.glob("*.mjs"):
        shutil.copy(program, folder)
    return ["node", str(folder / "application.mjs"), generation, str(watched)]


def _wait_for_health(base: str, generation: str, stack: str, log: Path) -> None:
    deadline, said = time.monotonic() + READY_S, "nothing"
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"{base}/health", timeout=10):  # noqa: S310  # our own loopback address
                return
        except OSError as error:
            said = str(error)
            time.sleep(0.1)
    raise ServiceError(f"{generation} on {stack} is not healthy: {said}; {log.read_text()[-800:]}")


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def _lives(pid: int) -> bool:
    """Whether *pid* runs. One that has ended and waits for its parent does not: somebody else may have started it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
