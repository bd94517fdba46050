"""The named points of a command, and a choice of them that is spread over their kinds and is the same every time."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

HOLD = "[hold]"
NAMED_OBJECT = re.compile(r"(?<=step ).*|(?<=recorded: ).*|(?<=after [A-Z]{6} ).*|(?<=after [A-Z]{5} ).*|(?<=after [A-Z]{4} ).*")


@dataclass(frozen=True)
class Point:
    """
    Where a fault strikes: number *number* of *series* in *command*, which is the *nth* of this *name*, or just number *nth* without one.

    `owned`: the tool holds its table there. `waits_for_backup`: its next statement that a backup holds up (see
    :meth:`tests.faults.scene.Scene.writes_wait`) comes soon; inside a hold that is DDL, elsewhere any write.
    """

    command: str
    series: str
    number: int
    name: str
    owned: bool
    nth: int = 1
    waits_for_backup: bool = True

    @property
    def in_hold(self) -> bool:
        return self.name.startswith(HOLD)

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
    return [Point(command, series, at + 1, name, series == "live" and taken <= at <= given, names[:at + 1].count(name),
                  _waits_for_backup(names[at:], given=at > given)) for at, name in enumerate(names)]


def _waits_for_backup(names: list[str], *, given: bool) -> bool:
    """At the first of *names*: what comes next in its hold, if it is in one; *given*: the owner's row is gone, the last of all writes."""
    if not names[0].startswith(HOLD):
        return not given
    if names[0].startswith(f"{HOLD} before "):
        return "canary" not in names[0]
    following = next((name for name in names[1:] if name.startswith(f"{HOLD} before ") or not name.startswith(HOLD)), "")
    return following.startswith(HOLD) and "canary" not in following


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
