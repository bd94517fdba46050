"""The two defaults of every pair: constant and agreeing, so that a trigger can tell what a client supplied (case C50)."""

from __future__ import annotations

from collections.abc import Iterator

from steps import catalogue, sync
from steps.checks.finding import Finding, Look
from steps.errors import Refused
from steps.plan import Plan

NAME = "defaults"


def run(look: Look) -> list[Finding]:
    """Pairs whose new column does not exist yet are judged by their old side; the rehearsal judges the rest on the clone."""
    return [finding for old, new, plan in _pairs(look.plan) for finding in _pair(look, old, new, plan)]


def _pairs(plan: Plan) -> Iterator[tuple[str, str, Plan]]:
    """Every pair with a plan that has only that pair, so that one bad pair does not hide the next."""
    nothing = plan.pre_deploy.model_copy(update={"step": ()})
    for pair in plan.sync:
        yield pair.old, pair.new, plan.model_copy(update={"sync": (pair,), "pre_deploy": nothing})
    for step in plan.pre_deploy.step:
        if step.rename:
            alone = plan.pre_deploy.model_copy(update={"step": (step,)})
            yield step.rename.old, step.rename.new, plan.model_copy(update={"sync": (), "pre_deploy": alone})


def _pair(look: Look, old: str, new: str, plan: Plan) -> list[Finding]:
    there = [name for name in (old, new) if catalogue.has_column(look.session, look.schema, look.table, name)]
    if old not in there:
        return []  # table-shape says so
    if new in there:
        try:
            sync.pairs(look.session, plan, look.schema)
        except Refused as refused:
            return [Finding(NAME, "refuse", refused.subject, refused.reason, refused.remedy)]
    elif sync.column_facts(look.session, look.schema, look.table, old).default_is_expression:
        return [Finding(
            NAME, "refuse", f"column {look.table}.{old}",
            "has a default that is not constant, so an INSERT trigger cannot tell whether a client supplied it",
            "leave the column out of [[sync]] and renames")]
    return []
