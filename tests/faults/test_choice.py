"""Which points are tried, and what the table tells of them."""

from __future__ import annotations

from tests.faults import table
from tests.faults.boundaries import Boundaries
from tests.faults.cases import chosen, drawn
from tests.faults.judge import Verdict
from tests.faults.kinds import KINDS
from tests.faults.points import Point, points, spread

NAMES = ["before take", "after take", "before step a", "before a chunk", "before a chunk's COMMIT", "before step b", "before the hold",
         "[hold] the tables are held", "[hold] done, not recorded: 010_widen", "[hold] done, not recorded: 020_add", "before step c",
         "before first pass", "before the new side decides", "before release", "after release"]


def named(found: list[Point]) -> list[str]:
    return [point.name for point in found]


def test_the_table_is_owned_from_taking_it_to_giving_it_back() -> None:
    found = points("run", "live", NAMES)

    assert named([point for point in found if not point.owned]) == ["before take", "after release"]
    assert [point.number for point in found] == list(range(1, len(NAMES) + 1))
    assert not any(point.owned for point in points("run", "clone", NAMES))


def test_a_statement_is_only_met_at_work_where_one_comes_that_a_backup_holds_up() -> None:
    names = ["before take", "[hold] before 010_widen", "[hold] recorded: 010_widen", "[hold] before 020_add",
             "[hold] done, not recorded: 020_add", "[hold] before canary", "[hold] about to let the tables go", "before a chunk",
             "before release", "after DELETE FROM `_rollout_owner`", "after release"]

    found = points("run", "live", names)

    assert named([point for point in found if point.waits_for_backup]) == [*names[:4], *names[7:9]]
    assert all(KINDS[name].fits(found[0]) and not KINDS[name].fits(found[-1])
               for name in ("tool killed in a statement", "tool killed, its statement goes on", "connection killed in a statement",
                            "server killed in a statement", "everything read-locked"))


def test_a_point_is_found_by_its_name_and_its_number_among_those_of_that_name() -> None:
    found, reached = points("run", "live", ["before the hold", "before a chunk", "before a chunk"]), list[str]()
    passed = Boundaries("live", found[2].nth, reached.append, name=found[2].name)

    for name in ("before the hold", "before the hold", "before a chunk", "after a chunk", "before a chunk"):  # the hold gave way once
        passed(name)

    assert (found[2].nth, reached, len(passed.passed["live"])) == (2, ["before a chunk"], 5)


def test_points_of_every_sort_are_chosen_before_a_second_of_any() -> None:
    steps = [point for point in points("run", "live", NAMES) if point.name.startswith(("before step", "[hold] done"))]

    assert named(spread(steps, 2, 0)) == ["before step a", "[hold] done, not recorded: 010_widen"]
    assert named(spread(steps, 2, 1)) == ["before step b", "[hold] done, not recorded: 020_add"]
    assert sorted(named(spread(steps, 99, 1))) == sorted(named(steps))
    assert named(spread(steps, 9, 0, lambda point: point.in_hold)) == NAMES[8:10]
    assert spread([], 3, 2) == []


def test_what_is_drawn_is_the_same_for_the_same_seed_and_never_what_was_chosen() -> None:
    known = {command: points(command, "live", NAMES * 3) for command in ("run", "back")}
    first, other = list(drawn(known, 7, 50)), list(drawn(known, 8, 50))

    assert first == list(drawn(known, 7, 50)) != other
    keys = [case.key for case in [*chosen(known), *first]]
    assert len(keys) == len(set(keys))
    assert {case.kind for case in chosen(known)} == {*KINDS}


def test_every_kind_has_a_line_and_what_struck_nothing_is_not_counted_as_tried() -> None:
    well = Verdict("a/run/live:1", "a", tries=2, noticed_s=1.25, acknowledged=2, equal=True)
    missed = Verdict("a/run/live:2", "a", hit=False, acknowledged=1, equal=True)
    wrong = Verdict("b/run/live:1", "b", equal=True, lost=1, rows_wrong=2, wrong=["a client failed"])

    found = table.lines([verdict.to_json() for verdict in (well, missed, wrong)])

    assert found == [("a", "1", "1", "3", "0", "0", "2", "1.2 s"), ("b", "1", "0", "0", "1", "2", "0", "0.0 s"),
                     ("all", "2", "1", "3", "1", "2", "2", "1.2 s")]
