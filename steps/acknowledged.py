"""Findings on record: which were accepted and by whom, and which were told as warnings. Once the run owns the table, before it works."""

from __future__ import annotations

from collections.abc import Sequence

from steps import checks
from steps.checks import Finding
from steps.ledger import Event
from steps.phase import Phase
from steps.rollout import Rollout

ACCEPTED, TOLD = "accepted", "told"


def on_record(rollout: Rollout, findings: Sequence[Finding]) -> None:
    """
    One event for each accepted finding, in the phase that it protects, and one for all warnings. No lock; once in a run.

    `--end-blockers` accepts `blockers` by itself, and is told so.
    """
    phases = {check.name: check.phase for check in checks.CHECKS}
    accepted = [f for f in findings if f.severity == "refuse" and not f.stops(rollout.accepted)]
    for finding in accepted:
        rollout.ledger.record(Event(phases.get(finding.check, Phase.PRE_DEPLOY.value), f"accepted: {finding.accept}", ACCEPTED, detail={
            "by": rollout.person.actor, "check": finding.check, "subject": finding.subject, "found": finding.what}))
    warnings = [f for f in findings if f not in accepted]
    if warnings:
        told = {f"{number}. {f.check}": f"{f.subject}: {f.what}" for number, f in enumerate(warnings, 1)}
        rollout.ledger.record(Event(Phase.PRE_DEPLOY.value, "findings", TOLD, detail=told))
