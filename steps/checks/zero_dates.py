"""Dates such as 0000-00-00 or 2020-00-00, which a copy of the table in strict mode trips over (1292; case C25)."""

from __future__ import annotations

from steps.checks import changes
from steps.checks.finding import BOUNDED, Finding, Look
from steps.mysql import quote

NAME = "zero-dates"
KINDS = {"date", "datetime", "timestamp"}


def run(look: Look) -> list[Finding]:
    """
    One bounded read of the table for all its dates, and only where a step still to come may copy the table.

    Raises:
        StatementFailed: 3024 when the read took longer than a minute.
    """
    live = changes.live_columns(look)
    dates = [name for name in look.shape.columns if live[name.lower()].kind in KINDS]
    steps = _copying(look)
    if not dates or not steps:
        return []
    # A comparison with a zero date is itself an error in strict mode (1525); its parts can be asked for.
    sums = ", ".join(f"SUM(MONTH({quote(name)}) = 0 OR DAYOFMONTH({quote(name)}) = 0)" for name in dates)
    counts = look.session.one(f"SELECT {BOUNDED} {sums} FROM {quote(look.schema)}.{quote(look.table)}")
    return [Finding(
        NAME, "refuse", f"column {look.table}.{name}",
        f"holds {int(count)} date{'' if count == 1 else 's'} with a zero month or day; step {steps[0]} may copy the table, which "
        "fails on them (1292)",
        f"correct them; find them with WHERE MONTH({quote(name)}) = 0 OR DAYOFMONTH({quote(name)}) = 0")
        for name, count in zip(dates, counts, strict=True) if count]


def _copying(look: Look) -> list[str]:
    """Steps still to come with a change that only a copy may be able to make."""
    found = []
    for step, columns, made in changes.simulated(look):
        for change in made:
            before, after = columns.get(change.column.lower()), change.column_type
            done = change.does == "modify" and (before is None or (after is not None and before.definition == after.definition))
            if change.algorithm_class == "copy" and not done and not (look.begun and change.does != "modify"):
                found.append(step)
                break
    return found
