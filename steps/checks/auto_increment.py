"""How many values an AUTO_INCREMENT column has left: the canary's rows take some, though they are rolled back."""

from __future__ import annotations

from steps.checks import changes
from steps.checks.column_type import INTEGERS
from steps.checks.finding import Finding, Look
from steps.mysql import VALUE

NAME = "auto-increment"
ENOUGH = 1000


def run(look: Look) -> list[Finding]:
    """Reads the catalogue only."""
    column = next(((name, c) for name, c in changes.live_columns(look).items() if "AUTO_INCREMENT" in c.said), None)
    if column is None or column[1].kind not in INTEGERS:
        return []
    name, kind = column
    after = int(look.session.value(f"SELECT AUTO_INCREMENT FROM information_schema.TABLES WHERE TABLE_SCHEMA = {VALUE} "
                                   f"AND TABLE_NAME = {VALUE}", look.schema, look.table) or 1)
    left = 2 ** (8 * INTEGERS[kind.kind] - (0 if kind.unsigned else 1)) - after
    if left >= ENOUGH:
        return []
    return [Finding(
        NAME, "warn", f"column {look.table}.{name}",
        f"has {max(0, left)} values left of its {kind.type}: the application's next INSERTs fail (1062 or 1467), and the canary's would "
        "take some of them",
        "make the column larger first")]
