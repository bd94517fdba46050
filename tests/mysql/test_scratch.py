"""What a rehearsal that is killed leaves is told, and removed by the next one or by uninstall; live relatives are never waited for."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from flows.standing import standing
from steps import scratch, uninstall
from steps.errors import ConnectionLost, Refused
from steps.mysql import VALUE, Session, quote
from steps.rehearsal import rehearse
from steps.scratch import scratch_name
from steps.target import ENVIRONMENT, Target
from tests.conftest import App
from tests.mysql.conftest import Clients, Opened, until
from tests.plans import small, written

VICTIM = """
import sys
from steps import plan_loader, sync
from steps.mysql import Session
from steps.rehearsal import rehearse
from steps.target import target_of

def stop(*_):
    print("half-way", flush=True)
    sys.stdin.read()

sync.sync_triggers = stop
target = target_of(None)
with Session(target) as live:
    rehearse(live, target, plan_loader.load(sys.argv[1]))
"""


def left(session: Session, target: Target) -> list[str]:
    return [str(name) for (name,) in session.query("SHOW DATABASES") if name == scratch_name(target, "job")]


@pytest.fixture
def killed(session: Session, empty: Target, job: App, tmp_path: Path) -> App:
    """A table whose rehearsal was killed with SIGKILL when the clone had its new columns and a sample of rows."""
    job.run("CREATE TABLE child (job VARCHAR(191) COLLATE utf8mb4_unicode_ci, FOREIGN KEY (job) REFERENCES job (id)) CHARSET utf8mb4")
    job.run("INSERT INTO job (id) VALUES ('a')")
    written(tmp_path)
    environment = {**os.environ, ENVIRONMENT: empty.url.render_as_string(hide_password=False)}
    with subprocess.Popen([sys.executable, "-c", VICTIM, str(tmp_path)], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as victim:
        assert victim.stdout is not None
        assert victim.stdout.readline() == "half-way\n"
        assert scratch.leftover(session, empty, small(tmp_path)) is None  # it is in use
        assert scratch.remove_leftover(session, empty, small(tmp_path)) is None
        victim.send_signal(signal.SIGKILL)
    until(lambda: scratch.leftover(session, empty, small(tmp_path)))
    return job


def test_a_killed_rehearsal_touched_nothing_and_the_next_one_removes_what_it_left(killed: App, session: Session, empty: Target,
                                                                                 tmp_path: Path, opened_on: Opened) -> None:
    assert session.query(f"SELECT id FROM {quote(scratch_name(empty, 'job'))}.job") == [("a",)]
    assert standing(opened_on(small(tmp_path)))["rehearsal_left"] == scratch_name(empty, "job")
    assert killed.rows("SHOW TABLES") == [("child",), ("job",)]
    assert "state" not in killed.create_table("job")

    assert rehearse(session, empty, small(tmp_path)).ladder.top == 1

    assert left(session, empty) == []
    assert standing(opened_on(small(tmp_path)))["rehearsal_left"] is None


def test_uninstall_removes_it_too_and_says_so(killed: App, session: Session, empty: Target, tmp_path: Path, opened_on: Opened) -> None:
    rollout = opened_on(small(tmp_path))

    assert uninstall.uninstall(rollout) == [f"schema {scratch_name(empty, 'job')}, left by a killed rehearsal"]

    assert (left(session, empty), uninstall.uninstall(rollout)) == ([], [])
    assert killed.rows("SELECT id FROM job") == [("a",)]


@pytest.mark.parametrize("key", ["rehearsal_schema", "ledger_schema"])
def test_a_schema_that_must_not_be_emptied_is_not_taken_for_rehearsals(session: Session, empty: Target, job: App, tmp_path: Path,
                                                                      key: str) -> None:
    job.run("INSERT INTO job (id) VALUES ('a')")
    head = f'rehearsal_schema = "{empty.schema.upper() if key == "rehearsal_schema" else "kept"}"\n'
    head += 'ledger_schema = "kept"\n' if key == "ledger_schema" else ""

    with pytest.raises(Refused, match="is the schema of the table or of the ledger, and a rehearsal empties its schema"):
        rehearse(session, empty, small(tmp_path, head=head))

    assert job.rows("SELECT id FROM job") == [("a",)]


def test_held_parents_and_children_are_not_waited_for(session: Session, empty: Target, job: App, clients: Clients, tmp_path: Path) -> None:
    job.run("CREATE TABLE user (id INT PRIMARY KEY)")
    job.run("CREATE TABLE log (what VARCHAR(99))")
    job.run("ALTER TABLE job ADD COLUMN u INT NULL, ADD FOREIGN KEY (u) REFERENCES user (id)")
    job.run("CREATE TABLE child (job VARCHAR(191) COLLATE utf8mb4_unicode_ci, FOREIGN KEY (job) REFERENCES job (id)) CHARSET utf8mb4")
    job.run("CREATE TRIGGER noted AFTER INSERT ON job FOR EACH ROW INSERT INTO log VALUES (NEW.id)")
    holder = clients()
    holder.run("LOCK TABLES user WRITE, child WRITE, log WRITE")  # a lock of ours would end in 1205 after 2 s, and in a refusal

    assert rehearse(session, empty, small(tmp_path)).ladder.top == 1

    holder.run("UNLOCK TABLES")
    assert left(session, empty) == []


def test_a_rehearsal_that_the_server_keeps_though_it_is_lost_to_us_gives_its_lock_back(session: Session, empty: Target, job: App,
                                                                                       tmp_path: Path) -> None:
    plan, kept = small(tmp_path), list[socket.socket]()

    def lost_half_way() -> None:
        with scratch.scratch(empty, plan) as first:
            assert first.value("SELECT @@session.wait_timeout") == 60  # whose machine has vanished holds it no longer
            kept.append(socket.socket(fileno=os.dup(first._connection._sock.fileno())))  # so that the server hears of no end
            kept[0].shutdown(socket.SHUT_RD)
            first.run("DO SLEEP(0.5)")  # an answer that came first would still be read

    with pytest.raises(ConnectionLost):
        lost_half_way()

    with kept[0]:
        until(lambda: session.value(f"SELECT IS_USED_LOCK({VALUE})", scratch_name(empty, "job")[:64]) is None)
        with scratch.scratch(empty, plan) as second:
            assert second.query("SHOW TABLES") == []
    assert left(session, empty) == []
