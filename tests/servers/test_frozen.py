"""A server that stands still (SIGSTOP) while a run is asked to stop: it ends all the same, with 4, and the same command goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from sqlalchemy import make_url

from deploy.mysql_server import Server, provide
from steps.target import Target
from tests.conftest import App
from tests.flows.deploy_stage import Stage
from tests.flows.nothing_held import nothing_held

SOON_S = 120
CUT_WITHIN_S = 90  # 16 s on a quiet machine

OPENING = """
import pathlib
from steps import mysql
real = mysql.sqlalchemy.create_engine
def made(*args, **more):
    pathlib.Path({came!r}).touch()
    return real(*args, **more)
mysql.sqlalchemy.create_engine = made
"""


@pytest.fixture
def frozen_one(tmp_path: Path) -> Iterator[Server]:
    """A server of its own, to be frozen; thawed at the latest when the test ends."""
    with provide(folder=tmp_path / "server") as server:
        assert server.pid
        yield server
        os.kill(server.pid, signal.SIGCONT)


@pytest.fixture
def on_it(frozen_one: Server, tmp_path: Path) -> Iterator[Stage]:
    """A table there and a plan for it."""
    target = Target(make_url(frozen_one.url).set(database=f"t_{uuid.uuid4().hex[:20]}"))
    admin = App(target, "")
    admin.run(f"CREATE DATABASE `{target.schema}` CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci")
    admin.close()
    with ExitStack() as stack:
        found = Stage(tmp_path, target, stack)
        yield found
        found.app.close()


def until(what: Callable[[], object]) -> None:
    ends = time.monotonic() + SOON_S
    while not what():
        assert time.monotonic() < ends, "never seen"
        time.sleep(0.02)


def freeze(server: Server) -> None:
    assert server.pid
    os.kill(server.pid, signal.SIGSTOP)


def cancelled_on_it(process: subprocess.Popen[str], server: Server) -> str:
    """What *process* says, which ends with 4 before the server goes on."""
    process.send_signal(signal.SIGTERM)
    try:
        output, _ = process.communicate(timeout=CUT_WITHIN_S)
    finally:
        assert server.pid
        os.kill(server.pid, signal.SIGCONT)
        process.kill()
    assert process.returncode == 4, output
    assert "cancelled by SIGTERM; nothing is half done; the same command continues" in output
    return output


def test_a_run_is_cut_short_on_its_way_out_too_and_the_same_command_goes_on(frozen_one: Server, on_it: Stage) -> None:
    mark = on_it.folder / "begun"
    on_it.plan(command=f"[ -e {mark} ] || {{ touch {mark}; sleep 46; }}", rollback_command="true")
    process = on_it.process()
    until(mark.exists)

    freeze(frozen_one)
    cancelled_on_it(process, frozen_one)

    assert not [held for held in nothing_held(on_it) if not held.startswith("owner ")]  # its row may stay, as after a kill -9
    assert on_it.phase()[0] == "running"
    again, _ = (process := on_it.process()).communicate(timeout=SOON_S)
    assert process.returncode == 0, again
    assert (on_it.phase()[0], nothing_held(on_it)) == ("done", [])


def test_a_run_whose_sessions_are_opening_is_cancelled_not_refused(frozen_one: Server, on_it: Stage) -> None:
    """The server's system takes the connection, and nobody greets."""
    on_it.plan(command="true", rollback_command="true")
    came = on_it.folder / "came"
    hook = OPENING.format(came=str(came))
    url = on_it.target.url.render_as_string(hide_password=False)
    freeze(frozen_one)
    words = ["run", str(on_it.folder), "--through", "deploy", "--no-prefect", "--by", "t", "--reason", "r"]
    process = subprocess.Popen([sys.executable, "-c", f"{hook}from flows.cli.app import main; main()", *words], stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, env={**os.environ, "ROLLOUT_DATABASE_URL": url})
    until(came.exists)

    cancelled_on_it(process, frozen_one)

    assert nothing_held(on_it) == []
    assert not on_it.app.rows("SHOW TABLES LIKE '\\_rollout\\_run'")
