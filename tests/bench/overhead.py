"""
`make bench-overhead`: seconds of a whole nine-row rollout to shadow_write, without Prefect and in each way with it, from one run.

Five ways, in turn, on a fresh table each: the command line without Prefect; with a Prefect server; without one, so that Prefect starts
its own for the run; the same again on the database that this left; and a deployment, started over the API and run by a process worker,
from the request to its end, with its own share (from Running to its end) apart. `REPEATS` rounds (default 5; `QUICK=1`: 2); medians.
One markdown table.
Loopback only, private servers.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from sqlalchemy import make_url

from deploy.mysql_server import provide
from flows import cockpit, prefect_yaml
from flows.demo.traffic import seed
from steps.mysql import Session, quote
from steps.target import ENVIRONMENT, Target
from tests.team.prefect_installation import POOL, Api, prefect_server, started

REPEATS = int(os.environ.get("REPEATS") or (2 if os.environ.get("QUICK") else 5))
SCHEMA = "overhead"
PLAN = "ai_analysis_job"
SETTINGS = ["deploy.command=true", "deploy.rollback_command=true"]
TOOL = Path(sys.executable).with_name("rollout")
LONGEST_S = 180
FIRST = "command line, no Prefect"


class Bench:
    """One MySQL, one Prefect server with a worker, a home for each way of having Prefect."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        base = make_url(stack.enter_context(provide()).url)
        self.target, self.root = Target(base.set(database=SCHEMA)), Target(base.set(database="mysql"))
        self.url = self.target.url.render_as_string(hide_password=False)
        for name in ("server", "client", "worker", "own"):
            (folder / name).mkdir()
        python = Path(sys.executable)
        self.api: Api = stack.enter_context(prefect_server(python, folder / "server"))
        at_it = {**os.environ, **cockpit.SETTINGS, "PREFECT_API_URL": self.api.url, "PREFECT_HOME": str(folder / "worker")}
        for words in (["work-pool", "create", POOL, "--type", "process"],
                      ["--no-prompt", "deploy", "--all", "--prefect-file", str(prefect_yaml.FILE)]):
            subprocess.run([python, "-m", "prefect", *words], env=at_it, check=True, capture_output=True)
        stack.enter_context(started(
            [python, "-m", "prefect", "worker", "start", "--pool", POOL, "--type", "process"], folder / "worker.log", keep_path=True,
            PREFECT_API_URL=self.api.url, PREFECT_HOME=str(folder / "worker"), PREFECT_WORKER_QUERY_SECONDS="2", **{ENVIRONMENT: self.url}))

    def fresh(self) -> None:
        """The ADR's nine rows, and nothing of ours."""
        with Session(self.root) as root:
            root.run(f"DROP DATABASE IF EXISTS {quote(SCHEMA)}")
        seed(self.url, 0)

    def command(self, *words: str, **environment: str) -> float:
        """Seconds of `rollout run` as a process."""
        inherited = {key: value for key, value in os.environ.items() if key != "PREFECT_API_URL"}
        settings = [word for setting in SETTINGS for word in ("--set", setting)]
        began = time.monotonic()
        ended = subprocess.run([TOOL, "run", PLAN, "--by", "bench", "--reason", "bench", *settings, *words], check=False, text=True,
                               env={**inherited, **environment, ENVIRONMENT: self.url}, capture_output=True, timeout=LONGEST_S)
        took = time.monotonic() - began
        if ended.returncode:
            raise RuntimeError(ended.stdout + ended.stderr)
        return took

    def with_server(self) -> float:
        return self.command(PREFECT_API_URL=self.api.url, PREFECT_HOME=str(self.folder / "client"))

    def without_server(self) -> float:
        """Prefect's own local default, on a home of its own that it has not seen before."""
        shutil.rmtree(self.folder / "own")
        (self.folder / "own").mkdir()
        return self.command(PREFECT_HOME=str(self.folder / "own"))

    def without_server_again(self) -> float:
        """The same on the home that the last one left."""
        return self.command(PREFECT_HOME=str(self.folder / "own"))

    def deployed(self) -> tuple[float, float]:
        """(from the request over the API to the end, the flow run's own time)."""
        began = time.monotonic()
        run = self.api.ended(self.api.start("rollout", {"plan": PLAN, "by": "bench", "reason": "bench", "settings": SETTINGS}))
        took = time.monotonic() - began
        if run["state_type"] != "COMPLETED":
            raise RuntimeError(run["state"]["message"])
        return took, float(run["total_run_time"])


def main() -> None:
    """Measure and print the table."""
    found: dict[str, list[float]] = {}

    def measure(name: str, way: Callable[[], float]) -> None:
        bench.fresh()
        found.setdefault(name, []).append(way())
        sys.stderr.write(f"{found[name][-1]:.1f} s: {name}\n")

    with tempfile.TemporaryDirectory(prefix="rollout-overhead-") as folder, ExitStack() as stack:
        bench = Bench(Path(folder), stack)
        for _ in range(REPEATS):
            measure(FIRST, lambda: bench.command("--no-prefect"))
            measure("command line, a Prefect server at hand", bench.with_server)
            measure("command line, no server: Prefect starts its own, on a new home", bench.without_server)
            measure("the same, on a home that it knows", bench.without_server_again)
            bench.fresh()
            whole, own = bench.deployed()
            found.setdefault("a deployment and a process worker that asks every 2 s, from request to end", []).append(whole)
            found.setdefault("of it the flow run itself", []).append(own)
    base = statistics.median(found[FIRST])
    lines = [f"{REPEATS} rounds, medians; nine rows, to shadow_write", "", "| way | seconds | times the first | from – to |",
             "|---|---:|---:|---:|"]
    lines += [f"| {name} | {statistics.median(took):.1f} | {statistics.median(took) / base:.2f} | {min(took):.1f} – {max(took):.1f} |"
              for name, took in found.items()]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
