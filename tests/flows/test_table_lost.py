"""A run that loses its lock, or is killed, while a command of the plan's is at work: what lives outside is never forgotten (case C93)."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from flows import actions
from flows.conductor import PlainConductor
from flows.params import RollbackRequest, Target, Through
from steps import control, ownership, processes
from steps.errors import OwnershipLost, Stopped, WaitingForPerson
from steps.rollout import Rollout
from tests.conftest import App
from tests.flows import watched
from tests.flows.deploy_stage import Stage
from tests.flows.nothing_held import nothing_held

SOON_S = 40
seen = partial(watched.seen, within_s=SOON_S)


def waiting(stage: Stage, name: str = "go") -> str:
    """A command that says where it is, waits for a file and then says that it has done its work."""
    return (f"echo $$ > {stage.folder}/{name}.begun; while [ ! -e {stage.folder}/{name} ]; do sleep 0.05; done; "
            f"echo out >> {stage.folder}/{name}.done")


def begun(stage: Stage, name: str = "go") -> bool:
    file = stage.folder / f"{name}.begun"
    return file.exists() and bool(file.read_text().strip())


def lose_the_lock(stage: Stage) -> None:
    stage.app.run(f"KILL {stage.app.value('SELECT connection_id FROM _rollout_owner')}")


def to_v0(stage: Stage, *accepted: str, deployed_by: str | None = None) -> actions.Result:
    request = RollbackRequest(plan=str(stage.folder), by="berta", reason="because", to=Target.V0)
    return actions.rollback(stage.rollout(accepted, deployed_by), request, PlainConductor())


def outcomes(stage: Stage) -> list[tuple[str, str, str]]:
    return [(str(a), str(b), str(c)) for a, b, c in stage.app.rows(
        "SELECT step, direction, outcome FROM _rollout_event WHERE outcome IN ('under way', 'table lost', 'reckoned with') ORDER BY id")]


@contextmanager
def losing(monkeypatch: pytest.MonkeyPatch, stage: Stage, when: Callable[[], object]) -> Iterator[None]:
    """Quick hearts, and somebody who ends the lock's connection as soon as *when*."""
    real = ownership.Ownership.__init__
    monkeypatch.setattr(ownership.Ownership, "__init__", lambda self, target, ledger, actor: real(self, target, ledger, actor, 0.05))
    killer = App(stage.target)

    def kill() -> None:
        seen(when)
        killer.run(f"KILL {killer.value('SELECT connection_id FROM _rollout_owner')}")

    beside = threading.Thread(target=kill)
    beside.start()
    try:
        yield
    finally:
        beside.join()
        killer.close()


def test_a_run_that_loses_its_lock_ends_its_deploy_command_and_says_what_may_be_out(stage: Stage) -> None:
    stage.plan(command=waiting(stage), rollback_command=f"echo back >> {stage.folder}/back")
    process = stage.process()
    seen(lambda: begun(stage), process)
    number = int((stage.folder / "go.begun").read_text())

    lose_the_lock(stage)
    output, _ = process.communicate(timeout=SOON_S)

    assert process.returncode == 4, output
    assert "while command for v1 was under way: it was ended, and v1 may be out all the same" in output
    assert "nothing is half done" not in output
    assert not Path(f"/proc/{number}").exists()
    assert not (stage.folder / "go.done").exists()
    assert outcomes(stage) == [("process of command for v1", "forward", "under way"), ("command for v1", "forward", "table lost")]
    assert "v1 may be out" in stage.standing()["next"]

    assert to_v0(stage).outcome == "done"
    assert ((stage.folder / "back").read_text(), stage.app.triggers(), stage.phase()[0]) == ("back\n", [], "undone")
    assert ("earlier commands", "forward", "reckoned with") in outcomes(stage)
    assert stage.standing()["under_way"] == []


