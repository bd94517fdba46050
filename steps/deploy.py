"""
Phase 2: the application's new generation goes out, or comes back, by one of the ways in :mod:`steps.deploys` or by a person's hand.

Deploying is refused while an index or a sync trigger that the new generation needs is missing (F15, F17). What a way needs to
take a generation back stands in the ledger, in the phase's detail, before its first change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from steps import deploys
from steps.deploys.health import Health, wait_for
from steps.deploys.way import Deadline, DeployWay, Job
from steps.errors import RolloutError, Stopped, WaitingForPerson
from steps.phase import Outcome, Phase
from steps.rollout import Rollout
from steps.step import Step
from steps.sync import SyncState
from steps.under_way import Errand

PHASE, WAITING = Phase.DEPLOY, "waiting"
ENDED_BEFORE = "has ended well before"
V0_IS_BACK = "the old generation (V0) is back and no V1 instance is left"


def is_done(rollout: Rollout) -> bool:
    return rollout.ledger.phase_state(PHASE) == "done"


def v1_may_live(rollout: Rollout) -> bool:
    """Whether instances of the new generation may be running: deployed, a deploy or its way back begun, or a person asked to deploy it."""
    return rollout.ledger.phase_state(PHASE) in ("done", "running", WAITING)


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
    how = put_out(rollout, PHASE, plan.command, Health(plan.health_command, plan.health_url), "v1",
                  "the new generation (V1) is deployed and healthy", f"rollout run {rollout.plan.called} --deployed-by NAME",
                  before=lambda detail: rollout.ledger.set_phase(PHASE, "running", detail))
    _set(rollout, "done", how=how)
    return Outcome.DONE


def put_out(rollout: Rollout, phase: Phase, command: str | None, health: Health, generation: str, what: str, call: str, *,
            before: Callable[[dict[str, Any]], None]) -> str:
    """
    Put *generation* out by *command*, else as `deploy.how` says, else let a person confirm *what*; return how it was done.

    *before* marks the phase as begun, with what the way saw when it looked in its detail. Safe to repeat after a kill.

    Raises:
        DeployFailed: it failed, or its health did, or it ran over the deadline.
        Stopped: the deploy system could not be asked; the same command continues.
        WaitingForPerson: nobody has confirmed; *call* is what continues.
    """
    way = deploys.forward(rollout.plan.deploy, command, generation)
    if way is None:
        return _by_hand(rollout, phase, what, call, "forward", before)
    remembered = _known(rollout, phase)
    known = way.look(generation, remembered.get(way.name, {}))
    errand = Errand(phase, f"{way.name} for {generation}", "forward", f"{generation} may be out")
    ended = command is not None and errand.ended_well(rollout, command)
    before({"known": {**remembered, way.name: known}} if known or remembered else {})
    job = _job(rollout, errand, way, generation, known)
    with errand.guarded(rollout):
        with rollout.timed(phase, errand.step, statement=command, only_known_here=True) as facts:
            facts |= {"outcome": ENDED_BEFORE} if ended else way.put_out(job)
        for kind, question in health.questions():
            with rollout.timed(phase, "health", statement=question):
                wait_for(kind, question, _job(rollout, errand, way, generation, job.known))
    return f"by {way.name}"


def take_back(rollout: Rollout, phase: Phase, command: str | None, generation: str, what: str, call: str) -> None:
    """
    Return to *generation*, the one before, by *command*, else as `deploy.how` says, else let a person confirm *what*.

    Raises:
        DeployFailed, Stopped, WaitingForPerson: as :func:`put_out`.
    """
    way, why = deploys.way_back(rollout.plan.deploy, command, generation, _known(rollout, phase))
    if way is None:
        _by_hand(rollout, phase, what, f"{call} ({why})" if why else call, "back", lambda _: None)
        return
    rollout.check_owner()
    errand = Errand(phase, f"{way.name} for {generation}", "back", f"{generation} may be back")
    with errand.guarded(rollout), rollout.timed(phase, errand.step, direction="back", statement=command,
                                                 only_known_here=True) as facts:
        facts |= way.take_back(_job(rollout, errand, way, generation, _known(rollout, phase).get(way.name, {})))


def comes_back_by_itself(rollout: Rollout, phase: Phase, command: str | None, generation: str) -> bool:
    """
    Whether *generation* can be returned to without a person. If so, the deploy system is asked whether it is there.

    Raises:
        Stopped: it is not, or does not let us in; nothing was undone.
    """
    known = _known(rollout, phase)
    way, _ = deploys.way_back(rollout.plan.deploy, command, generation, known)
    if way is None:
        return False
    way.reach(known.get(way.name, {}))
    return True


def _job(rollout: Rollout, errand: Errand, way: DeployWay, generation: str, known: dict[str, Any]) -> Job:
    plan = rollout.plan.deploy
    return Job(rollout.plan.id, rollout.table, generation, rollout.ledger.run_id, Deadline(plan.deadline_s), plan.health_every_s,
               dict(known), lambda now: _keep(rollout, errand.phase, way.name, now), errand.begins(rollout))


def _known(rollout: Rollout, phase: Phase) -> dict[str, Any]:
    """What each way remembers in this phase, by way; gone once the phase is undone."""
    return dict((rollout.ledger.phases().get(phase, {}).get("detail") or {}).get("known") or {})


def _keep(rollout: Rollout, phase: Phase, way: str, now: dict[str, Any]) -> None:
    row = rollout.ledger.phases()[phase]
    detail = dict(row["detail"] or {})
    rollout.ledger.set_phase(phase, str(row["state"]), {**detail, "known": {**(detail.get("known") or {}), way: now}})


def _set(rollout: Rollout, state: str, **detail: Any) -> None:
    """The phase's state, without forgetting what the ways remember."""
    known = _known(rollout, PHASE)
    rollout.ledger.set_phase(PHASE, state, {**detail, **({"known": known} if known else {})})


