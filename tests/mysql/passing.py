"""A pass over the table `job` without a rollout around it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from steps import sync
from steps.keyset import Keyset
from steps.ledger import Ledger
from steps.mysql import Session
from steps.plan import Plan
from steps.walk import Walk

MAPPED = "(status, state) IN (('pending', 'pending'), ('processing', 'running'), ('completed', 'succeeded'), ('failed', 'failed'))"


def walk(session: Session, plan: Plan, check: Callable[..., None] = lambda *_: None, **settings: Any) -> Walk:
    """The way through `job`, with some of the plan's settings for passes replaced."""
    schema = str(session.schema)
    return Walk(session, Keyset.of(session, schema, "job"), sync.pairs(session, plan, schema),
                plan.backfill.model_copy(update=settings), check)


def ledger_of(session: Session, plan: Plan) -> Ledger:
    """The plan's ledger, made."""
    found = Ledger(session, str(session.schema), "job", plan.id)
    found.create()
    return found
