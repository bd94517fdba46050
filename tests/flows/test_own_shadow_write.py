"""The application's own shadow write beside the triggers: commands, ledger, failures, kill -9 and the same command again, ways back."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flows.params import Through
from steps.errors import Refused, RollbackFailed, RolledBack, Stopped
from tests.flows.between import After
from tests.flows.deploy_stage import Stage

ON = {"application": "writes both sides"}
ASKED_ON = {"application": "asked to write both sides"}
ASKED_OFF = {"application": "asked to stop writing both sides"}
SYNCED = ["rollout_small_bi", "rollout_small_bu"]
LATE = 'sync_from = "shadow_write"'
SHADOW = Through.SHADOW_WRITE


class Switch:
    """What the application was asked, in order; *then* is a shell line that runs after it was."""

    def __init__(self, stage: Stage, folder: Path) -> None:
        self.stage, self.file = stage, folder / "asked"
        self.file.touch()

    def plan(self, *, on: str = "true", off: str = "true", head: str = "", **more: Any) -> None:
        self.stage.plan(how="command", command="true", rollback_command=f"echo v0 >> {self.file}", head=head, shadow_write={
            "enable_command": f"echo on >> {self.file}; {on}", "disable_command": f"echo off >> {self.file}; {off}", **more})

    def forget(self) -> None:
        """The plan without the commands."""
        self.stage.plan(how="command", command="true", rollback_command=f"echo v0 >> {self.file}")

    @property
    def asked(self) -> list[str]:
        return self.file.read_text().split()


@pytest.fixture
def switch(stage: Stage, tmp_path: Path) -> Switch:
    return Switch(stage, tmp_path)


def plant(stage: Stage) -> Callable[[], object]:
    """A row that only a fault could make."""
    return lambda: stage.app.run("UPDATE job SET status = 'completed', state = 'locked' WHERE id = 'a'")


def killed(stage: Stage, verb: str, *words: str) -> None:
    process = stage.process(verb, *words)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL, output


def test_it_is_switched_on_under_the_triggers_and_off_first_on_the_way_back(stage: Stage, switch: Switch, tmp_path: Path) -> None:
    switch.plan(on=f"env > {tmp_path}/environment; echo said")

    assert stage.run(SHADOW).did[-1] == "shadow_write"

    state, detail = stage.phase("shadow_write")
    assert (switch.asked, state, detail) == (["on"], "done", {**ON, "rows examined": 2, "rows that differ": 0})
    assert stage.app.triggers() == SYNCED
    told = dict(line.partition("=")[::2] for line in (tmp_path / "environment").read_text().splitlines())
    assert {key: told.get(f"ROLLOUT_{key}") for key in ("PLAN", "TABLE", "GENERATION", "SHADOW_WRITE", "DATABASE_URL")} == {
        "PLAN": "small", "TABLE": "job", "GENERATION": "v1", "SHADOW_WRITE": "on", "DATABASE_URL": None}
    [(statement, said)] = stage.app.rows("SELECT statement, detail FROM _rollout_event WHERE step LIKE %s", "the application%")
    assert (statement.startswith("echo on"), json.loads(said)) == (True, {"output": "said\n"})
    assert stage.run(SHADOW).outcome == "nothing to do"

    assert stage.back(SHADOW).did == ["shadow_write"]

    assert (switch.asked, stage.phase("shadow_write")) == (["on", "off"], ("undone", {}))
    assert stage.app.triggers() == SYNCED
    assert stage.back(SHADOW).outcome == "nothing to do"
    assert stage.run(SHADOW).did == ["shadow_write"]
    assert switch.asked == ["on", "off", "on"]


def test_commands_that_come_into_the_plan_later_are_run_by_the_next_run(stage: Stage, switch: Switch) -> None:
    switch.forget()
    stage.run(SHADOW)
    assert (switch.asked, stage.phase("shadow_write")[0]) == ([], "done")
    assert stage.standing()["next"].startswith("cleanup, when")
    switch.plan()
    assert stage.standing()["next"] == f"shadow_write: rollout run {stage.folder}"

    assert stage.run(SHADOW).did == ["shadow_write"]

    assert (switch.asked, stage.phase("shadow_write")[1]["application"]) == (["on"], "writes both sides")
    assert stage.standing()["next"].startswith("cleanup, when")


@pytest.mark.parametrize(("on", "reason"), [("echo why; exit 3", "ended with 3: why"), ("sleep 60", "ran over its deadline of 1 s")])
def test_a_command_that_fails_is_taken_back_with_exit_5_and_v1_stays(stage: Stage, switch: Switch, on: str, reason: str) -> None:
    switch.plan(on=on, deadline_s=1)

    with pytest.raises(RolledBack, match=reason) as failed:
        stage.run(SHADOW)

    assert (failed.value.exit_code, stage.exit_code(), switch.asked) == (5, 5, ["on", "off"])
    assert stage.phase("shadow_write") == ("undone", {})
    assert [stage.phase(phase)[0] for phase in ("pre_deploy", "deploy", "backfill", "verify")] == ["done"] * 4
    assert stage.app.triggers() == SYNCED
    switch.plan()
    assert stage.run(SHADOW).did == ["shadow_write"]
    assert stage.phase("shadow_write")[0] == "done"


def test_a_switch_that_sticks_needs_a_person_and_is_not_forgotten(stage: Stage, switch: Switch) -> None:
    switch.plan(on="false", off="exit 4")

    with pytest.raises(RollbackFailed, match="disable_command: ended with 4"):
        stage.run(SHADOW)

    assert (stage.exit_code(), stage.phase("shadow_write"), stage.app.triggers()) == (7, ("going back", ASKED_OFF), SYNCED)
    switch.plan()
    assert stage.back(SHADOW).did == ["shadow_write"]
    assert (switch.asked, stage.phase("shadow_write")) == (["on", "off", "off"], ("undone", {}))


def test_a_way_back_whose_switch_sticks_undoes_nothing_else_and_may_be_repeated(stage: Stage, switch: Switch) -> None:
    switch.plan(off="false")
    stage.run(SHADOW)

    with pytest.raises(RollbackFailed, match="disable_command: ended with 1"):
        stage.back(SHADOW)

    assert (stage.exit_code(), stage.phase("shadow_write"), stage.phase("verify")[0]) == (7, ("going back", ASKED_OFF), "done")
    switch.plan()
    stage.back(SHADOW)
    assert (switch.asked, stage.phase("shadow_write")) == (["on", "off", "off"], ("undone", {}))


@pytest.mark.parametrize("then", ["run", "back"])
@pytest.mark.parametrize("at", ["on", "off"])
def test_killed_while_it_is_switched_it_is_switched_again_or_back(stage: Stage, switch: Switch, at: str, then: str) -> None:
    switch.plan(**{at: "kill -9 $PPID"})
    if at == "off":
        stage.run(SHADOW)
    killed(stage, *(("run", "--through", "shadow_write") if at == "on" else ("rollback", "shadow_write")))
    before = switch.asked
    assert before[-1] == at
    assert stage.phase("shadow_write") == (("running", ASKED_ON) if at == "on" else ("going back", ASKED_OFF))

    switch.plan()
    (stage.run if then == "run" else stage.back)(SHADOW)

    assert switch.asked == [*before, "on" if then == "run" else "off"]
    assert stage.phase("shadow_write")[0] == ("done" if then == "run" else "undone")


def test_what_the_proof_finds_with_both_on_goes_back_and_the_switch_is_first(stage: Stage, switch: Switch) -> None:
    switch.plan()

    with pytest.raises(RolledBack, match="1 rows disagree"):
        stage.run(SHADOW, conductor=After("verify", plant(stage)))

    assert (switch.asked, stage.exit_code()) == (["on", "off", "v0"], 5)
    assert [stage.phase(phase)[0] for phase in ("shadow_write", "deploy", "pre_deploy")] == ["undone", "undone", "done"]
    assert stage.app.triggers() == SYNCED


def test_without_triggers_the_application_is_not_asked(stage: Stage, switch: Switch) -> None:
    switch.plan()

    with pytest.raises(Stopped, match="sync triggers: only one of the two"):
        stage.run(SHADOW, conductor=After("verify", lambda: stage.app.run("DROP TRIGGER rollout_small_bi")))

    assert (switch.asked, stage.exit_code(), stage.phase("shadow_write")) == ([], 4, ("-", {}))


def test_a_plan_that_lost_the_commands_is_refused_before_anything_is_undone(stage: Stage, switch: Switch) -> None:
    switch.plan()
    stage.run(SHADOW)
    switch.forget()

    with pytest.raises(Refused, match=r"neither shadow_write\.enable_command nor disable_command any more") as refused:
        stage.back(SHADOW)

    assert (refused.value.exit_code, switch.asked, stage.phase("shadow_write")[0]) == (3, ["on"], "done")


def test_a_run_that_lost_the_commands_half_way_stops(stage: Stage, switch: Switch) -> None:
    switch.plan(on="kill -9 $PPID")
    killed(stage, "run", "--through", "shadow_write")
    switch.forget()

    with pytest.raises(Stopped, match="set both again as they were"):
        stage.run(SHADOW)

    assert (switch.asked, stage.exit_code(), stage.phase("shadow_write")) == (["on"], 4, ("running", ASKED_ON))


def test_triggers_that_were_lost_come_back_and_the_switch_is_not_forgotten(stage: Stage, switch: Switch) -> None:
    switch.plan()
    stage.run(SHADOW)
    stage.app.run("DROP TRIGGER rollout_small_bi")

    assert stage.run(SHADOW).outcome == "done"

    assert [stage.phase(phase)[0] for phase in ("backfill", "verify", "shadow_write")] == ["done"] * 3
    assert (switch.asked, stage.phase("shadow_write")[1]["application"], stage.app.triggers()) == (["on"], "writes both sides", SYNCED)
    stage.back(SHADOW)
    assert switch.asked == ["on", "off"]


def test_late_triggers_come_before_it_and_go_after_it(stage: Stage, switch: Switch) -> None:
    switch.plan(head=LATE)
    stage.run(SHADOW)
    stage.back(SHADOW)

    steps = [step for step, in stage.app.rows("SELECT step FROM _rollout_event WHERE phase = 'shadow_write' ORDER BY id")]
    wanted = ["trigger rollout_small_bu", "trigger rollout_small_bi", "reconcile", "the application's own shadow write on", "parity",
              "the application's own shadow write off", "reconcile", "trigger rollout_small_bi", "trigger rollout_small_bu"]
    assert [step for step in steps if step in wanted] == wanted
    assert (switch.asked, stage.app.triggers(), stage.phase("shadow_write")) == (["on", "off"], [], ("undone", {}))


def test_late_triggers_stay_when_the_switch_fails_because_both_generations_need_them(stage: Stage, switch: Switch) -> None:
    switch.plan(on="false", head=LATE)

    with pytest.raises(RolledBack):
        stage.run(SHADOW)

    assert (switch.asked, stage.app.triggers(), stage.phase("shadow_write")) == (["on", "off"], SYNCED, ("running", {}))
    switch.plan(head=LATE)
    stage.run(SHADOW)
    assert stage.phase("shadow_write")[0] == "done"


def test_cleanup_leaves_the_switch_to_v2_and_its_way_back_leaves_it_on(stage: Stage, switch: Switch) -> None:
    """Who writes the old side is gone with V1; V1 comes back as its switch stands, under the triggers."""
    switch.plan()
    stage.run(SHADOW)
    stage.run(Through.CLEANUP, deployed_by="ben")
    assert (switch.asked, stage.phase("cleanup")[0]) == (["on"], "done")

    stage.back(Through.CLEANUP, deployed_by="ben")
    assert (switch.asked, stage.app.triggers()) == (["on"], SYNCED)
    assert stage.run(SHADOW).outcome == "nothing to do"
    stage.back(SHADOW)
    assert switch.asked == ["on", "off"]
