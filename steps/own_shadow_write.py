"""
The application's own shadow write (ADR section 4, M-AI-02-10): V1 is told to write both sides itself, and to stop again.

The sync triggers stay on all the while. What the application writes by the plan's maps agrees already, so they leave it alone; whoever
writes one side only is still followed. So a switch that is half on, or lost with a restart, makes no row wrong. That the application
was asked, and that it did, stands in the phase's detail: until the disable command has ended well, the way back runs it.
"""

from __future__ import annotations

from typing import Any

from steps.commands import run_command
from steps.errors import Refused, ShadowWriteFailed, Stopped
from steps.phase import Outcome, Phase
from steps.rollout import Rollout
from steps.sync import SyncState
from steps.under_way import Errand

PHASE = Phase.SHADOW_WRITE
APPLICATION = "application"
ASKED_ON, ON, ASKED_OFF = "asked to write both sides", "writes both sides", "asked to stop writing both sides"
SHOWN_OUTPUT = 300


def recorded(rollout: Rollout) -> dict[str, Any]:
    """What the phase's detail says of the application's own shadow write; empty while it was never asked, or has stopped."""
    detail = rollout.ledger.phases().get(PHASE, {}).get("detail") or {}
    return {APPLICATION: detail[APPLICATION]} if APPLICATION in detail else {}


def concerns(rollout: Rollout) -> bool:
    """Whether the plan has the commands, or the application was asked to write both sides already."""
    return bool(rollout.plan.shadow_write.enable_command or recorded(rollout))


def is_due(rollout: Rollout) -> bool:
    """Whether the plan wants it and it is not on; from cleanup on nobody writes the old side any more."""
    wanted = rollout.plan.shadow_write.enable_command is not None
    return wanted and recorded(rollout).get(APPLICATION) != ON and not rollout.cleanup_began()


def mark(rollout: Rollout, state: str, detail: dict[str, Any] | None = None) -> None:
    """The phase's *state*, without forgetting what the application was asked."""
    rollout.ledger.set_phase(PHASE, state, {**(detail or {}), **recorded(rollout)})


def enable(rollout: Rollout) -> Outcome:
    """
    Run the enable command. Safe to repeat: after a kill it runs again until it has ended well once, so it has to bear that.

    Raises:
        ShadowWriteFailed: it failed or ran over its deadline; the caller takes it back.
        Stopped: the sync triggers are not on, or the plan has lost the commands meanwhile.
    """
    command = rollout.plan.shadow_write.enable_command
    if command is None:
        raise Stopped(*_lost(rollout))
    if not is_due(rollout):
        return Outcome.ALREADY_DONE
    needs_sync(rollout)
    rollout.check_owner()
    ended = _errand("on").ended_well(rollout, command)
    rollout.ledger.set_phase(PHASE, "running", {APPLICATION: ASKED_ON})
    if not ended:
        _run(rollout, command, "on")
    rollout.ledger.set_phase(PHASE, "running", {APPLICATION: ON})
    return Outcome.DONE


def disable(rollout: Rollout) -> Outcome:
    """
    Run the disable command, unless the application was never asked or has stopped already. Safe to repeat as :func:`enable`.

    Raises:
        ShadowWriteFailed: it failed or ran over its deadline; the triggers keep both sides in step all the same.
    """
    if not recorded(rollout):
        return Outcome.ALREADY_DONE
    prepared_to_go_back(rollout)
    rollout.check_owner()
    command = str(rollout.plan.shadow_write.disable_command)
    ended = _errand("off").ended_well(rollout, command)
    rollout.ledger.set_phase(PHASE, "going back", {APPLICATION: ASKED_OFF})
    if not ended:
        _run(rollout, command, "off")
    rollout.ledger.set_phase(PHASE, "going back")
    return Outcome.DONE


def failed_and_taken_back(rollout: Rollout) -> None:
    """After a failed enable command: it may be on in part, so the disable command runs. What else the phase has done stays."""
    disable(rollout)
    rollout.ledger.set_phase(PHASE, "running" if rollout.plan.plan.syncs_late else "undone")


def prepared_to_go_back(rollout: Rollout) -> None:
    """
    Raises:
        Refused: the application was asked to write both sides, and the plan does not say any more how it stops.
    """
    if recorded(rollout) and rollout.plan.shadow_write.disable_command is None:
        raise Refused(*_lost(rollout))


def needs_sync(rollout: Rollout) -> None:
    """
    Raises:
        Stopped: the sync triggers are not on.
    """
    state = rollout.sync_state()
    if state is not SyncState.ON:
        raise Stopped(f"table {rollout.table}", f"sync triggers: {state.value}", "run the same command again: the phase that "
                      "brings them puts them back and looks for rows that differ")


def _lost(rollout: Rollout) -> tuple[str, str, str]:
    reason = ("the application was asked to write both sides, and the plan has neither shadow_write.enable_command nor "
              "disable_command any more")
    return f"plan {rollout.plan.id}", reason, "set both again as they were, then the same command continues"


def _errand(switch: str) -> Errand:
    return Errand(PHASE, f"the application's own shadow write {switch}", "forward" if switch == "on" else "back", f"it may be {switch}")


def _run(rollout: Rollout, command: str, switch: str) -> None:
    errand, deadline_s = _errand(switch), rollout.plan.shadow_write.deadline_s
    with errand.guarded(rollout), rollout.timed(PHASE, errand.step, direction=errand.direction, statement=command,
                                                 only_known_here=True) as facts:
        code, output = run_command(command, deadline_s, {
            "ROLLOUT_PLAN": rollout.plan.id, "ROLLOUT_TABLE": rollout.table, "ROLLOUT_GENERATION": "v1", "ROLLOUT_SHADOW_WRITE": switch},
            errand.begins(rollout))
        what = f"shadow_write.{'enable' if switch == 'on' else 'disable'}_command"
        if code is None:
            raise ShadowWriteFailed(what, f"ran over its deadline of {deadline_s} s and was ended", "see its output")
        if code:
            raise ShadowWriteFailed(what, f"ended with {code}: {output[-SHOWN_OUTPUT:].strip() or 'no output'}", "correct the cause")
        facts["output"] = output
