"""How moves are packed into holds, and what they are thought to cost."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from steps import ddl, estimates
from steps.catalogue import Shape
from steps.ddl import Group, Move
from steps.ladder import Ladder, Stair, Way

INSTANT, INPLACE, COPY = (Way("ALTER TABLE `t` ADD COLUMN `a` INT", "INSTANT"), Way("ALTER TABLE `t` ADD INDEX `a` (`a`)", "INPLACE"),
                          Way("ALTER TABLE `t` MODIFY COLUMN `a` INT", "COPY"))
REBUILD = Way("ALTER TABLE `t` MODIFY COLUMN `a` INT NOT NULL", "INPLACE", rebuilds=True)
FOREIGN_KEY = Way("ALTER TABLE `t` ADD FOREIGN KEY", "INPLACE", fk_checks_off=True)


def move(name: str, way: Way, estimate_ms: float) -> Move:
    return Move(Stair(name, way, way, Shape(), "pre_deploy", after_first_pass=False), way, 1, estimate_ms)


def rollout(max_stall_ms: int = 1000, large_rows: int = 100_000) -> Any:
    return SimpleNamespace(plan=SimpleNamespace(plan=SimpleNamespace(
        max_stall_ms=max_stall_ms, large_rows=large_rows, max_blocked_s=3600)))


def packed(found: list[Move], rows: int = 1000, *, with_sync: bool = False, **limits: int) -> list[str]:
    return [group.name for group in ddl.grouped(found, rollout(**limits), rows, with_sync=with_sync)]


def test_what_fits_goes_into_one_hold_with_the_triggers_last() -> None:
    assert packed([move("a", INSTANT, 15), move("b", COPY, 60), move("c", INPLACE, 30)], with_sync=True) == [
        "one hold: a, b, c, sync triggers"]


def test_a_hold_never_costs_more_than_its_share_of_the_stall() -> None:
    assert packed([move("a", INSTANT, 400), move("b", INSTANT, 150), move("c", INSTANT, 100)]) == ["one hold: a, b", "one hold: c"]


def test_triggers_get_a_hold_of_their_own_when_the_last_one_is_full() -> None:
    assert packed([move("a", INSTANT, 590)], with_sync=True) == ["one hold: a", "one hold: sync triggers"]
    assert packed([], with_sync=True) == ["one hold: sync triggers"]
    assert packed([]) == []


def test_what_does_not_fit_goes_alone_outside_and_order_is_kept() -> None:
    found = [move("a", INSTANT, 15), move("b", COPY, 601), move("c", INSTANT, 15)]

    assert packed(found, with_sync=True) == ["one hold: a", "alone: b", "one hold: c, sync triggers"]


@pytest.mark.parametrize(("way", "name"), [
    (INPLACE, "alone: a"), (REBUILD, "alone: a"), (COPY, "alone: a"), (INSTANT, "one hold: a"), (FOREIGN_KEY, "one hold: a")])
def test_on_a_large_table_what_reads_rows_goes_alone_whatever_its_estimate(way: Way, name: str) -> None:
    assert packed([move("a", way, 1)], rows=100_000) == [name]
    assert packed([move("a", way, 1)], rows=99_999) == ["one hold: a"]


def test_moves_lead_from_where_the_table_stands_up_or_down() -> None:
    stairs = tuple(Stair(name, Way(f"{name} up", "INSTANT"), Way(f"{name} down", "INSTANT"), Shape(), "pre_deploy", after_first_pass=False)
                   for name in "abc")
    ladder = Ladder(Shape(), stairs)

    assert [(m.way.sql, m.to) for m in ddl.moves(ladder, 1, 3, 0)] == [("b up", 2), ("c up", 3)]
    assert [(m.way.sql, m.to) for m in ddl.moves(ladder, 3, 0, 0)] == [("c down", 2), ("b down", 1), ("a down", 0)]
    assert ddl.moves(ladder, 2, 2, 0) == []


def test_an_estimate_grows_with_rows_and_indexes_but_not_for_metadata() -> None:
    two = Way("ALTER TABLE `t` ADD INDEX a (a), ADD INDEX b (b)", "INPLACE")

    assert estimates.estimate_ms(INSTANT, 10**6) == estimates.estimate_ms(INSTANT, 0)
    assert estimates.estimate_ms(two, 10**6) - estimates.estimate_ms(two, 0) == pytest.approx(
        2 * (estimates.estimate_ms(INPLACE, 10**6) - estimates.estimate_ms(INPLACE, 0)))
    assert estimates.estimate_ms(COPY, 10**6) >= 16_800  # measured (design section 8)
    assert estimates.estimate_ms(FOREIGN_KEY, 10**6) < estimates.estimate_ms(INPLACE, 10**6)


def test_a_group_says_what_is_in_it() -> None:
    assert Group((move("a", COPY, 1),), in_hold=False).name == "alone: a"


@pytest.mark.parametrize(("way", "estimate_ms", "expected"), [
    (COPY, 700, "hold"), (COPY, 1000, "hold"), (COPY, 1001, "alone"), (INPLACE, 700, "alone")])
def test_a_copy_that_fits_the_stall_gets_a_hold_of_its_own(way: Way, estimate_ms: float, expected: str,
                                                           monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside a hold those who read the table and wait to write it die at the copy's end (F24)."""
    called: list[str] = []
    monkeypatch.setattr(ddl, "_in_one_hold", lambda *_: called.append("hold") or True)
    monkeypatch.setattr(ddl, "_alone", lambda *_: called.append("alone"))
    here = rollout()
    here.record = lambda _event: None

    ddl.carry_out(here, Group((move("a", way, estimate_ms),), in_hold=False), Ladder(Shape(), ()), "forward")

    assert called == [expected]
