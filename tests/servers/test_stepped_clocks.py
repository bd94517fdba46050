"""
Clocks that jump by hours, the server's and the tool's (case C84): nothing is taken away earlier, no living owner is taken for dead, and
nothing waits for ever.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import make_url

from deploy.mysql_server import Server
from steps import ddl, verify, waits
from steps.errors import Busy, LockTimeout
from steps.ledger import Ledger
from steps.mysql import Session
from steps.ownership import Ownership
from steps.target import ENVIRONMENT, Target
from tests.cli.calling import DEPLOYED, PLAN, Call, phases
from tests.conftest import App
from tests.faults.faketime import FIRST, Clock, timed_server, timed_tool

pytestmark = pytest.mark.usefixtures("remembered_rehearsals")
HOURS = 36_000
RUN = ("run", PLAN, "--no-prefect", "--by", "ann", "--reason", "it is due", *DEPLOYED)
CLEANUP = (*RUN, "--through", "cleanup", "--set", "cleanup.deploy=true", "--set", "cleanup.rollback_deploy=true", "--set",
           "cleanup.observe_s=0", "--accept", "cleanup", "--accept", "cleanup-unseen")
NOW, LATER = ("--set", "cleanup.min_age_s=0", "--set", "cleanup.cooling_s=0"), ("--set", "cleanup.min_age_s=3600")
COOLING = ("--set", "cleanup.min_age_s=0", "--set", "cleanup.cooling_s=3600")


@pytest.fixture(scope="module")
def clock(tmp_path_factory: pytest.TempPathFactory) -> Clock:
    return Clock(tmp_path_factory.mktemp("clock"))


@pytest.fixture(scope="module")
def own(clock: Clock) -> Iterator[Server]:
    """A server whose clock can be stepped while it runs."""
    with timed_server(clock) as server:
        yield server


@pytest.fixture
def step(clock: Clock, admin: App) -> Iterator[Callable[[int], None]]:
    """Step the server's clock and wait until it has noticed; back to the right time afterwards."""
    def to(seconds: int) -> None:
        clock.step(seconds)
        deadline = waits.now_s() + 10
        while abs(float(admin.value("SELECT UNIX_TIMESTAMP(SYSDATE(3))")) - waits.clock().timestamp() - seconds) > 2:
            assert waits.now_s() < deadline, "the server's clock was not stepped"
            threading.Event().wait(0.05)

    yield to
    to(0)


@pytest.mark.parametrize("settings", [LATER, COOLING], ids=["age since verify", "cooling"])
def test_a_step_of_the_servers_clock_lets_nothing_be_dropped_earlier(here: Call, job: App, step: Callable[[int], None],
                                                                     settings: tuple[str, ...]) -> None:
    assert here(*RUN).code == 0
    first = here(*CLEANUP, *settings)
    before = job.create_table()
    step(HOURS)

    second = here(*CLEANUP, *settings)

    assert (first.code, second.code) == ((4, 4) if settings is LATER else (0, 0)), first.text + second.text
    assert "the server's clock is 3600" in second.text.replace("35999 s", "36000 s").replace("36001 s", "36000 s")
    assert "how much time has passed cannot be told" in second.text
    assert job.create_table() == before


def test_a_servers_clock_that_was_behind_when_verify_passed_lets_nothing_go_earlier(here: Call, job: App,
                                                                                    step: Callable[[int], None]) -> None:
    step(-HOURS)
    assert here(*RUN).code == 0
    step(0)
    before = job.create_table()

    stopped = here(*CLEANUP, *LATER)

    assert stopped.code == 4, stopped.text
    assert "less than cleanup.min_age_s = 3600 s ago" in stopped.text
    assert job.create_table() == before


def test_the_archive_is_not_old_by_a_step(here: Call, job: App, step: Callable[[int], None]) -> None:
    assert here(*RUN).code == 0
    assert here(*CLEANUP, *NOW).code == 0
    step(40 * 24 * 3600)

    kept = here("uninstall", PLAN, "--by", "ann", "--reason", "tidy", "--yes", *NOW)

    assert kept.code == 3, kept.text
    assert "is younger than cleanup.archive_keep_s" in kept.text
    assert job.rows("SHOW TABLES LIKE '\\_rollout\\_archive%'")


def test_a_step_in_the_middle_of_a_run_changes_nothing(here: Call, job: App, step: Callable[[int], None],
                                                       monkeypatch: pytest.MonkeyPatch) -> None:
    for (owner, name), seconds in zip(((ddl, "carry_out"), (verify, "look")), (-HOURS, HOURS), strict=True):
        monkeypatch.setattr(owner, name, _then(getattr(owner, name), partial(step, seconds)))

    done = here(*RUN)

    assert done.code == 0, done.text
    assert set(phases(job).values()) == {"done"}
    assert job.value("SELECT COUNT(*) FROM AiAnalysisJob WHERE status = 'completed' AND lifecycleStatus <> 'succeeded'") == 0
    assert here(*RUN).code == 0


def _then(real: Callable[..., object], happens: Callable[[], None]) -> Callable[..., object]:
    def called(*args: object, **more: object) -> object:
        result = real(*args, **more)
        happens()
        return result

    return called


@pytest.mark.parametrize("seconds", [HOURS, -HOURS])
def test_a_living_owner_keeps_its_table_through_a_step(own: Server, job: App, step: Callable[[int], None], seconds: int) -> None:
    target = Target(make_url(own.url).set(database=job.value("SELECT DATABASE()")))
    with Session(target) as mine, Session(target) as theirs:
        ledger, other = (Ledger(session, target.schema, "AiAnalysisJob", "p") for session in (mine, theirs))
        ledger.create()
        with Ownership(target, ledger, "ann") as owner:
            step(seconds)
            with pytest.raises(Busy):
                Ownership(target, other, "berta").take()
            owner.check(mine)


@pytest.mark.parametrize("seconds", [HOURS, -HOURS])
def test_a_wait_for_a_lock_ends_in_time_through_a_step(own: Server, job: App, clock: Clock, seconds: int) -> None:
    target = Target(make_url(own.url).set(database=job.value("SELECT DATABASE()")))
    job.run("LOCK TABLES AiAnalysisJob WRITE")
    with Session(target) as session:
        threading.Timer(0.2, clock.step, [seconds]).start()

        with pytest.raises(LockTimeout, match="1205"):
            session.value("SELECT COUNT(*) FROM AiAnalysisJob")

    job.run("UNLOCK TABLES")
    clock.step(0)


def test_the_tools_own_clock_is_stepped_while_it_runs(own: Server, job: App, tmp_path: Path) -> None:
    mine = Clock(tmp_path)
    schema = job.value("SELECT DATABASE()")
    address = make_url(own.url).set(database=schema).render_as_string(hide_password=False)
    command = [sys.executable, "-c", FIRST + "from flows.cli.app import main; main()", *RUN]
    with subprocess.Popen(command, env={**os.environ, **timed_tool(mine), ENVIRONMENT: address}, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True) as process:
        begun = f"SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{schema}' AND TABLE_NAME = '_rollout_run'"
        deadline = waits.now_s() + 30
        while not job.value(begun) and waits.now_s() < deadline:
            threading.Event().wait(0.02)
        mine.step(-HOURS)
        said, _ = process.communicate(timeout=60)

    assert process.returncode == 0, said
    assert set(phases(job).values()) == {"done"}
