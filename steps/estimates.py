"""How long a statement should take on a table of so many rows, from the measured figures of design section 8, rounded up."""

from __future__ import annotations

from steps.ladder import Way

COST_MS = {"INSTANT": (15.0, 0.0), "INPLACE": (20.0, 0.006), "COPY": (60.0, 0.02)}


def estimate_ms(way: Way, rows: int) -> float:
    """How long the statement should take on *rows* rows; from the measured figures of design section 8, rounded up."""
    fixed, per_row = COST_MS[way.algorithm]
    if way.fk_checks_off:
        return fixed + 0.001 * rows  # metadata only; the look for orphans reads the index
    return fixed + per_row * rows * (built_indexes(way) if way.algorithm == "INPLACE" else 1)


def built_indexes(way: Way) -> int:
    """How many indexes the statement builds; an INPLACE statement that builds none only writes metadata."""
    words = " ".join(way.sql.upper().split())
    return sum(words.count(f"ADD {kind}") for kind in ("INDEX", "UNIQUE", "FULLTEXT", "KEY"))