def test_v1_that_goes_out_after_another_has_gone_back_stops_the_old_side_until_a_person_says_so(
        stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loser's heart is too slow to notice; on another machine the other could not see its command."""
    stage.plan(command=waiting(stage), rollback_command="true")
    loser = stage.process()
    seen(lambda: begun(stage), loser)
    os.kill(loser.pid, signal.SIGSTOP)
    lose_the_lock(stage)
    seen(lambda: not stage.app.value("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID IN "
                                     "(SELECT connection_id FROM _rollout_owner)"))
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(processes, "this_machine", lambda: "another")
        with pytest.raises(WaitingForPerson, match="whether it is at work still cannot be seen from here") as asked:
            to_v0(stage)
        assert "--accept command-unseen" in asked.value.remedy
        assert (len(stage.app.triggers()), stage.phase()[0]) == (2, "running")
        assert to_v0(stage, "command-unseen").outcome == "done"
    assert stage.app.triggers() == []

    (stage.folder / "go").touch()
    seen((stage.folder / "go.done").exists)
    os.kill(loser.pid, signal.SIGCONT)
    output, _ = loser.communicate(timeout=SOON_S)
    stage.app.run("UPDATE job SET state = 'succeeded' WHERE id = 'a'")  # V1 does, without any trigger

    assert loser.returncode == 4, output
    assert (stage.phase()[0], outcomes(stage)[-1]) == ("undone", ("command for v1", "forward", "table lost"))
    with pytest.raises(WaitingForPerson, match=r"v1 may be out; another run has gone on since") as stopped:
        stage.run(Through.PRE_DEPLOY)
    assert (stopped.value.exit_code, stage.exit_code()) == (4, 4)
    assert stage.app.rows("SELECT status, state FROM job WHERE id = 'a'") == [("pending", "succeeded")]
    assert stage.run(Through.PRE_DEPLOY, accepted=("command-unseen",)).outcome == "done"
    assert stage.app.rows("SELECT status, state FROM job WHERE id = 'a'") == [("pending", "pending")]
    assert ("earlier commands", "forward", "reckoned with") in outcomes(stage)


def test_a_command_that_outlives_a_killed_run_stops_the_way_back_until_it_has_ended(stage: Stage) -> None:
    stage.plan(command=waiting(stage), rollback_command=f"echo back >> {stage.folder}/back")
    process = stage.process()
    seen(lambda: begun(stage), process)
    number = int((stage.folder / "go.begun").read_text())
    process.kill()
    process.communicate()
    seen(lambda: stage.app.value("SELECT COUNT(*) FROM _rollout_owner WHERE IS_USED_LOCK(%s) IS NULL",
                                 ownership.lock_name(stage.target.schema, "job")))

    for again in (to_v0, stage.run):
        with pytest.raises(Stopped, match=f"as process {number}, is still at work") as stopped:
            again(stage) if again is to_v0 else again()
        assert (stopped.value.exit_code, stage.exit_code()) == (4, 4)
        assert f"kill -- -{number}" in stopped.value.remedy
    assert (len(stage.app.triggers()), stage.phase()[0], (stage.folder / "back").exists()) == (2, "running", False)
    assert "is still at work" in stage.standing()["next"]

    (stage.folder / "go").touch()
    seen(lambda: "and is gone" in stage.standing()["next"])
    assert to_v0(stage).outcome == "done"
    assert ((stage.folder / "back").read_text(), stage.app.triggers(), stage.phase()[0]) == ("back\n", [], "undone")
    assert nothing_held(stage) == []


def test_a_run_that_is_killed_before_its_command_is_on_record_starts_none(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.plan(command=f"echo out >> {stage.folder}/done", rollback_command="true")
    monkeypatch.setattr(Rollout, "record_now", _refused_for("under way", Rollout.record_now))

    with pytest.raises(RuntimeError, match="killed here"):
        stage.run()

    assert not (stage.folder / "done").exists()
    assert stage.phase()[0] == "running"


def _refused_for(outcome: str, real: Callable[..., None]) -> Callable[..., None]:
    def record(self: Rollout, event: object, *rest: object, **more: object) -> None:
        if getattr(event, "outcome", "") == outcome:
            raise RuntimeError("killed here")
        real(self, event, *rest, **more)

    return record


def test_a_question_of_health_ends_with_the_lock_and_nothing_goes_back(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.plan(command="true", rollback_command=f"echo back >> {stage.folder}/back",
               health_command=f"touch {stage.folder}/asked; false", health_every_s=1, deadline_s=600)

    with losing(monkeypatch, stage, (stage.folder / "asked").exists), pytest.raises(OwnershipLost, match="v1 may be out") as lost:
        stage.run()

    assert (lost.value.exit_code, stage.exit_code()) == (4, 4)
    assert (stage.phase()[0], (stage.folder / "back").exists()) == ("running", False)
    assert outcomes(stage)[-1] == ("command for v1", "forward", "table lost")


def test_a_way_back_ends_with_the_lock(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.plan(command="true", rollback_command=waiting(stage))
    stage.run()

    with losing(monkeypatch, stage, lambda: begun(stage)), pytest.raises(OwnershipLost, match="v0 may be back"):
        stage.back()

    assert (stage.phase()[0], (stage.folder / "go.done").exists()) == ("done", False)
    assert outcomes(stage)[-1] == ("command for v0", "back", "table lost")
    (stage.folder / "go").touch()
    assert stage.back().outcome == "done"
    assert stage.phase()[0] == "undone"


def test_the_applications_own_shadow_write_ends_with_the_lock(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.plan(command="true", rollback_command="true", shadow_write={"enable_command": waiting(stage), "disable_command": "true"})
    stage.run()

    with losing(monkeypatch, stage, lambda: begun(stage)), pytest.raises(OwnershipLost, match="it may be on all the same"):
        stage.run(Through.SHADOW_WRITE)

    assert not (stage.folder / "go.done").exists()
    assert stage.phase("shadow_write")[1]["application"] == "asked to write both sides"
    (stage.folder / "go").touch()
    assert stage.run(Through.SHADOW_WRITE).outcome == "done"
    assert stage.phase("shadow_write")[1]["application"] == "writes both sides"


def kills_the_tool(stage: Stage) -> str:
    """A part of a command that ends every session of the tool's, and its own last one."""
    url = stage.target.url
    script = stage.folder / "kill.py"
    script.write_text(
        "import pymysql\n"
        f"c = pymysql.connect(host={url.host!r}, port={url.port!r}, user={url.username!r}, password={str(url.password or '')!r}).cursor()\n"
        'c.execute("SELECT t.PROCESSLIST_ID FROM performance_schema.threads t JOIN performance_schema.session_connect_attrs a USING "\n'
        f"          \"(PROCESSLIST_ID) WHERE a.ATTR_NAME = 'program_name' AND a.ATTR_VALUE = 'mysql-rollout' AND t.PROCESSLIST_DB = "
        f"'{stage.target.schema}'\")\n"
        "for (number,) in c.fetchall():\n    c.execute(f'KILL {number}')\n")
    return f"{sys.executable} {script}"


@pytest.mark.parametrize("through", [Through.DEPLOY, Through.SHADOW_WRITE])
def test_a_command_that_ended_well_though_every_connection_was_lost_is_on_record_and_not_run_again(stage: Stage, through: Through) -> None:
    lost = f"{kills_the_tool(stage)} && echo once >> {stage.folder}/done"
    deploying = {"command": lost if through is Through.DEPLOY else "true", "rollback_command": "true"}
    stage.plan(**deploying, shadow_write={"enable_command": lost, "disable_command": "true"} if through is Through.SHADOW_WRITE else None)

    process = stage.process("run", "--through", through.value)
    output, _ = process.communicate(timeout=SOON_S)

    assert process.returncode == 4, output
    assert "INSERT INTO" not in output
    assert "it came to its end, and" in output
    assert "make sure what lives, and see who has the table" in output
    step = "command for v1" if through is Through.DEPLOY else "the application's own shadow write on"
    assert stage.app.rows("SELECT outcome FROM _rollout_event WHERE step LIKE CONCAT('%%', %s) ORDER BY id", step) == [
        ("under way",), ("done",), ("table lost",)]
    assert (stage.exit_code(), stage.phase(through.value)[0]) == (4, "running")
    assert nothing_held(stage) == []

    assert stage.run(through).outcome == "done"
    assert ((stage.folder / "done").read_text(), stage.phase(through.value)[0]) == ("once\n", "done")


def test_a_command_that_ended_well_before_its_health_failed_is_run_again(stage: Stage) -> None:
    stage.plan(command=f"echo once >> {stage.folder}/done", health_command=f"test -e {stage.folder}/well", health_every_s=1, deadline_s=1)
    with pytest.raises(WaitingForPerson):
        stage.run()
    (stage.folder / "well").touch()

    assert stage.run().outcome == "done"
    assert (stage.folder / "done").read_text() == "once\nonce\n"


@pytest.mark.parametrize("lanes", [1, 2])
def test_a_paused_pass_ends_with_the_lock(stage: Stage, monkeypatch: pytest.MonkeyPatch, lanes: int) -> None:
    stage.plan(cleanup=f'[cleanup]\ndrop = ["status"]\n[backfill]\nmode = "full_speed"\nconnections = {lanes}\n',
               command="true", rollback_command="true")
    looking = stage.rollout().ledger
    looking.create()
    control.ask(looking, control.PAUSE, "ann", "lunch")

    def paused() -> object:
        return stage.app.value("SELECT COUNT(*) FROM _rollout_event WHERE outcome = 'paused'")

    with losing(monkeypatch, stage, paused), pytest.raises(OwnershipLost):
        stage.run()

    assert (stage.exit_code(), stage.phase("pre_deploy")[0]) == (4, "running")
    control.ask(looking, control.RUN, "ann", "eaten")
    assert stage.run().outcome == "done"
    assert stage.app.rows("SELECT COUNT(*) FROM job WHERE state IS NULL") == [(0,)]
