"""The table and its verdict, on counts written by hand."""

from __future__ import annotations

from collections import Counter

import pytest

from flows.demo.traffic import Counts, Report, WrongRow
from steps.errors import RolloutError, Stopped
from tests.applications.scenarios import FAULTY, SCENARIOS, expect
from tests.applications.stage import HabitStage
from tests.applications.traffic_table import README, Scenario, broken_promises, markdown, render


def scenario(name: str = "default path", *, wrong: list[WrongRow] | None = None, ending: str | None = None, **counts: object) -> Scenario:
    seen = Counts(requests=10, **counts)  # type: ignore[arg-type]
    report = Report(sides={("2. deploy", "v1 prisma"): seen, ("1. pre_deploy", "v0 prisma"): Counts(requests=7)})
    for side in report.sides.values():
        report.add(side)
    return Scenario(name, ["1. pre_deploy", "2. deploy"], report, wrong or [], ending, 3.0)


def test_a_clean_scenario_breaks_nothing_and_its_rows_come_in_the_order_of_the_phases() -> None:
    clean = scenario(deadlocks=2, longest_gap_ms=900.4)

    assert broken_promises(clean) == []
    assert markdown([clean]).splitlines()[2:] == [
        "| default path | 1. pre_deploy | v0 prisma | 7 | 0 | 0 | 0 | 0 | 0 |",
        "| default path | 2. deploy | v1 prisma | 10 | 0 | 1213: 2 | 0 | 0 | 900 |",
        "| **default path** | all, 3 s | all | 17 | 0 | 1213: 2 | 0 | 0 | 900 |"]


@pytest.mark.parametrize(("broken", "said"), [
    (scenario(failed=Counter({"P2022": 3})), "failed: 3"), (scenario(wrong_reads=1), "wrong reads: 1"),
    (scenario(run_twice=2), "run twice: 2"), (scenario(wrong=[WrongRow("j", "status")]), "lost or wrong: 1"),
    (scenario(longest_gap_ms=2000), "gaps longer than 1000 ms"), (scenario(ending="exit 4: no gap"), "exit 4"),
    (scenario("path=adr"), "no P2022")])
def test_every_broken_promise_is_told(broken: Scenario, said: str) -> None:
    (line,) = broken_promises(broken)
    assert said in line


def test_a_scenario_that_nobody_lived_through_and_a_silence_that_never_ended_are_broken_promises() -> None:
    empty, silent = scenario(), scenario(acknowledged_writes=1)
    empty.soaked = ["V2 alone"]
    silent.report.longest_gap_ms = 60_000

    assert broken_promises(empty) == ["default path: nobody wrote in 'V2 alone'", "default path: v1 prisma wrote nothing",
                                      "default path: v0 prisma wrote nothing"]
    assert broken_promises(silent) == ["default path: gaps longer than 1000 ms: no success since 60000 ms"]


def test_a_client_that_is_alone_in_its_line_has_its_own_pace_in_its_gaps() -> None:
    slow = scenario("habits", longest_gap_ms=1300)

    assert [line.partition(":")[2] for line in broken_promises(slow)] == [" gaps longer than 1000 ms: 2. deploy v1 prisma 1300 ms"]
    slow.pace_ms = HabitStage.pace_ms
    assert broken_promises(slow) == []


def test_the_readmes_table_is_made_anew_and_has_every_scenario() -> None:
    text = README.read_text()
    fresh = render(text, [scenario()])

    assert fresh.count("| default path |") == 2
    assert render(fresh, [scenario()]) == fresh
    assert [line.split("**")[1] for line in text.splitlines() if line.startswith("| **")] == [*SCENARIOS]


def test_a_fault_that_was_not_met_ends_the_scenario() -> None:
    def stops() -> None:
        raise Stopped("it", "stopped", "go on")

    expect(4, stops)
    with pytest.raises(RolloutError, match="ended well instead of with exit 5"):
        expect(5, lambda: None)


def test_what_must_fail_and_what_was_planted_break_no_promise() -> None:
    assert broken_promises(scenario("path=adr", failed=Counter({"P2022": 3}), run_twice=1, ending="exit 5")) == []
    assert broken_promises(scenario("verify fails", wrong=[WrongRow(FAULTY, "lifecycleStatus")])) == []
