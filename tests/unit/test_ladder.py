"""Where a table stands on the ladder, and what is said when it stands nowhere."""

from __future__ import annotations

import json

import pytest

from steps.catalogue import Shape
from steps.errors import Drifted
from steps.ladder import Ladder, Stair, Way

BASE = Shape({"id": "int NOT NULL", "status": "varchar(32) NULL"}, {"PRIMARY": "PRIMARY KEY (`id`)"})
ONE = Shape({**BASE.columns, "state": "varchar(32) NULL"}, BASE.indexes)
TWO = Shape(ONE.columns, {**BASE.indexes, "by_state": "INDEX (`state`)"})
LADDER = Ladder(BASE, (
    Stair("010_state", Way("ALTER TABLE `t` ADD state", "INSTANT"), Way("ALTER TABLE `t` DROP state", "INSTANT"), ONE,
          "pre_deploy", after_first_pass=False),
    Stair("020_index", Way("ALTER TABLE `t` ADD INDEX", "INPLACE"), Way("ALTER TABLE `t` DROP INDEX", "INPLACE", fk_checks_off=True,
          before=("ALTER TABLE `t` ADD INDEX x",)), TWO,
          "pre_deploy", after_first_pass=True)))


def with_column(shape: Shape, name: str, definition: str | None) -> Shape:
    columns = {key: value for key, value in shape.columns.items() if key != name}
    return Shape(columns | ({name: definition} if definition else {}), shape.indexes, shape.foreign_keys, shape.checks)


@pytest.mark.parametrize(("live", "position"), [(BASE, 0), (ONE, 1), (TWO, 2)])
def test_each_stair_is_recognised(live: Shape, position: int) -> None:
    assert LADDER.position(live, "t") == position


def test_objects_that_no_stair_touches_are_reported_not_judged() -> None:
    live = Shape({"id": "bigint NOT NULL", "status": "varchar(32) NULL", "state": "varchar(32) NULL", "extra": "int NULL"},
                 {**BASE.indexes, "mine": "INDEX (`extra`)"}, checks={"c": "CHECK (1)"})

    assert LADDER.position(live, "t") == 1
    assert LADDER.strangers(live, 1) == ["columns: extra", "indexes: mine", "checks: c"]


@pytest.mark.parametrize(("live", "nearest", "difference"), [
    (with_column(TWO, "state", "varchar(31) NULL"), "020_index", "column state: has varchar(31) NULL, expected varchar(32) NULL"),
    (with_column(ONE, "state", "varchar(32) NOT NULL"), "010_state", "column state: has varchar(32) NOT NULL, expected varchar(32) NULL"),
    (Shape(BASE.columns, TWO.indexes), "020_index", "column state: has nothing, expected varchar(32) NULL"),
    (Shape(dict(reversed(ONE.columns.items())), ONE.indexes), "010_state", "column order: state stands where id is expected"),
])
def test_a_table_on_no_stair_is_refused_with_the_nearest_one(live: Shape, nearest: str, difference: str) -> None:
    with pytest.raises(Drifted) as raised:
        LADDER.position(live, "t")

    assert raised.value.exit_code == 3
    assert raised.value.reason == f"stands on no stair of the plan; nearest is {nearest}, but {difference}"


def test_a_ladder_survives_json() -> None:
    assert Ladder.from_json(json.loads(json.dumps(LADDER.to_json(), sort_keys=True))) == LADDER
    assert list(Ladder.from_json(json.loads(json.dumps(LADDER.to_json(), sort_keys=True))).stairs[0].shape.columns) == list(ONE.columns)


def test_only_what_the_stairs_change_is_judged() -> None:
    assert LADDER.touched() == {"columns": {"state"}, "indexes": {"by_state"}, "foreign_keys": set(), "checks": set()}
    assert (LADDER.top, LADDER.expanded, LADDER.before_first_pass) == (2, 2, 1)


@pytest.mark.parametrize(("algorithm", "clause"), [
    ("INSTANT", ", ALGORITHM=INSTANT"), ("INPLACE", ", ALGORITHM=INPLACE, LOCK=NONE"), ("COPY", ", ALGORITHM=COPY")])
def test_lock_none_goes_with_inplace_alone(algorithm: str, clause: str) -> None:
    assert Way("ALTER TABLE `t` x", algorithm).statement == f"ALTER TABLE `t` x{clause}"


def test_all_that_a_way_sends_is_told_in_its_order() -> None:
    """The audit trail holds it, and a migration for the application's repository is made of that."""
    way = Way("ALTER TABLE `t` DROP INDEX `b`", "INPLACE", before=("ALTER TABLE `t` ADD INDEX `a` (`x`)",))

    assert way.sent == "ALTER TABLE `t` ADD INDEX `a` (`x`);\nALTER TABLE `t` DROP INDEX `b`, ALGORITHM=INPLACE, LOCK=NONE"
