"""Which faults are tried where: chosen by name, the same every time, and drawn by lot on top."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from tests.faults.kinds import KINDS
from tests.faults.points import Point, points, spread
from tests.faults.world import World


@dataclass(frozen=True)
class Case:
    """A fault of *kind* at *point*."""

    kind: str
    point: Point

    @property
    def key(self) -> str:
        return f"{self.kind}/{self.point.key}"


def chosen(known: dict[str, list[Point]]) -> Iterator[Case]:
    """Each kind at as many points of each command as it wants, spread over the sorts of points."""
    for turn, kind in enumerate(KINDS.values()):
        for found in known.values():
            for point in spread(found, kind.points, turn, kind.fits):
                yield Case(kind.name, point)


def drawn(known: dict[str, list[Point]], seed: int, count: int) -> Iterator[Case]:
    """*count* more, none of them twice: kind, command and point by lot."""
    lot, had = random.Random(seed), {case.key for case in chosen(known)}
    while count:
        kind = lot.choice(list(KINDS.values()))
        fitting = [point for point in lot.choice(list(known.values())) if kind.fits(point)]
        case = Case(kind.name, lot.choice(fitting)) if fitting else None
        if case and case.key not in had:
            had.add(case.key)
            count -= 1
            yield case


def of_key(world: World, key: str) -> Case:
    """The case that a journal or a failure calls so."""
    kind, command, place = key.split("/")
    series, number = place.split(":")
    if series == "clone" and command != "run":
        names = world.theatre.on_clone
        return Case(kind, points(command, series, names)[int(number) - 1])
    return Case(kind, next(point for point in world.points(command) if (point.series, point.number) == (series, int(number))))
