"""
The staircase as data: every schema step with its way up, its way down and what the catalogue shows after it (design section 2).

Built on a clone by :mod:`steps.rehearsal`, frozen in the ledger at the first start, and held against the live table to know
where it stands.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from steps.catalogue import KINDS, Shape, differences, unjudged
from steps.errors import Drifted
from steps.phase import Phase


@dataclass(frozen=True)
class Way:
    """
    One direction of a step: statements to send first, the statement itself, and how the server takes it.

    `before` puts back an index that a foreign key needs and that the step up took away. `fk_checks_off` is the way in which
    MySQL adds a foreign key in place (case C16). `rebuilds` is whether the table was built anew on the clone; None: not seen.
    """

    sql: str
    algorithm: str
    fk_checks_off: bool = False
    before: tuple[str, ...] = ()
    rebuilds: bool | None = None

    @property
    def statement(self) -> str:
        """*sql* with its explicit algorithm; LOCK=NONE goes with INPLACE, never with INSTANT (case C11)."""
        return self.sql + f", ALGORITHM={self.algorithm}" + (", LOCK=NONE" if self.algorithm == "INPLACE" else "")

    @property
    def sent(self) -> str:
        """Every statement of this way in the order in which it is sent, for the audit trail."""
        return ";\n".join((*self.before, self.statement))


@dataclass(frozen=True)
class Stair:
    """One step of the ladder and the shape of the table that stands on it."""

    name: str
    up: Way
    down: Way
    shape: Shape
    phase: str
    after_first_pass: bool


@dataclass(frozen=True)
class Ladder:
    """All stairs from *baseline* up. Position 0 is the baseline, position n stands on stair n."""

    baseline: Shape
    stairs: tuple[Stair, ...]

    def shape_at(self, position: int) -> Shape:
        return self.stairs[position - 1].shape if position else self.baseline

    @property
    def top(self) -> int:
        return len(self.stairs)

    @property
    def expanded(self) -> int:
        """The position at the end of pre_deploy; what lies above is cleanup's."""
        return sum(stair.phase == Phase.PRE_DEPLOY.value for stair in self.stairs)

    def stair_named(self, name: str) -> int | None:
        """The position on stair *name*, or None where this ladder has none."""
        return next((at for at, stair in enumerate(self.stairs, 1) if stair.name == name), None)

    @property
    def before_first_pass(self) -> int:
        """The position that must be reached before the first pass (F15)."""
        return sum(not stair.after_first_pass and stair.phase == Phase.PRE_DEPLOY.value for stair in self.stairs)

    def touched(self) -> dict[str, set[str]]:
        """Names by kind that any stair changes; only these are judged."""
        found: dict[str, set[str]] = {kind: set() for kind in KINDS}
        for below in range(self.top):
            for kind, names in self.shape_at(below + 1).changed_since(self.shape_at(below)).items():
                found[kind] |= names
        return found

    def position(self, live: Shape, table: str) -> int:
        """
        The highest stair whose effects *live* has.

        Raises:
            Drifted: the table stands on no stair; names what differs from the nearest one.
        """
        judged = self.touched()
        nearest: list[str] | None = None
        at = 0
        for position in range(self.top, -1, -1):
            found = differences(live, self.shape_at(position), judged)
            if not found:
                return position
            if nearest is None or len(found) < len(nearest):
                nearest, at = found, position
        name = self.stairs[at - 1].name if at else "the baseline"
        raise Drifted(f"table {table}", f"stands on no stair of the plan; nearest is {name}, but {'; '.join(nearest or [])}",
                      "undo the foreign change, or correct the plan; nothing was touched")

    def strangers(self, live: Shape, position: int) -> list[str]:
        """Objects that nobody's plan knows: reported, not judged."""
        return unjudged(live, self.shape_at(position), self.touched())

    def to_json(self) -> dict[str, Any]:
        return {"baseline": self.baseline.to_json(),
                "stairs": [{**asdict(stair), "shape": stair.shape.to_json()} for stair in self.stairs]}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Ladder:
        return cls(Shape.from_json(data["baseline"]), tuple(
            Stair(item["name"], _way(item["up"]), _way(item["down"]), Shape.from_json(item["shape"]),
                  item.get("phase", Phase.PRE_DEPLOY.value), item["after_first_pass"])
            for item in data["stairs"]))


def _way(data: dict[str, Any]) -> Way:
    return Way(data["sql"], data["algorithm"], data["fk_checks_off"], tuple(data["before"]), data.get("rebuilds"))
