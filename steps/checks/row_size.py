"""Whether a row still fits its 65,535 declared bytes with what the plan adds (error 1118; case C15)."""

from __future__ import annotations

from steps.checks import changes
from steps.checks.column_type import Column
from steps.checks.finding import Finding, Look

NAME = "row-size"
MOST_BYTES = 65_535
NAMED = 5


def run(look: Look) -> list[Finding]:
    """Adds up declarations. What fits the page of a row (8,126 bytes) the server itself says in the rehearsal."""
    live, final = changes.live_columns(look), changes.final(look)
    needed = _bytes(final)
    if not live or needed <= MOST_BYTES:
        return []
    coming = sorted(((column.stored_bytes, name) for name, column in final.items() if name not in live and column.kind == "varchar"),
                    reverse=True)[:NAMED]
    names = {change.to.lower(): change.to for _step, _columns, made in changes.simulated(look) for change in made}
    widest = ", ".join(f"{names.get(name, name)} ({size})" for size, name in coming)
    return [Finding(
        NAME, "refuse", f"table {look.table}",
        f"would declare {needed} bytes a row; MySQL takes {MOST_BYTES} (1118). It has {_bytes(live)} now"
        + (f"; the widest that the plan adds: {widest}" if widest else ""),
        "make the widest of them TEXT, which counts as 10 bytes, or shorter")]


def _bytes(columns: dict[str, Column]) -> int:
    """One bit says of each nullable column whether it is NULL; a generated column counts as any other, stored or not."""
    return sum(column.stored_bytes for column in columns.values()) + (sum(column.nullable for column in columns.values()) + 7) // 8
