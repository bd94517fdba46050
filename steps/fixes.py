"""
Who decides in a pass (design section 2): each fix says which rows of a pair it is for, which column it sets, and to what.

Conditions of one pass exclude each other, and every fix leaves its pair agreeing. NULL and unmapped values are nobody's to fix.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from steps.agreement import Pair
from steps.mysql import byte_literal, literal, quote

Conflict = Literal["refuse", "new", "old"]


@dataclass(frozen=True)
class Fix:
    """Set *column* to *value* where *condition* holds; all three are SQL over one row of the table."""

    column: str
    condition: str
    value: str


def old_decides(pairs: tuple[Pair, ...]) -> tuple[Fix, ...]:
    """
    Only V0 is alive: whatever the old side says, the new side follows, everywhere (F14, F17).

    A finer new word that agrees still (`cancelled` beside `failed`) stays, unless another pair of its row has moved apart: then V0 has
    written the row since, and the word is of before. Value maps come first, so that they are set before the pair that shows it.
    """
    return tuple(Fix(pair.new, f"{_stale(pair, pairs)} AND {pair.new_is_known()}", pair.to_new()) for pair in pairs)


def _stale(pair: Pair, pairs: tuple[Pair, ...]) -> str:
    written_since = " OR ".join(f"NOT {other.agrees()}" for other in pairs if other.value_map is None)
    if pair.value_map is None or not written_since:
        return f"NOT {pair.agrees()}"
    finer = f"NOT ({pair.bytes_of(quote(pair.new))} <=> {pair.bytes_of(pair.to_new())})"
    return f"(NOT {pair.agrees()} OR ({finer} AND ({written_since})))"


def new_decides(pairs: tuple[Pair, ...]) -> tuple[Fix, ...]:
    """No V0 is alive, on the way back from cleanup: the old side follows, everywhere (F13)."""
    return tuple(Fix(pair.old, f"NOT {pair.agrees()} AND {pair.old_is_known()}", pair.to_old()) for pair in pairs)


def untouched_new_side(pairs: tuple[Pair, ...]) -> tuple[Fix, ...]:
    """Both are alive without sync: the old side decides only where nobody has written the new one yet (F4, backfill)."""
    return tuple(Fix(pair.new, f"NOT {pair.agrees()} AND {pair.new_is_known()} AND {is_default(pair, pair.new)}", pair.to_new())
                 for pair in pairs)


def reconcile(pairs: tuple[Pair, ...], conflict: Conflict) -> tuple[Fix, ...]:
    """Triggers have just come: the side that moved wins; where both moved, *conflict* says who (F4)."""
    found = list(untouched_new_side(pairs))
    for pair in pairs:
        found.append(Fix(pair.old, f"NOT {pair.agrees()} AND {pair.old_is_known()} AND {is_default(pair, pair.old)} "
                         f"AND NOT {is_default(pair, pair.new)}", pair.to_old()))
        both = f"NOT {pair.agrees()} AND NOT {is_default(pair, pair.old)} AND NOT {is_default(pair, pair.new)}"
        if conflict == "new":
            found.append(Fix(pair.old, f"{both} AND {pair.old_is_known()}", pair.to_old()))
        if conflict == "old":
            found.append(Fix(pair.new, f"{both} AND {pair.new_is_known()}", pair.to_new()))
    return tuple(found)


def is_default(pair: Pair, column: str) -> str:
    """Whether *column* still holds its default, so that nobody need have written it; never NULL."""
    default = pair.old_default if column == pair.old else pair.new_default
    if default is None:
        return f"({quote(column)} IS NULL)"
    constant = byte_literal(default) if pair.textual else literal(default)
    return f"({pair.bytes_of(quote(column))} <=> {constant})"


def any_of(fixes: tuple[Fix, ...]) -> str:
    """A row that at least one fix is for."""
    return "(" + " OR ".join(f"({fix.condition})" for fix in fixes) + ")"


def assignments(fixes: tuple[Fix, ...], keep: list[str]) -> str:
    """
    The SET clause: only what a fix is for changes, and ON UPDATE columns keep their value (case C63).

    MySQL assigns from left to right; a pair fixed by one assignment agrees in the next, so at most one fix acts on it.
    """
    sets = [f"{quote(fix.column)} = CASE WHEN {fix.condition} THEN {fix.value} ELSE {quote(fix.column)} END" for fix in fixes]
    return ", ".join(sets + [f"{quote(column)} = {quote(column)}" for column in keep])
