"""
When a pair agrees: the one definition that triggers, passes, verify and parity watch share (design section 2).

A value map agrees when new = to_new(old), or old = to_old(new), or old is among those `keep_old` allows beside new; two
NULLs agree. A plain rename agrees when both sides are equal by bytes. Comparison is by bytes throughout: under a `_ci`
collation `=` calls 'completed' and 'Completed ' the same (case C46). Unmapped values never agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from steps.mysql import byte_literal, literal, quote
from steps.plan import Plan, ValueMap

MARKS = "|/~^;:#"
TEXTUAL = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set"})


@dataclass(frozen=True)
class Pair:
    """An old and a new column with everything SQL needs to hold one against the other."""

    old: str
    new: str
    value_map: ValueMap | None = field(hash=False)
    data_type: str
    old_default: str | None
    new_default: str | None
    old_nullable: bool
    new_nullable: bool
    is_utf8mb4: bool = False

    @property
    def textual(self) -> bool:
        return self.data_type in TEXTUAL

    @property
    def name(self) -> str:
        return f"{self.old} and {self.new}"

    def bytes_of(self, expression: str) -> str:
        """*expression* so that `=` and `<=>` compare bytes."""
        if not self.textual:
            return expression
        return f"CAST({expression} AS BINARY)" if self.is_utf8mb4 else f"CAST(CONVERT({expression} USING utf8mb4) AS BINARY)"

    def agrees(self, row: str = "") -> str:
        """A boolean expression, never NULL. *row* is a prefix such as `NEW.` or an alias with its dot."""
        old, new = self.bytes_of(f"{row}{quote(self.old)}"), self.bytes_of(f"{row}{quote(self.new)}")
        if self.value_map is None:
            return f"({old} <=> {new})"
        return f"(({old} IS NULL AND {new} IS NULL) OR {self.pairs_in(old, new)})"

    def pairs_in(self, old: str, new: str) -> str:
        """Whether two byte expressions are one of the value map's agreeing pairs; never NULL."""
        agreeing = self.value_map.agreeing if self.value_map else ()
        pairs = ", ".join(f"({byte_literal(o)}, {byte_literal(n)})" for o, n in agreeing)
        return f"IFNULL(({old}, {new}) IN ({pairs}), FALSE)"

    def settled(self, row: str) -> str:
        """
        A small expression, never NULL, that is true only where neither side has to follow: what one side says is what the other is.

        Narrower than :meth:`agrees`: beside a value without counterpart a moved old side still has to be followed. Small,
        because a trigger resolves its expressions anew for each row. What is known is written as bytes: LOCATE compares by the
        collation of the text it searches, in which 'NULL' and 'null' are the same (measured on 9.7.4).
        """
        if self.value_map is None:
            return self.agrees(row)
        said = [pair for pair in self.value_map.agreeing if pair[1] not in self.value_map.keep_old]
        marks = [mark for mark in MARKS if not any(mark in value for pair in said for value in pair)]
        if len(marks) < 2 or not self.textual:  # noqa: PLR2004  # one between the sides, one around them
            return "FALSE"
        around, between = marks[:2]
        known = f"x'{(around + around.join(between.join(pair) for pair in said) + around).encode().hex()}'"
        old, new = self.bytes_of(f"{row}{quote(self.old)}"), self.bytes_of(f"{row}{quote(self.new)}")
        return f"IFNULL(LOCATE(CONCAT('{around}', {old}, '{between}', {new}, '{around}'), {known}), 0) > 0"

    def to_new(self, row: str = "") -> str:
        """The new side's value as the old side has it, or NULL where the map knows none."""
        return self._mapped(f"{row}{quote(self.old)}", self.value_map.to_new if self.value_map else None)

    def to_old(self, row: str = "") -> str:
        """The old side's value as the new side has it, or NULL where there is no counterpart."""
        return self._mapped(f"{row}{quote(self.new)}", self.value_map.to_old if self.value_map else None)

    def new_is_known(self, row: str = "") -> str:
        """True where the old side says what the new side must be."""
        return self._known(f"{row}{quote(self.old)}", self.value_map.to_new if self.value_map else None)

    def old_is_known(self, row: str = "") -> str:
        """True where the new side has a counterpart on the old side."""
        return self._known(f"{row}{quote(self.new)}", self.value_map.to_old if self.value_map else None)

    def _mapped(self, column: str, values: dict[str, str] | None) -> str:
        if values is None:
            return column
        arms = " ".join(f"WHEN {byte_literal(was)} THEN {literal(becomes)}" for was, becomes in values.items())
        return f"CASE {self.bytes_of(column)} {arms} ELSE NULL END"

    def _known(self, column: str, values: Iterable[str] | None) -> str:
        if values is None:
            return "TRUE"
        return f"IFNULL({self.bytes_of(column)} IN ({', '.join(byte_literal(value) for value in values)}), FALSE)"


@dataclass(frozen=True)
class ColumnFacts:
    """What a pair must know of a column: data type, whether NULL is allowed, its default as the catalogue gives it."""

    data_type: str
    nullable: bool
    default: str | None
    default_is_expression: bool
    is_utf8mb4: bool = False


def pairs_of(plan: Plan, facts: Callable[[str], ColumnFacts]) -> tuple[Pair, ...]:
    """All pairs of *plan*, value maps first, in the plan's order."""
    sides: list[tuple[str, str, ValueMap | None]] = [(pair.old, pair.new, pair) for pair in plan.sync]
    sides += [(rename.old, rename.new, None) for rename in plan.dual_renames]
    found = []
    for old, new, value_map in sides:
        old_facts, new_facts = facts(old), facts(new)
        found.append(Pair(old, new, value_map, old_facts.data_type, old_facts.default, new_facts.default,
                          old_facts.nullable, new_facts.nullable,
                          old_facts.is_utf8mb4 and new_facts.is_utf8mb4))
    return tuple(found)


