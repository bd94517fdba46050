"""
A few points of the fault matrix in every run of the suite: kinds that need no machinery of their own once each, by turns forward and back.

`make faults` tries all kinds at hundreds of points (:mod:`tests.faults.matrix`). Silent networks, full disks, failovers and stepped clocks
have tests of their own beside this in every run (`tests/servers/`).
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults import world
from tests.faults.judge import judged
from tests.faults.kinds import KINDS, Kind, surrounded
from tests.faults.points import Point, spread
from tests.faults.world import World

HERE = ("tool killed in a statement", "tool killed, its statement goes on", "server killed and back", "server killed in a statement",
        "connection killed: worker", "connection killed: ledger", "connection killed: lock", "connections killed: all",
        "answer lost: worker", "rows locked", "table held for a while", "everything read-locked", "deadlock", "super_read_only",
        "two operators: run", "lock lost and taken over", "owner dead without a word", "Prefect's API never there",
        "asked to stop: SIGTERM", "asked to stop without end")
QUICK = ("tool killed in a statement", "connection killed: lock", "deadlock", "two operators: run")
"""Of these in `make test`; all in `make test-stories`."""
IN_THE_COMMAND = ("asked to stop: SIGINT", "tool killed", "lock lost and taken over", "connections killed: all")
FORWARD, BACK = ("run", "cleanup"), ("back-cleanup", "back-drop")


@pytest.fixture(scope="module")
def here() -> Iterator[World]:
    with world.opened() as standing:
        yield standing


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.story) for name in HERE])
def test_after_a_fault_the_same_command_ends_as_if_nothing_had_happened(here: World, name: str) -> None:
    kind, turn = KINDS[name], HERE.index(name)
    ways = (FORWARD, BACK)[turn % 2]
    fitting = [found for command in ways if (found := spread(here.known(command)[0], 1, turn, kind.fits))]
    [point] = fitting[turn // 2 % len(fitting)]

    _ends_as_if_nothing_had_happened(here, kind, point)


@pytest.mark.story
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", IN_THE_COMMAND)
def test_and_so_it_does_when_the_fault_strikes_while_a_program_of_the_plan_is_at_work(here: World, name: str) -> None:
    turn = IN_THE_COMMAND.index(name)
    commands = ("run", "cleanup", "back", "back-cleanup")
    point = next(point for point in here.known(commands[turn % len(commands)])[0] if point.name == "in the command")

    _ends_as_if_nothing_had_happened(here, KINDS[name], point)


def _ends_as_if_nothing_had_happened(here: World, kind: Kind, point: Point) -> None:
    with surrounded(here, kind) as seen:
        verdict = judged(seen, kind, point)

    assert verdict.hit, f"no fault struck: {verdict}"
    assert (verdict.wrong, verdict.equal, verdict.lost, verdict.rows_wrong, verdict.codes[-1]) == ([], True, 0, 0, 0), verdict
