"""How fast a pass over rows went and how long its chunks took, with its pauses; one picture for each run of a pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from flows.charts.svg import Chart
from flows.phase_facts import Row
from flows.visible import duration, number, second

RECORD = "pace of pass "
RATE_TOP, RATE_HEIGHT = 22, 90
TOOK_TOP, TOOK_HEIGHT = 146, 70
HEIGHT = 268
MOST_PAUSES = 5


@dataclass(frozen=True)
class Pause:
    """From when to when, in seconds since the pass began in this run, and why."""

    began_s: float
    ended_s: float
    why: str


def paces(events: Sequence[Row]) -> list[Chart]:
    """A picture for each pass of *events* that changed rows and whose record has its intervals; an older tool's has none."""
    found = []
    for record in events:
        drawn = (record["detail"] or {}).get("intervals")
        if record["step"].startswith(RECORD) and drawn:
            found.append(_pace(record, drawn, pauses(record, events)))
    return found


def pauses(record: Row, events: Sequence[Row]) -> list[Pause]:
    """When the pass of *record* waited, and why, by its events."""
    detail, name = record["detail"], record["step"].removeprefix(RECORD)
    seconds = float(detail.get("worked s", 0)) + float(detail.get("paused s", 0))
    began = datetime.fromisoformat(record["at"]) - timedelta(seconds=seconds)
    found = []
    for event in events:
        ended_s = (datetime.fromisoformat(event["at"]) - began).total_seconds()
        if event["run_id"] == record["run_id"] and event["step"] == f"pass {name}" and event["outcome"] == "resumed" and \
                0 <= ended_s <= seconds + 1:
            lasted_s = (event["duration_ms"] or 0) / 1000
            found.append(Pause(max(0.0, ended_s - lasted_s), ended_s, str((event["detail"] or {}).get("why", ""))))
    return found


def _pace(record: Row, intervals: list[list[float]], paused: list[Pause]) -> Chart:
    name, detail = record["step"].removeprefix(RECORD), record["detail"]
    last = intervals[-1]
    span_s = max(last[0] + last[1], float(detail.get("worked s", 0)) + float(detail.get("paused s", 0)), 0.001)
    title = f"Pace of the pass “{name}”, {second(record['at'])}"
    chart = Chart(f"pace-{record['id']}", title, _described(record, intervals, paused), HEIGHT)
    rates = [(start, width, rows / width) for start, width, rows, _, _ in intervals]
    _scale(chart, "rows per second", RATE_TOP, RATE_HEIGHT, most := max(rate for *_, rate in rates))
    for start, width, rate in rates:
        high = RATE_HEIGHT * rate / most if most else 0
        chart.box(100 * start / span_s, RATE_TOP + RATE_HEIGHT - high, 100 * width / span_s, high, "forward",
                  f"from {duration(start)}: {number(round(rate))} rows/s")
    longest = max(took for *_, took in intervals) or 1.0
    _scale(chart, "ms a chunk (● median, line: to 99 %)", TOOK_TOP, TOOK_HEIGHT, longest)
    for start, width, _, median, slow in intervals:
        middle = 100 * (start + width / 2) / span_s
        chart.line(middle, _high(slow, longest), middle, _high(median, longest), "mark")
        chart.dot(middle, _high(median, longest), "plain", f"from {duration(start)}: median {number(median)} ms, slowest {number(slow)} ms")
    for count, pause in enumerate(paused, 1):
        left, width = 100 * pause.began_s / span_s, 100 * (pause.ended_s - pause.began_s) / span_s
        chart.box(left, RATE_TOP, width, RATE_HEIGHT, "wait", f"pause {count}: {pause.why}")
        if count <= MOST_PAUSES:
            chart.text(left, RATE_TOP + 12, f"‖{count}", kind="bold small")
    chart.text(0, HEIGHT - 32, "0 s", kind="small")
    chart.text(100, HEIGHT - 32, duration(span_s), "end", "small")
    chart.text(0, HEIGHT - 12, _pauses_told(paused), kind="small")
    return chart


def _scale(chart: Chart, what: str, top: int, height: int, most: float) -> None:
    chart.text(0, top - 7, what, kind="small bold")
    for share in (0.0, 0.5, 1.0):
        level = top + height * (1 - share)
        chart.line(0, level, 100, level)
    chart.text(100, top - 7, f"up to {number(round(most, 1))}", "end", "small")


def _high(ms: float, longest: float) -> float:
    return TOOK_TOP + TOOK_HEIGHT * (1 - ms / longest)


def _pauses_told(paused: list[Pause]) -> str:
    if not paused:
        return "never paused"
    return f"{len(paused)} pause{'s' * (len(paused) > 1)}, {duration(sum(p.ended_s - p.began_s for p in paused))} in all (‖)"


def _described(record: Row, intervals: list[list[float]], paused: list[Pause]) -> str:
    detail: dict[str, Any] = record["detail"]
    slow = max(took for *_, took in intervals)
    told = [f"{number(record['row_count'])} rows in {duration(float(detail.get('worked s', 0)))} of work",
            f"{number(detail.get('rows per s'))} rows/s", f"slowest chunk in a hundred {number(slow)} ms", _pauses_told(paused)]
    told += [f"pause {count}: {duration(pause.ended_s - pause.began_s)}, {pause.why}" for count, pause in enumerate(paused[:20], 1)]
    return "; ".join(told)
