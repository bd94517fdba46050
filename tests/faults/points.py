"""The named points of a command, and a choice of them that is spread over their kinds and is the same every time."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

NAMED_OBJECT = re.compile(r"(?<=step ).*|(?<=recorded: ).*|(?<=after [A-Z]{6} ).*|(?<=after [A-Z]{5} ).*|(?<=after [A-Z]{4} ).*")


@dataclass(frozen=True)
class Point:
    """Where a fault strikes: number *number* of *series* in *command*. `owned`: the tool holds its table there."""

    command: str
    series: str
    number: int
    name: str
    owned: bool

    @property
    def in_hold(self) -> bool:
        return self.name.startswith("[hold]")

    @property
    def key(self) -> str:
        return f"{self.command}/{self.series}:{self.number}"

    @property
    def sort(self) -> str:
        """The name without the object it speaks of: points of one sort differ in nothing but that."""
        return f"{self.series} {NAMED_OBJECT.sub('', self.name)}"


def points(command: str, series: str, names: list[str]) -> list[Point]:
    """The points of *series* by *names*, in order. On the clone nothing is owned yet, or everything is and nothing else happens."""
    taken = next((at for at, name in enumerate(names) if name.startswith("after take")), len(names))
    given = next((at for at, name in enumerate(names) if name.startswith("before release")), len(names))
    return [Point(command, series, at + 1, name, series == "live" and taken <= at <= given) for at, name in enumerate(names)]


def spread(found: list[Point], count: int, turn: int, fits: Callable[[Point], bool] = lambda _: True) -> list[Point]:
    """
    At most *count* of those that fit: one of each sort after the other until there are enough. *turn* moves the choice within a sort
    and the sort to begin with, so that kinds of faults meet different points.
    """
    sorts: dict[str, list[Point]] = {}
    for point in filter(fits, found):
        sorts.setdefault(point.sort, []).append(point)
    rows = [row[turn % len(row):] + row[:turn % len(row)] for row in sorts.values()]
    start = turn * count % len(rows) if rows else 0
    rows = rows[start:] + rows[:start]
    chosen: list[Point] = []
    while rows and len(chosen) < count:
        chosen += [row.pop(0) for row in rows]
        rows = [row for row in rows if row]
    return chosen[:count]
