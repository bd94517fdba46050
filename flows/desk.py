"""Opening a rollout for a request: its plan with overrides, its accept keys, its person; signals stop it at the next safe edge."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from flows.params import Request
from steps import approvals, cancellable, cancellation, checks, end_blockers, failover, plan_loader, reckoning, room
from steps.errors import WrongUsage
from steps.lock_waits import holder_named
from steps.mysql import Session
from steps.passes import Progress
from steps.rollout import Person, Rollout, opened
from steps.target import Target as Database

CONFIRMATIONS = {approvals.UNREADY, "canary", "cleanup", "cleanup-dependents", "cleanup-unseen", "discard-added", "fleet-unseen",
                 "forget-added", failover.ACCEPT, "purge-archive", reckoning.ACCEPT, room.SPACE}
ACCEPT_KEYS = CONFIRMATIONS | {key for check in checks.CHECKS for key in check.accepts}
UNSEEN = {f"could-not-look:{check.name}" for check in checks.CHECKS}
KILL_WITHIN_S = 5


@contextmanager
def desk(request: Request, database: Database, confirm: Callable[[str], bool | str] | None = None,
         told: Callable[[Progress], None] = lambda _: None) -> Iterator[Rollout]:
    """The rollout *request* speaks of, opened for looking. Until it is closed SIGINT and SIGTERM stop it at the next safe edge."""
    plan = plan_loader.load(request.plan, request.settings)
    for key in request.accept:
        if key not in ACCEPT_KEYS | UNSEEN:
            raise WrongUsage(f"--accept {key}", "is no key of any finding or confirmation",
                             f"known: {', '.join(sorted(ACCEPT_KEYS))}, and could-not-look:CHECK with the name of a check")
    _refuse_placeholders(request)
    person = Person(request.by, request.reason, request.deployed_by, confirm)
    accepted = frozenset([*request.accept, *(["blockers", end_blockers.ON_RECORD] if request.end_blockers else [])])
    beside = partial(Session, database, read_timeout_s=KILL_WITHIN_S)
    with cancellation.heeded(lambda: cancellable.end_lasting(database, beside), cancellable.cut_lasting), \
            opened(plan, database, person, accepted) as rollout, holder_named(rollout):
        rollout.told = told
        if request.end_blockers:
            rollout.blocked = end_blockers.ender(rollout)
        yield rollout


def _refuse_placeholders(request: Request) -> None:
    """
    Raises:
        WrongUsage: what the tool prints was pasted as it is: the audit trail shall name people and reasons.
    """
    for option, value, mark in (("--by", request.by, "NAME"), ("--reason", request.reason, "WHY"),
                                ("--deployed-by", request.deployed_by, "NAME")):
        if value == mark:
            raise WrongUsage(f"{option} {mark}", "stands for yours in what the tool prints", "say who it is, or why; nothing was done")
