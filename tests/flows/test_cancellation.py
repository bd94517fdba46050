"""Ctrl-C and SIGTERM at one real wait after another: the run stops there, lets go of everything, says so, and the same command goes on."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from steps import control
from tests.conftest import App
from tests.flows import watched
from tests.flows.deploy_stage import Stage
from tests.flows.nothing_held import nothing_held

SOON_S, HANGS_S = 30, 25  # no wait below lasts less than a minute
seen = partial(watched.seen, within_s=SOON_S)
SLOW = "slow"
CLEANUP = """[cleanup]
drop = ["status"]
deploy = "true"
rollback_deploy = "true"
min_age_s = 0
observe_s = 300
cooling_s = 0
[backfill]
mode = "full_speed"
connections = 2
[verify]
queries = ["verify/010_slow.sql"]
"""
ACCEPTED = ("--accept", "blockers", "--accept", "cleanup", "--accept", "cleanup-unseen")


@dataclass
class Way:
    """A table on its way, the tool as a process, the application's client, and somebody who has the lock `slow` or not."""

    stage: Stage
    client: App
    slow: App

    @property
    def app(self) -> App:
        return self.stage.app

    def run(self, *words: str) -> subprocess.Popen[str]:
        return self.stage.process("run", *ACCEPTED, *(words or ("--through", "shadow_write")))

    def slowly(self) -> None:
        """From now on the application's trigger and the smoke query sleep."""
        self.slow.value("SELECT GET_LOCK(%s, 0)", SLOW)

    def quickly(self) -> None:
        self.slow.value("SELECT RELEASE_LOCK(%s)", SLOW)

    def sleeps(self) -> bool:
        return bool(self.app.value("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE = 'User sleep'"))

    def begun(self, holds: int) -> bool:
        """Whether the tool has begun to look for a gap so often."""
        return bool(self.app.value("SELECT COUNT(*) FROM _rollout_event WHERE outcome = 'begins'") == holds)

    def on_record(self) -> tuple[int, str]:
        """How the ledger says the last run ended."""
        [(code, outcome)] = self.app.rows("SELECT exit_code, outcome FROM _rollout_run ORDER BY started_at DESC LIMIT 1")
        return int(code), str(outcome)

    def stands(self) -> tuple[bool, bool, list[str]]:
        """Whether the old column and the new one do, and which triggers."""
        definition = self.app.create_table("job")
        return "`status`" in definition, "`state`" in definition, sorted(self.app.triggers())


@pytest.fixture
def way(stage: Stage) -> Iterator[Way]:
    """A table with a trigger of the application's that sleeps, and a plan with a smoke query that does, while somebody says so."""
    sleeps = f"IF(IS_USED_LOCK('{SLOW}') IS NULL, 0, SLEEP(100))"
    stage.app.run("INSERT INTO job (id, status) SELECT CONCAT('r', n), 'pending' FROM JSON_TABLE(CONCAT('[', REPEAT('1,', 39), '1]'), "
                  "'$[*]' COLUMNS (n FOR ORDINALITY)) AS numbers")
    stage.app.run(f"CREATE TRIGGER theirs BEFORE INSERT ON job FOR EACH ROW SET @slept = {sleeps}")
    waits_for_go = f"echo $$ > {stage.folder}/begun; while [ ! -e {stage.folder}/go ]; do sleep 0.05; done"
    stage.plan(cleanup=CLEANUP, head="gap_wait_s = 600", command=waits_for_go, rollback_command="true")
    (stage.folder / "verify").mkdir(exist_ok=True)
    (stage.folder / "verify" / "010_slow.sql").write_text(f"-- expect: one value\nSELECT {sleeps}\n")
    found = Way(stage, App(stage.target), App(stage.target))
    yield found
    found.client.close()
    found.slow.close()


def cancelled(way: Way, process: subprocess.Popen[str], *signals: signal.Signals) -> None:
    """*process* gets *signals*, ends with 4 and leaves nothing behind but what its phase says."""
    for number in signals:
        process.send_signal(number)
        time.sleep(0.05)
    output, _ = process.communicate(timeout=HANGS_S)
    assert process.returncode == 4, output
    assert f"cancelled by {signals[0].name}; nothing is half done; the same command continues" in output
    assert nothing_held(way.stage) == []


