"""Each estimate is told with the sum it rests on, and is the one by which the run decides."""

from __future__ import annotations

from pathlib import Path

import pytest

from steps import estimates, forecast
from steps.ladder import Way
from steps.rehearsal import DOWN, UP
from tests.conftest import App
from tests.mysql.conftest import Opened
from tests.plans import ADD_STATE, Ddl, Renamed, small

INDEXES = Ddl("090_i", "ADD INDEX `i` (`state`), ADD INDEX `j` (`status`)", "DROP INDEX `i`, DROP INDEX `j`", late=True)


@pytest.mark.parametrize(("way", "slowness", "basis"), [
    (Way("ALTER TABLE t ADD c INT", "INSTANT"), 1.0, "15 ms"),
    (Way("ALTER TABLE t ADD c INT", "INSTANT"), 1.3, "15 ms × slowness 1.3"),
    (Way("ALTER TABLE t ADD INDEX (a), ADD UNIQUE (b)", "INPLACE"), 1.3,
     "(20 ms + 0.006 ms × 1,000,000 estimated rows × 2 indexes) × slowness 1.3"),
    (Way("ALTER TABLE t DROP INDEX a", "INPLACE"), 1.0, "20 ms"),
    (Way("ALTER TABLE t MODIFY c INT NOT NULL", "INPLACE", rebuilds=True), 1.0, "20 ms + 0.02 ms × 1,000,000 estimated rows built anew"),
    (Way("ALTER TABLE t MODIFY c INT", "COPY"), 1.0, "60 ms + 0.02 ms × 1,000,000 estimated rows"),
    (Way("ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES b (c)", "INPLACE", fk_checks_off=True), 1.0,
     "20 ms + 0.001 ms × 1,000,000 estimated rows"),
])
def test_the_basis_is_the_sum_that_makes_the_estimate(way: Way, slowness: float, basis: str) -> None:
    told = forecast.of_way(way, 1_000_000, slowness)

    assert told.basis == basis
    assert told.ms == estimates.estimate_ms(way, 1_000_000) * slowness
    sums = basis.partition(" × slowness")[0].strip("()")
    for word in (" ms", " estimated rows", " built anew", " indexes"):
        sums = sums.replace(word, "")
    assert round(eval(sums.replace(",", "").replace("×", "*")) * slowness, 3) == round(told.ms, 3)  # noqa: S307  # our own figures


def test_every_stair_is_told_up_and_down_with_stable_names(job: App, tmp_path: Path, opened_on: Opened) -> None:
    job.run("INSERT INTO job (id) VALUES ('a')")
    rollout = opened_on(small(tmp_path, steps=[ADD_STATE, INDEXES], head="large_rows = 1"))

    told = forecast.steps(rollout)

    assert [(step["step"], step["phase"], step["after_first_pass"]) for step in told] == [
        ("010_add_state", "pre_deploy", False), ("090_i", "pre_deploy", True)]
    for step in told:
        for side in (UP, DOWN):
            assert set(step[side]) == {"algorithm", "foreign_key_checks", "rebuilds", "locks", "in_place_lock", "estimate_ms", "basis",
                                       "clone_ms", "refused", "alone"}
    assert [(step[UP]["alone"], step[DOWN]["alone"]) for step in told] == [(False, False), (True, False)]
    assert "× 2 indexes" in told[1][UP]["basis"]


def test_the_first_pass_is_told_from_the_sample_or_from_the_figure(job: App, tmp_path: Path, opened_on: Opened) -> None:
    few = forecast.of_first_pass(opened_on(small(tmp_path)).rehearsed(), 1000)
    assert few is not None
    assert few.basis.startswith("0.7 ms × 1,000 estimated rows")
    with job.connection.cursor() as cursor:
        cursor.executemany("INSERT INTO job (id, status) VALUES (%s, 'failed')", [(f"{n:03}",) for n in range(50)])
    rehearsed = opened_on(small(tmp_path)).rehearsed()

    told = forecast.of_first_pass(rehearsed, 1000)

    assert told is not None
    assert rehearsed.sample is not None
    assert rehearsed.sample.pass_ms is not None
    assert told.ms == pytest.approx(rehearsed.sample.pass_ms / 50 * 1.25 * 1000)
    assert told.basis.endswith("measured on 50 sampled rows, of which 50 disagreed")


def test_without_pairs_there_is_no_first_pass(job: App, tmp_path: Path, opened_on: Opened) -> None:
    rollout = opened_on(small(tmp_path, steps=[ADD_STATE], tail=""))
    assert forecast.of_first_pass(rollout.rehearsed(), 1000) is None
    with_pair = opened_on(small(tmp_path, steps=[Renamed("note", "remark")], tail="", head='title = "x"'))
    assert forecast.of_first_pass(with_pair.rehearsed(), 1000) is not None
