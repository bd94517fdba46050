"""How long a statement should take on a table of so many rows, from the measured figures of design section 8, rounded up."""

from __future__ import annotations

from steps.ladder import Way

COST_MS = {"INSTANT": (15.0, 0.0), "INPLACE": (20.0, 0.006), "COPY": (60.0, 0.02)}


def estimate_ms(way: Way, rows: int) -> float:
    """How long the statement should take on *rows* rows; from the measured figures of design section 8, rounded up."""
    fixed, per_row = COST_MS[way.algorithm]
    if way.fk_checks_off:
        return fixed + 0.001 * rows  # metadata only; the look for orphans reads the index
    if way.algorithm != "INPLACE":
        return fixed + per_row * rows
    return fixed + per_row * rows * built_indexes(way) + (COST_MS["COPY"][1] * rows if way.rebuilds else 0)


def works_through(way: Way) -> bool:
    """Whether the statement reads or writes every row, so that on a large table it stays outside any hold."""
    return way.algorithm == "COPY" or bool(way.rebuilds) or built_indexes(way) > 0


def built_indexes(way: Way) -> int:
    """How many indexes the statement builds; one that builds none and rebuilds nothing only writes metadata."""
    words = " ".join(way.sql.upper().split())
    return sum(words.count(f"ADD {kind}") for kind in ("INDEX", "UNIQUE", "FULLTEXT", "KEY"))