def in_the_rehearsal(way: Way) -> None:
    """In a statement on the clone: nothing is on record."""
    way.slowly()
    process = way.run()
    seen(way.sleeps, process)
    cancelled(way, process, signal.SIGTERM)
    assert not way.app.rows("SHOW TABLES LIKE '\\_rollout\\_run'")
    way.quickly()


def in_the_wait_for_a_gap(way: Way) -> None:
    way.client.run("START TRANSACTION")
    way.client.rows("SELECT * FROM job LIMIT 1")
    process = way.run()
    seen(lambda: way.begun(1), process)
    cancelled(way, process, signal.SIGINT)
    assert (way.on_record(), way.stage.phase("pre_deploy")[0]) == ((4, "cancelled by SIGINT"), "running")
    assert way.stands() == (True, False, ["theirs"])


def in_the_hold(way: Way) -> None:
    """In the canary, and twice: the column stands, triggers that nobody has proven do not."""
    process = way.run()
    seen(lambda: way.begun(2), process)
    way.slowly()
    way.client.run("COMMIT")
    seen(way.sleeps, process)
    cancelled(way, process, signal.SIGINT, signal.SIGINT)
    assert way.on_record() == (4, "cancelled by SIGINT")
    assert way.stands() == (True, True, ["theirs"])
    way.quickly()


def in_a_paused_pass(way: Way) -> None:
    """Of two lanes, which a person has paused for as long as they like."""
    ledger = way.stage.rollout().ledger
    control.ask(ledger, control.PAUSE, "ann", "lunch")
    process = way.run()
    seen(lambda: way.app.value("SELECT COUNT(*) FROM _rollout_event WHERE outcome = 'paused'"), process)
    cancelled(way, process, signal.SIGTERM)
    assert way.on_record() == (4, "cancelled by SIGTERM")
    assert len(way.stands()[2]) == 3
    control.ask(ledger, control.RUN, "ann", "eaten")


def in_the_deploy_command(way: Way) -> None:
    """Which is ended with the run."""
    process, begun = way.run(), way.stage.folder / "begun"
    seen(lambda: begun.exists() and begun.read_text().strip(), process)
    command = Path(f"/proc/{begun.read_text().strip()}")
    assert command.exists()
    cancelled(way, process, signal.SIGTERM)
    assert not command.exists()
    assert (way.on_record(), way.stage.phase()[0]) == ((4, "cancelled by SIGTERM"), "running")
    begun.unlink()


def in_a_smoke_query(way: Way) -> None:
    """No verdict, and nothing goes back because of it."""
    process = way.run()
    seen((way.stage.folder / "begun").exists, process)
    way.slowly()
    (way.stage.folder / "go").touch()
    seen(way.sleeps, process)
    cancelled(way, process, signal.SIGINT)
    assert (way.on_record(), way.stage.phase()[0], way.stage.phase("verify")[0]) == ((4, "cancelled by SIGINT"), "done", "running")
    way.quickly()


def in_the_watch_before_cleanup(way: Way) -> None:
    process = way.run("--through", "cleanup")
    seen(lambda: way.stage.phase("cleanup")[1].get("stage") == "v2 out", process)
    cancelled(way, process, signal.SIGTERM)
    assert way.on_record() == (4, "cancelled by SIGTERM")
    assert (way.stands()[:2], len(way.stands()[2])) == ((True, True), 3)


def test_at_every_wait_on_its_way_a_run_is_cancelled_and_the_same_command_gets_there(way: Way) -> None:
    for wait in (in_the_rehearsal, in_the_wait_for_a_gap, in_the_hold, in_a_paused_pass, in_the_deploy_command, in_a_smoke_query,
                 in_the_watch_before_cleanup):
        wait(way)

    process = way.run("--through", "cleanup", "--set", "cleanup.observe_s=0")
    output, _ = process.communicate(timeout=SOON_S)

    assert process.returncode == 0, output
    assert (way.stage.phase("cleanup")[0], way.stands()) == ("done", (False, True, ["theirs"]))
    assert way.app.rows("SELECT state, COUNT(*) FROM job GROUP BY state ORDER BY 1") == [("pending", 41), ("succeeded", 1)]
