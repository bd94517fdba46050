"""
Phase 2: the application's new generation goes out, or comes back, by a command or by a person's hand.

The command runs in a shell of its own with a deadline; a health command is then asked until it says yes. Deploying is
refused while an index or a sync trigger that the new generation needs is missing (F15, F17).
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable

from steps import waits
from steps.errors import DeployFailed, RolloutError, Stopped, WaitingForPerson
from steps.masking import mask
from steps.phase import Outcome, Phase
from steps.rollout import Rollout
from steps.step import Step
from steps.sync import SyncState
from steps.target import ENVIRONMENT

SHOWN_OUTPUT = 2000

PHASE = Phase.DEPLOY


def is_done(rollout: Rollout) -> bool:
    return rollout.ledger.phase_state(PHASE) == "done"


def v1_may_live(rollout: Rollout) -> bool:
    """Whether instances of the new generation may be running: deployed, or a deploy or its way back was begun."""
    return rollout.ledger.phase_state(PHASE) in ("done", "running")


def steps(rollout: Rollout) -> list[Step]:
    return [Step("ready for the new generation", lambda: _ready(rollout)), Step("put the new generation out", lambda: _forward(rollout))]


def back(rollout: Rollout) -> list[Step]:
    return [Step("take the new generation back", lambda: _backward(rollout))]


def _ready(rollout: Rollout) -> Outcome:
    ladder = rollout.ladder()
    here = rollout.position()
    if here != ladder.expanded:
        raise Stopped(f"table {rollout.table}", f"stands on stair {here} of {ladder.expanded}; the new generation needs all of them",
                      "run phase pre_deploy first")
    if rollout.plan.filled_columns and not rollout.plan.plan.syncs_late and rollout.sync_state() is not SyncState.ON:
        raise Stopped(f"table {rollout.table}", f"sync triggers: {rollout.sync_state().value}", "run phase pre_deploy first")
    return Outcome.DONE


def _forward(rollout: Rollout) -> Outcome:
    plan = rollout.plan.deploy
    how = put_out(rollout, PHASE, plan.command if plan.how == "command" else None, plan.health_command, "v1",
                  "the new generation (V1) is deployed and healthy", f"rollout run {rollout.plan.id} --deployed-by NAME",
                  before=lambda: rollout.ledger.set_phase(PHASE, "running"))
    rollout.ledger.set_phase(PHASE, "done", {"how": how})
    return Outcome.DONE


def put_out(rollout: Rollout, phase: Phase, command: str | None, health_command: str | None, generation: str, what: str, call: str, *,
            direction: str = "forward", before: Callable[[], None] = lambda: None) -> str:
    """
    Put *generation* out by *command*, else let a person confirm *what*; return how it was done.

    Raises:
        DeployFailed: the command or its health failed or ran over the deadline.
        WaitingForPerson: there is no command and nobody has confirmed; *call* is what continues.
    """
    if not command:
        try:
            who = _confirmed(rollout, what, call)
        except WaitingForPerson as waiting:
            if rollout.owner and direction == "forward" and phase is PHASE:
                rollout.ledger.set_phase(phase, "waiting", {"reason": waiting.reason, "remedy": waiting.remedy})
            raise
        before()
        with rollout.timed(phase, "confirmed by hand", direction=direction) as facts:
            facts["deployed_by"] = who
        return f"confirmed by {who}"
    before()
    with rollout.timed(phase, f"command for {generation}", direction=direction, statement=command) as facts:
        facts |= _run(rollout, f"command for {generation}", command, generation)
    if health_command:
        with rollout.timed(phase, "health", direction=direction, statement=health_command):
            _wait_for_health(rollout, health_command)
    return "by command"


def prepared_to_go_back(rollout: Rollout) -> None:
    """
    Before anything is undone: can the application be taken back? (design section 2)

    Raises:
        WaitingForPerson: nobody has confirmed it and there is no rollback command.
    """
    if v1_may_live(rollout) and not rollout.plan.deploy.rollback_command:
        _confirmed(rollout, "the old generation (V0) is back and no V1 instance is left",
                   f"rollout rollback {rollout.plan.id} … --deployed-by NAME, or --set deploy.rollback_command='…'")


def _backward(rollout: Rollout) -> Outcome:
    put_out(rollout, PHASE, rollout.plan.deploy.rollback_command, None, "v0", "the old generation (V0) is back and no V1 instance is left",
            f"rollout rollback {rollout.plan.id} … --deployed-by NAME", direction="back")
    rollout.ledger.set_phase(PHASE, "undone")
    return Outcome.DONE


def _confirmed(rollout: Rollout, what: str, call: str) -> str:
    """The name of the person who says that *what* is so; `--yes` never answers for them."""
    if rollout.person.deployed_by:
        return rollout.person.deployed_by
    if rollout.person.confirm and rollout.person.confirm(what):
        return rollout.person.actor
    raise WaitingForPerson("deploy", f"a person has to confirm that {what}", f"then call: {call}")


def _run(rollout: Rollout, what: str, command: str, generation: str) -> dict[str, str]:
    """Run *command* in a shell, at most `deploy.deadline_s`; return the end of its output, masked."""
    result, output = run_command(command, rollout.plan.deploy.deadline_s, {
        "ROLLOUT_PLAN": rollout.plan.id, "ROLLOUT_TABLE": rollout.table, "ROLLOUT_GENERATION": generation})
    if result is None:
        raise DeployFailed(what, f"ran over its deadline of {rollout.plan.deploy.deadline_s} s and was ended", "see its output")
    if result != 0:
        raise DeployFailed(what, f"ended with {result}: {output[-300:].strip() or 'no output'}", "correct the cause")
    return {"output": output}


def run_command(command: str, deadline_s: float, extra: dict[str, str]) -> tuple[int | None, str]:
    """
    (exit code or None when it ran over *deadline_s*, the end of its masked output). The whole process group is ended.

    The database URL is not handed on: a deploy command has its own credentials or none.
    """
    environment = {key: value for key, value in os.environ.items() if key != ENVIRONMENT} | extra
    with subprocess.Popen(["/bin/sh", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                          env=environment, start_new_session=True) as process:
        try:
            output, _ = process.communicate(timeout=deadline_s)
            code: int | None = process.returncode
        except BaseException as error:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                output, _ = process.communicate(timeout=5)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                output, _ = process.communicate()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            code = None
    return code, mask(output.decode(errors="replace"))[-SHOWN_OUTPUT:]


def _wait_for_health(rollout: Rollout, command: str) -> None:
    deadline = waits.now_s() + rollout.plan.deploy.deadline_s
    while True:
        left_s = deadline - waits.now_s()
        code, output = run_command(command, max(0.1, left_s), {"ROLLOUT_PLAN": rollout.plan.id, "ROLLOUT_GENERATION": "v1"})
        if code == 0:
            return
        if waits.now_s() >= deadline:
            raise DeployFailed("health command", f"did not say yes within {rollout.plan.deploy.deadline_s} s: "
                               f"{output[-300:].strip() or f'exit code {code}'}", "see the application's log")
        waits.sleep_s(rollout.plan.deploy.health_every_s)


def failed_and_taken_back(rollout: Rollout, failure: RolloutError) -> None:
    """
    After a failed deploy: run the rollback command, or say that a person has to.

    Raises:
        WaitingForPerson: there is no rollback command.
        DeployFailed: the rollback command failed too.
    """
    if not rollout.plan.deploy.rollback_command:
        rollout.ledger.set_phase(PHASE, "running", {"failure": str(failure)})
        raise WaitingForPerson("deploy", f"failed and there is no deploy.rollback_command ({failure})",
                               f"take V1 back by hand, then `rollout rollback {rollout.plan.id} deploy --deployed-by NAME`; or correct "
                               "the cause and run the same command again")
    _backward(rollout)


