"""
The ways back, one for each phase, latest first. What each undoes and leaves is the table in the README.

Before anything is undone, everything the way back will need is looked at.
"""

from __future__ import annotations

from collections.abc import Callable

from flows.conductor import Conductor
from steps import (
    backfill,
    cleanup_back,
    ddl,
    deploy,
    drop_added,
    own_shadow_write,
    pre_deploy,
    server_trouble,
    shadow_write,
    verify,
    way_back_waits,
)
from steps.errors import Refused, RollbackFailed, RolloutError, WaitingForPerson
from steps.ledger import Event
from steps.ownership import unless_lost
from steps.phase import FORWARD, STANDS, Phase
from steps.rollout import Rollout
from steps.step import Step

ROLLED_BACK = "rolled back"
WayBack = Callable[[], None]


def backward(rollout: Rollout, conduct: Conductor, phases: list[Phase], *, drop_added: bool, why: str = "") -> None:
    """
    Undo *phases*, which come latest first; each is on record as rolled back, with *why*: what failed, else the person's reason.

    Raises:
        Refused, WaitingForPerson: before anything was undone.
        Stopped: at a safe edge; the same command continues.
        RollbackFailed: half-way; says what stands.
    """
    prepare(rollout, phases, drop_added=drop_added)
    ways: dict[Phase, Callable[[], list[Step]]] = {
        Phase.CLEANUP: lambda: cleanup_back.back(rollout),       # columns, archive, triggers, the new side decides, V1 again
        Phase.SHADOW_WRITE: lambda: shadow_write.back(rollout),  # ends the soak; sync belongs to pre_deploy
        Phase.VERIFY: lambda: verify.back(rollout),              # nothing but the record
        Phase.BACKFILL: lambda: backfill.back(rollout),          # nothing (ADR section 9); filled values stay
        Phase.DEPLOY: lambda: deploy.back(rollout),              # V1 to V0; sync stays, so V0 sees all that V1 wrote
        Phase.PRE_DEPLOY: lambda: pre_deploy.back(rollout, drop_added=drop_added),  # triggers off; the columns stay or go
    }
    for phase in phases:
        try:
            with unless_lost(rollout.owner, rollout.ledger.session):
                conduct.phase(f"rollback of {phase.value}", ways[phase](), rollout)
            rollout.record(Event(phase.value, ROLLED_BACK, "done", "back", detail={"why": why or rollout.person.reason}))
        except Exception as error:
            if isinstance(error, Refused) or server_trouble.interrupted(error):
                raise
            raise RollbackFailed(f"rollback of {phase.value}", str(error), what_stands(rollout)) from error


def asked(rollout: Rollout, phases: list[Phase], *, drop_added: bool) -> None:
    """:func:`prepare` for a person who asks for it; where it waits for one, that is on record. Raises the same."""
    try:
        prepare(rollout, phases, drop_added=drop_added)
    except WaitingForPerson as waiting:
        way_back_waits.on_record(rollout, phases[0], waiting)
        raise


def prepare(rollout: Rollout, phases: list[Phase], *, drop_added: bool) -> None:
    """
    Raises:
        Refused, WaitingForPerson: something that the way back will need is missing; nothing was undone.
    """
    if Phase.CLEANUP in phases:
        cleanup_back.prepared_to_go_back(rollout)
    if Phase.SHADOW_WRITE in phases:
        own_shadow_write.prepared_to_go_back(rollout)
    if Phase.DEPLOY in phases:
        deploy.prepared_to_go_back(rollout)
    if Phase.PRE_DEPLOY in phases and drop_added:
        refuse_destructive(rollout)


def refuse_destructive(rollout: Rollout) -> None:
    """Prove the way down on a clone, and refuse what would be lost."""
    ladder = rollout.rehearsed().ladder
    position = ladder.position(rollout.live(), rollout.table)
    drop_added.refuse_losses(rollout, ladder, position)
    for finding in ddl.blocking_copies(rollout, ladder, position, 0):
        raise Refused(finding.subject, finding.what, "do it in a quiet time with a larger --set max_blocked_s, or go back without "
                      "--drop-added")


def standing(rollout: Rollout) -> list[Phase]:
    """The phases that stand by ledger and catalogue, latest first. V1 may be out once a person was asked to put it out."""
    states = rollout.ledger.phases()
    return [phase for phase in reversed(FORWARD) if (state := states.get(phase, {}).get("state")) in STANDS
            or (phase is Phase.DEPLOY and state == deploy.WAITING)]


def what_stands(rollout: Rollout) -> str:
    """For a person who has to take over: the phases that stand, latest first, as far as the ledger can be read."""
    try:
        phases = ", ".join(phase.value for phase in standing(rollout)) or "nothing"
    except RolloutError as error:
        phases = f"unknown ({error.reason})"
    return f"what stands: {phases}; see `rollout status {rollout.plan.called}`, then run the same command again"


def standing_after(rollout: Rollout, phase: Phase | None) -> list[Phase]:
    """What has to be undone to return to the end of *phase*, or to V0 when it is None."""
    return [later for later in standing(rollout) if phase is None or FORWARD.index(later) > FORWARD.index(phase)]


def single(rollout: Rollout, phase: Phase) -> list[Phase]:
    """
    *phase* if it stands, else nothing.

    Raises:
        Refused: a later phase stands.
    """
    now = standing(rollout)
    later = [other for other in now if FORWARD.index(other) > FORWARD.index(phase)]
    if phase in now and later:
        raise Refused(f"rollback of {phase.value}", f"{later[0].value} stands, which comes later",
                      f"undo that first, or use --to {FORWARD[FORWARD.index(phase) - 1].value if phase.number > 1 else 'v0'}")
    return [phase] if phase in now else []


def has_added(rollout: Rollout) -> bool:
    """Whether anything is left that `--drop-added` would take away."""
    return rollout.ledger.plan() is not None or rollout.position() > 0
