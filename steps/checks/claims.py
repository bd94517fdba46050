"""A value of the new side that may stand beside the old side's default: both generations can claim such a row (F18)."""

from __future__ import annotations

from steps import catalogue, sync
from steps.checks.finding import Finding, Look
from steps.plan import ValueMap

NAME = "claims"


def run(look: Look) -> list[Finding]:
    return [finding for pair in look.plan.sync
            if catalogue.has_column(look.session, look.schema, look.table, pair.old)
        for finding in _pair(look, pair)]


def _pair(look: Look, pair: ValueMap) -> list[Finding]:
    """The map stands as the plan writes it; this only says what it means and offers another."""
    free = sync.column_facts(look.session, look.schema, look.table, pair.old).default
    found = []
    for value, beside in pair.keep_old.items():
        taken = [old for old in beside if old != free]
        if free not in beside:
            continue
        offer = (f'remove keep_old.{value} and set to_old.{value} = "{taken[0]}"' if taken
                 else f"map {value} in to_old to a value that the old generation does not take for free")
        found.append(Finding(
            NAME, "warn", f"pair {pair.old} and {pair.new}",
            f"when V1 claims a row ({pair.new} {free_new(pair, free)} → {value}), {pair.old} stays {free}, as "
            f"keep_old allows; a V0 worker that looks for {pair.old} = '{free}' then claims it too, and the job runs "
            "twice",
            f"let no V0 worker run beside V1, or, before the first run, {offer}"))
    return found


def free_new(pair: ValueMap, free: str | None) -> str:
    """What the old side's default is called on the new side."""
    return pair.to_new.get(free or "", free or "")
