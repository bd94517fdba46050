"""What the verbs do, whoever asks: the command line, a Prefect flow, a test. Prefect-free; a conductor shows the phases."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from flows import rollback as ways_back
from flows import rollout as runbook
from flows.conductor import Conductor
from flows.desk import desk
from flows.params import Request, RollbackRequest, RunRequest, Target
from flows.repeated import repeated
from steps import (
    acknowledged,
    catalogue,
    checks,
    ddl,
    end_blockers,
    expiry,
    failover,
    gate_rules,
    handover,
    parity_looks,
    pre_deploy,
    reckoning,
    room,
)
from steps.errors import Busy, FindingsRefused, Refused, Stopped, WrongUsage
from steps.lock_waits import holder_named
from steps.mysql import VALUE
from steps.ownership import forget_dead, lock_name
from steps.phase import Phase
from steps.plan_identity import refuse_other_plans, same_plan
from steps.rollout import Rollout, owned

__all__ = ["Result", "desk", "nothing_to_run", "refuse_findings", "rollback", "run"]
ON_RECORD_BY_ITSELF = {"plan", "by", "reason"}


@dataclass
class Result:
    """How a verb ended well; errors are raised."""

    verb: str
    outcome: str
    did: list[str] = field(default_factory=list)
    warnings: list[checks.Finding] = field(default_factory=list)
    run_id: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {"verb": self.verb, "outcome": self.outcome, "phases": self.did, "run_id": self.run_id,
                "warnings": [vars(finding) for finding in self.warnings]}


def nothing_to_run(rollout: Rollout, request: RunRequest) -> bool:
    """Whether catalogue and ledger say that every asked phase is done; no lock, no DDL, no Prefect. Then a dead owner's row goes."""
    same_plan(rollout)
    if not catalogue.exists(rollout.session, rollout.schema, rollout.table):
        return False  # the table check says so, with the nearest name
    if runbook.pending(rollout, _phases(request)):
        return False
    forget_dead(rollout.ledger)
    return True


def nothing_done(rollout: Rollout) -> Result:
    """How a run ends that had nothing to do; it warns where the last look over the soak found that parity is lost."""
    lost = parity_looks.alarm(rollout)
    warnings = [checks.Finding("parity", "warn", f"table {rollout.table}", lost,
                               f"`rollout watch {rollout.plan.called} --by NAME --reason WHY` says which, and looks again")] if lost else []
    return Result("run", "nothing to do", warnings=_said(rollout, warnings))


def run(rollout: Rollout, request: RunRequest, conduct: Conductor) -> Result:
    """
    Checks, then the asked phases.

    Raises: what :func:`flows.rollout.forward` raises, and
        Refused: findings that stop the rollout; nothing was touched.
        Cancelled: the run was asked to stop, and did at a safe edge.
    """
    if nothing_to_run(rollout, request):
        return nothing_done(rollout)
    with conduct.shown(rollout, "run"):
        return _run(rollout, request, conduct)


def _run(rollout: Rollout, request: RunRequest, conduct: Conductor) -> Result:
    _refuse_when_busy(rollout)
    refuse_other_plans(rollout)
    _refuse_half_way_back(rollout)
    failover.refuse_forgotten(rollout, back=False)
    warnings = conduct.task("pre-checks", lambda: refuse_findings(rollout)) + _may_not_end(rollout, request)
    runbook.refuse_gaps(rollout, _phases(request))
    conduct.planned(rollout, runbook.pending(rollout, _phases(request)), warnings)
    with owned(rollout, "run", _options(rollout, request, conduct)), holder_named(rollout):
        reckoning.settle(rollout, back=False)
        failover.on_record(rollout)
        acknowledged.on_record(rollout, warnings)
        todo = runbook.pending(rollout, _phases(request))  # another run may have ended while this one looked
        runbook.forward(rollout, conduct, _phases(request))
        return Result("run", "done" if todo else "nothing to do", [phase.value for phase in todo], warnings, rollout.ledger.run_id)


def _options(rollout: Rollout, request: Request, conduct: Conductor) -> dict[str, Any]:
    """What the run was asked for, what `[gates]` is, and Prefect's name for it, so that what Prefect missed of it can be told later."""
    asked = request.model_dump(mode="json", exclude=ON_RECORD_BY_ITSELF)
    return asked | {gate_rules.KEY: gate_rules.asked(rollout.plan)} | ({"flow_run": conduct.flow_run} if conduct.flow_run else {})


def what_to_undo(rollout: Rollout, request: RollbackRequest) -> tuple[list[Phase], bool]:
    """(phases, whether there is anything to do at all) for *request*. If there is nothing, a dead owner's row goes."""
    if (request.phase is None) == (request.to is None):
        raise WrongUsage("rollback", "needs a phase or --to, and not both", "for example `rollout rollback PLAN --to v0`")
    to_v0 = request.to is Target.V0 or (request.phase is not None and request.phase.phase is Phase.PRE_DEPLOY)
    if request.drop_added and not to_v0:
        raise WrongUsage("--drop-added", "goes with --to v0 or with pre_deploy", "the new application needs what was added")
    same_plan(rollout)
    if request.phase:
        phases = ways_back.single(rollout, request.phase.phase)
    else:
        phases = ways_back.standing_after(rollout, request.to.phase if request.to else None)
    if request.drop_added and Phase.PRE_DEPLOY not in phases and ways_back.has_added(rollout):
        phases.append(Phase.PRE_DEPLOY)
    if not phases:
        forget_dead(rollout.ledger)
    return phases, bool(phases)


