"""
The runbook: six phases, top to bottom (ADR-002 section 8). Nothing here knows Prefect; a conductor shows it where people look.

Each phase is idempotent: what catalogue and ledger say is done is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from flows import rollback
from flows.conductor import Conductor, PhaseModule
from steps import backfill, cleanup, deploy, gate_times, gates, own_shadow_write, pre_deploy, server_trouble, shadow_write, verify
from steps.errors import (
    CleanupBroke,
    DeployFailed,
    Refused,
    RollbackFailed,
    RolledBack,
    RolloutError,
    ShadowWriteFailed,
    Stopped,
    VerifyFailed,
    WaitingForPerson,
)
from steps.ownership import unless_lost
from steps.phase import FORWARD, Phase
from steps.rollout import Rollout

WAITS = "the way back waits"
RUNBOOK: tuple[PhaseModule, ...] = (pre_deploy, deploy, backfill, verify, shadow_write, cleanup)


def forward(rollout: Rollout, conduct: Conductor, phases: tuple[Phase, ...]) -> None:
    """
    Take the table and its application through *phases*.

    Raises:
        RolledBack: deploy or verify failed, and everything was taken back as the plan says.
        RollbackFailed: that way back failed too.
        GateClosed: a phase may not begin yet; everything before it stands.
        Stopped, Refused: at a safe edge; the same command continues.
    """
    with _way_back_on_failure(rollout, conduct):
        _phase(pre_deploy, rollout, conduct, phases)    # 1. columns, indexes, keys, sync triggers, first pass: V0 notices nothing
        _phase(deploy, rollout, conduct, phases)        # 2. V1 goes out beside V0
        _phase(backfill, rollout, conduct, phases)      # 3. the closing pass proves that nothing is left
        _phase(verify, rollout, conduct, phases)        # 4. every row, the schema, the triggers, the smoke queries
        _phase(shadow_write, rollout, conduct, phases)  # 5. both sides written, whoever writes; the soak begins
        _phase(cleanup, rollout, conduct, phases)       # 6. V2 alone: the old side to tombstones, later archived and dropped


def between(first: Phase | None, through: Phase) -> tuple[Phase, ...]:
    """The phases from *first* to *through*."""
    start = FORWARD.index(first) if first else 0
    return FORWARD[start:FORWARD.index(through) + 1]


def pending(rollout: Rollout, phases: tuple[Phase, ...]) -> list[Phase]:
    """Which of *phases* are left to do, from catalogue and ledger alone."""
    return [module.PHASE for module in RUNBOOK if module.PHASE in phases and not module.is_done(rollout)]


def refuse_gaps(rollout: Rollout, phases: tuple[Phase, ...]) -> None:
    """
    Raises:
        Refused: a phase before the first of *phases* is not done.
    """
    for module in RUNBOOK:
        if module.PHASE in phases:
            return
        if not module.is_done(rollout):
            raise Refused(f"phase {phases[0].value}", f"needs {module.PHASE.value}, which is not done", "run without --from")


def _phase(module: PhaseModule, rollout: Rollout, conduct: Conductor, phases: tuple[Phase, ...]) -> None:
    if module.PHASE not in phases:
        return
    if module.is_done(rollout):
        rollout.say("nothing to do", phase=module.PHASE.value)
        return
    gates.begin(rollout, module.PHASE)
    with unless_lost(rollout.owner, rollout.ledger.session):
        conduct.phase(module.PHASE.label, module.steps(rollout), rollout)
    gate_times.ended(rollout, module.PHASE)


@contextmanager
def _way_back_on_failure(rollout: Rollout, conduct: Conductor) -> Iterator[None]:
    """A failed deploy is taken back; a failed verify goes where `verify.on_fail` says. A failed way back needs a person."""
    try:
        yield
    except DeployFailed as failure:
        if rollout.cleanup_began():
            raise Stopped(failure.subject, f"V2 did not come: {failure.reason}", "nothing was taken away; correct the cause and run "
                          f"again, or `rollout rollback {rollout.plan.called} cleanup`") from None
        _go_back(rollout, failure, "the deploy was taken back", partial(deploy.failed_and_taken_back, rollout, failure))
    except ShadowWriteFailed as failure:
        _go_back(rollout, failure, "the sync triggers keep both sides in step as before, for both generations",
                 partial(own_shadow_write.failed_and_taken_back, rollout))
    except CleanupBroke as failure:
        _go_back(rollout, failure, "columns and sync are back", partial(rollback.backward, rollout, conduct, [Phase.CLEANUP],
                                                                        drop_added=False, why=str(failure)))
    except VerifyFailed as failure:
        to = rollout.plan.on_fail
        if to == "stop":
            raise Stopped(failure.subject, failure.reason, "on_fail = stop: everything stands as it is; correct it, then run the "
                          "same command again") from None
        undo, why = rollback.standing_after(rollout, None if to == "v0" else Phase.PRE_DEPLOY), str(failure)
        _go_back(rollout, failure, f"the application is back on V0 (on_fail = {to})",
                 lambda: rollback.backward(rollout, conduct, undo, drop_added=False, why=why),
                 f"rollout rollback {rollout.plan.called} --to {to} --deployed-by NAME")


def _go_back(rollout: Rollout, failure: RolloutError, done: str, way_back: rollback.WayBack, by_hand: str | None = None) -> None:
    rollout.say("failed, going back", failure=str(failure))
    rollout.person = replace(rollout.person, deployed_by=None)  # who confirmed that V1 is out did not say that it is gone again
    try:
        way_back()
    except WaitingForPerson as waiting:
        raise WaitingForPerson(failure.subject, f"{failure.reason}; {WAITS}: {waiting.reason}",
                               f"then call: {by_hand}" if by_hand else waiting.remedy) from None
    except Stopped as stopped:
        raise Stopped(failure.subject, f"{failure.reason}; {WAITS}: {stopped.reason}", stopped.remedy) from None
    except Exception as second:
        reason = f"{second.subject}: {second.reason}" if isinstance(second, RolloutError) else str(second)
        if server_trouble.interrupted(second):
            raise Stopped(failure.subject, f"{failure.reason}; the way back was interrupted: {reason}",
                          f"{rollback.what_stands(rollout)}") from None
        raise RollbackFailed(failure.subject, f"{failure.reason}; then the way back failed: {reason}",
                             rollback.what_stands(rollout)) from second
    raise RolledBack(failure.subject, failure.reason, f"{done}; the old application keeps working. "
                     "Correct the cause and run again") from None