def prepared_to_go_back(rollout: Rollout) -> None:
    """
    Before anything is undone: can the application be taken back? (design section 2)

    Raises:
        WaitingForPerson: nobody has confirmed it and no way leads back without a person.
    """
    if v1_may_live(rollout) and not comes_back_by_itself(rollout, PHASE, rollout.plan.deploy.rollback_command, "v0"):
        _confirmed(rollout, V0_IS_BACK, "the same rollback once more with --deployed-by NAME, or with --set "
                                        "deploy.rollback_command='COMMAND'")


def _backward(rollout: Rollout) -> Outcome:
    take_back(rollout, PHASE, rollout.plan.deploy.rollback_command, "v0", V0_IS_BACK,
              "the same rollback once more with --deployed-by NAME")
    rollout.ledger.set_phase(PHASE, "undone")
    return Outcome.DONE


def _by_hand(rollout: Rollout, phase: Phase, what: str, call: str, direction: str,
             before: Callable[[dict[str, Any]], None]) -> str:
    try:
        who = _confirmed(rollout, what, call)
    except WaitingForPerson as waiting:
        if rollout.owner and direction == "forward" and phase is PHASE and not v1_may_live(rollout):
            rollout.ledger.set_phase(phase, WAITING, {"reason": waiting.reason, "remedy": waiting.remedy})
        raise
    before({})
    with rollout.timed(phase, "confirmed by hand", direction=direction, only_known_here=True) as facts:
        facts["deployed_by"] = who
    return f"confirmed by {who}"


def _confirmed(rollout: Rollout, what: str, call: str) -> str:
    """The name of the person who says that *what* is so; `--yes` never answers for them."""
    if rollout.person.deployed_by:
        return rollout.person.deployed_by
    said = rollout.person.confirm(what) if rollout.person.confirm else False
    if said:
        return said if isinstance(said, str) else rollout.person.actor
    raise WaitingForPerson("deploy", f"a person has to confirm that {what}", f"then call: {call}", what)


def failed_and_taken_back(rollout: Rollout, failure: RolloutError) -> None:
    """
    After a failed deploy: take it back, or say that a person has to.

    Raises:
        WaitingForPerson: no way leads back without a person.
        DeployFailed: the way back failed too.
    """
    way, why = deploys.way_back(rollout.plan.deploy, rollout.plan.deploy.rollback_command, "v0", _known(rollout, PHASE))
    if way is None:
        _set(rollout, "running", failure=str(failure))
        raise WaitingForPerson("deploy", f"failed and {why or 'there is no deploy.rollback_command'} ({failure})",
                               f"take V1 back by hand, then `rollout rollback {rollout.plan.called} deploy --deployed-by NAME`; or correct "
                               "the cause and run the same command again")
    _backward(rollout)
