"""One table, its pairs and the way through it: what every pass, chunk and lane is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from steps import fixes
from steps.agreement import Pair
from steps.fixes import Fix
from steps.keyset import Key, Keyset
from steps.mysql import Session
from steps.plan import Backfill


@dataclass(frozen=True)
class Walk:
    """One table, its pairs and the way through it. *check* asserts ownership on the session it is given, else on its own."""

    session: Session
    keyset: Keyset
    pairs: tuple[Pair, ...]
    settings: Backfill
    check: Callable[..., None] = lambda *_: None
    decided_by: tuple[Fix, ...] | None = None

    @property
    def fixes(self) -> tuple[Fix, ...]:
        """What this walk may set; the old side decides everywhere unless said otherwise."""
        return fixes.old_decides(self.pairs) if self.decided_by is None else self.decided_by

    def disagree(self) -> str:
        return "(" + " OR ".join(f"NOT {pair.agrees()}" for pair in self.pairs) + ")"

    def fixable(self) -> str:
        return fixes.any_of(self.fixes)

    def on(self, session: Session) -> Walk:
        """The same walk on a session of a lane's own, which checks ownership there."""
        return replace(self, session=session, check=lambda: self.check(session))

    def count(self, condition: str, values: Key) -> int:
        """How many rows of a range this walk may fix. Takes no lock."""
        return int(self.session.value(f"SELECT COUNT(*) FROM {self.keyset.name} WHERE {condition} AND {self.fixable()}", *values))

    def wanted(self, condition: str, values: Key) -> list[Key]:
        """Keys of the rows of a range that this walk may fix. Takes no lock."""
        return self.session.query(f"SELECT {self.keyset.select} FROM {self.keyset.name} WHERE {condition} AND {self.fixable()}", *values)