def rollback(rollout: Rollout, request: RollbackRequest, conduct: Conductor) -> Result:
    """Undo what *request* asks for. Raises Cancelled as :func:`run`, and what :func:`flows.rollback.backward` raises. Safe to repeat."""
    phases, anything = what_to_undo(rollout, request)
    if not anything:
        return nothing_to_undo(rollout)
    with conduct.shown(rollout, "rollback"):
        return _rollback(rollout, request, conduct, phases)


def nothing_to_undo(rollout: Rollout) -> Result:
    """How a rollback ends where nothing stands; what waits at a gate, or was approved, counts no longer all the same."""
    withdrawn = expiry.withdraw_all(rollout)
    return Result("rollback", "done" if withdrawn else "nothing to do", withdrawn)


def _rollback(rollout: Rollout, request: RollbackRequest, conduct: Conductor, phases: list[Phase]) -> Result:
    _refuse_when_busy(rollout)
    refuse_other_plans(rollout)
    failover.refuse_forgotten(rollout, back=True)
    ways_back.asked(rollout, phases, drop_added=request.drop_added)
    warnings = _may_not_end(rollout, request)
    conduct.planned(rollout, phases, warnings, back=True)
    with owned(rollout, "rollback", _options(rollout, request, conduct)), holder_named(rollout):
        reckoning.settle(rollout, back=True)
        expiry.withdraw_all(rollout)
        failover.on_record(rollout)
        acknowledged.on_record(rollout, warnings)
        ways_back.backward(rollout, conduct, phases, drop_added=request.drop_added)
        return Result("rollback", "done", [phase.value for phase in phases], warnings, rollout.ledger.run_id)


def look_first(rollout: Rollout) -> list[checks.Finding]:
    """All findings of all checks, and of the rehearsal where it tells something else; read only but for the scratch schema."""
    begun = rollout.ledger.plan() is not None
    found = checks.findings(checks.Look(rollout.session, rollout.target, rollout.plan, begun=begun))
    if any(finding.check in ("table-shape", "server", "privileges", "blockers") and finding.severity == "refuse" and not finding.accept
           for finding in found):
        return found  # a clone of a table that is not fit to be cloned would only repeat it
    try:
        position = rollout.ladder().position(rollout.live(), rollout.table)
    except Refused as refused:
        if repeated(refused, found, rollout.accepted):
            return found
        return [*found, checks.Finding("rehearsal", "refuse", refused.subject, refused.reason, refused.remedy)]
    ladder = rollout.rehearsed().ladder
    way = rollout, ladder, position, max(position, ladder.expanded)
    return found + handover.leftovers(rollout) + ddl.blocking_copies(*way) + room.findings(*way) + _broken_sync(rollout) \
        + gate_rules.loosened(rollout)


def refuse_unfit(rollout: Rollout) -> None:
    """
    Raises:
        Refused: there is no such table, or none that can be cloned; names the nearest.
    """
    begun = rollout.ledger.plan() is not None
    for finding in checks.table_shape.run(checks.Look(rollout.session, rollout.target, rollout.plan, begun=begun)):
        if finding.severity == "refuse" and not finding.accept:
            raise Refused(finding.subject, finding.what, finding.remedy)


def _broken_sync(rollout: Rollout) -> list[checks.Finding]:
    """Triggers that ought to stand and do not, or stand with another body (cases C73, C74)."""
    broken = pre_deploy.broken_sync(rollout)
    if broken is None:
        return []
    return [checks.Finding("sync", "warn", f"table {rollout.table}", f"sync is broken: {broken}; the sides may have moved apart since",
                           "`rollout run` puts our triggers in place of whatever has their names, looks for rows that differ, and "
                           "proves the later phases anew")]


def refuse_findings(rollout: Rollout) -> list[checks.Finding]:
    """
    The warnings; findings that were accepted become warnings too.

    Raises:
        Refused: with every finding that is neither gone nor accepted.
    """
    found = look_first(rollout)
    stopping = [finding for finding in found if finding.stops(rollout.accepted)]
    if stopping:
        text = "; ".join(f"[{f.check}] {f.subject}: {f.what} ({f.advice.removesuffix('; nothing was touched')})" for f in stopping)
        raise FindingsRefused(f"{len(stopping)} finding{'s' if len(stopping) > 1 else ''}", text, "nothing was touched",
                              tuple(vars(finding) for finding in found))
    return _said(rollout, found)


def _said(rollout: Rollout, found: list[checks.Finding]) -> list[checks.Finding]:
    for finding in found:
        rollout.say("finding", check=finding.check, severity=finding.severity, subject=finding.subject, found=finding.what)
    return found


def _may_not_end(rollout: Rollout, request: Request) -> list[checks.Finding]:
    """What `--end-blockers` will not be able to do, told before anything starts."""
    return _said(rollout, end_blockers.findings(rollout.session) if request.end_blockers else [])


def _phases(request: RunRequest) -> tuple[Phase, ...]:
    phases = runbook.between(request.first.phase if request.first else None, request.through.phase)
    if not phases:
        raise WrongUsage(f"--from {request.first and request.first.value}", f"comes after --through {request.through.value}", "swap them")
    return phases


def _refuse_half_way_back(rollout: Rollout) -> None:
    """Forward from the middle of cleanup's way back would meet columns whose values nobody has decided yet."""
    if rollout.ledger.phase_state(Phase.CLEANUP) == "going back":
        raise Stopped("cleanup", "is half-way back", f"finish that first: `rollout rollback {rollout.plan.called} cleanup`")


def _refuse_when_busy(rollout: Rollout) -> None:
    """Say early that somebody works on the table; the lock itself is taken later and decides."""
    holder = rollout.session.value(f"SELECT IS_USED_LOCK({VALUE})", lock_name(rollout.schema, rollout.table))
    if holder is not None:
        raise Busy(f"table {rollout.table}", f"is held by another rollout (connection {holder})", "this run did nothing; see "
                   f"`rollout status {rollout.plan.called}`")

