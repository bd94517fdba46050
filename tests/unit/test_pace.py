"""How fast a pass goes, told only once it is known, and as a chart afterwards."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from flows.cli.ending import Ending
from flows.cli.performing import _draw, progress_told
from steps import waits
from steps.pace import Pace, Progress, rate_chart


def test_the_first_small_chunks_tell_nobody_how_long_it_will_take(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(waits, "now_s", lambda: clock[0])
    pace = Pace("first", lambda _: None)
    pace.begin(1, 0, 0, 100_000)
    clock[0] += 0.07
    pace.did(200, 200, 0.07)
    assert (pace.progress().rows_per_s, pace.progress().eta_s) == (0, None)

    clock[0] += 0.93
    pace.did(800, 800, 0.93)
    assert (pace.progress().rows_per_s, pace.progress().eta_s) == (1000, 99)


def test_under_a_limit_what_is_left_takes_as_long_as_the_limit_makes_it() -> None:
    assert Progress("first", 500, 500, 1500, 1, rows_per_s=1000, limit=10).eta_s == 100
    assert Progress("first", 500, 500, 1500, 1, rows_per_s=5, limit=10).eta_s == 200


def test_rates_are_drawn_over_the_time_of_work() -> None:
    assert rate_chart({0: 100, 1: 200, 5: 400}) == "▂▄▁▁▁█ each 1 s, up to 400"
    assert rate_chart(dict.fromkeys(range(100), 7)) == "█" * 34 + " each 3 s, up to 7"


@pytest.mark.parametrize(("paused_for", "colour"), [("", "\x1b[32m"), ("paused: lunch", "\x1b[31m")])
def test_on_a_terminal_it_is_one_line_that_the_next_one_overwrites(paused_for: str, colour: str) -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=100, color_system="standard", highlight=False, soft_wrap=True)

    _draw(console, Progress("first", 500, 400, 1000, 1, 55.0, paused_for))

    drawn = console.file.getvalue()  # type: ignore[attr-defined]
    assert colour in drawn
    assert " first pass: 500 of about 1000 rows (50 %), 400 filled, " + (paused_for or "55 rows/s, 9 s to go") in drawn
    assert (drawn.endswith("\r"), "\n" in drawn) == (True, False)


def test_the_last_line_of_a_pass_is_its_end_however_soon_that_comes() -> None:
    end = Ending(as_json=False)
    end.console = Console(file=io.StringIO(), width=200, highlight=False)
    told = progress_told(end)
    for name in ("closing", "verify", "verify"):
        told(Progress(name, 9, 0, 22, 1))
        told(Progress(name, 9, 0, 9, 1, ended=True))
        told(Progress(name, 9, 0, 9, 1, ended=True))

    verify = "verify pass: 9 rows (100 %), 0 filled"
    assert end.console.file.getvalue().splitlines() == [  # type: ignore[attr-defined]
        "closing pass: 9 of about 22 rows (40 %), 0 filled", "closing pass: 9 rows (100 %), 0 filled", verify, verify]
