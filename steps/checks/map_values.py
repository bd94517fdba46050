"""Whether each column of a pair has room for every value that the plan's maps may write into it (case C49)."""

from __future__ import annotations

from collections.abc import Iterable

from steps.checks import changes
from steps.checks.column_type import Column
from steps.checks.finding import Finding, Look

NAME = "map-values"


def run(look: Look) -> list[Finding]:
    """Compares the plan with the columns as they will be; looks at no rows."""
    if not look.shape.columns:
        return []
    final = changes.final(look)
    found = []
    for pair in look.plan.sync:
        for column, values, maps in ((pair.new, pair.to_new.values(), "to_new"), (pair.old, pair.to_old.values(), "to_old")):
            wrong = _without_room(final.get(column.lower()), values)
            if wrong:
                found.append(Finding(
                    NAME, "refuse", f"column {look.table}.{column}",
                    f"is {final[column.lower()].type}, which has no room for {', '.join(wrong)} of {maps}: the triggers and the first pass "
                    "would fail on these values (1406 or 1265)",
                    "make the column larger, or map to other values"))
    return found


def _without_room(column: Column | None, values: Iterable[str]) -> list[str]:
    if column is None:
        return []
    if column.kind == "enum":
        members = {member.removeprefix("'") for member in column.arguments}
        return [repr(value) for value in dict.fromkeys(values) if value not in members]
    if column.characters is None or column.kind not in ("char", "varchar"):
        return []
    return [repr(value) for value in dict.fromkeys(values) if len(value) > column.characters]
