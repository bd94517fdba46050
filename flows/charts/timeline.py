"""
The whole rollout on one picture: which phase was worked on in which run, forward and back, with holds and waits, and what stood after.

Runs of seconds lie weeks apart, so each run is a column with a scale of its own, and the time between is left out; the table beside
the picture has both in figures.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from flows.charts.svg import Chart
from flows.phase_facts import Row, phase_name, stretches
from flows.visible import duration
from steps.phase import FORWARD, Phase

MOST_RUNS = 12
ROOM_FOR_NAME, LONGEST_NAME = 18.0, 9
GAP, LEAST_SHARE = 1.4, 0.5
TOP, ROW, BAR, FOOT = 34, 36, 12, 42
ABOVE_BAR = 19


@dataclass(frozen=True)
class Column:
    """A run's place: *left* and *width* in per cent; *began* and *seconds* are its own scale."""

    number: int
    left: float
    width: float
    began: datetime
    seconds: float

    def at(self, when: datetime) -> float:
        share = (when - self.began).total_seconds() / self.seconds
        return self.left + self.width * min(1.0, max(0.0, share))


def timeline(trail: dict[str, Any]) -> Chart | None:
    """The picture of :func:`flows.report.audit_trail`, its last :data:`MOST_RUNS` runs; None where there is none."""
    runs = trail["runs"]
    if not runs:
        return None
    columns = _columns(runs)
    shown = runs[-MOST_RUNS:]
    chart = Chart("timeline", f"Timeline of {trail['table']}", _described(runs, len(runs) - len(shown)), TOP + ROW * len(FORWARD) + FOOT)
    _frame(chart, columns, shown)
    standing: dict[str, float] = _stood_before(runs[:-MOST_RUNS])
    for column, run in zip(columns, shown, strict=True):
        for stretch in stretches(run["events"]):
            _draw(chart, column, run, stretch, standing)
    for phase, since in standing.items():
        _line(chart, phase, since, 100.0)
    return chart


def _columns(runs: list[dict[str, Any]]) -> list[Column]:
    """Half of the width is shared alike, half by the root of how long each run took: a second stays visible beside an hour."""
    shown = runs[-MOST_RUNS:]
    spans = [max(0.001, (_ended(run) - datetime.fromisoformat(run["started_at"])).total_seconds()) for run in shown]
    roots, room, left = [span ** 0.5 for span in spans], 100 - GAP * (len(shown) - 1), 0.0
    found = []
    for number, (run, span, root) in enumerate(zip(shown, spans, roots, strict=True), len(runs) - len(shown) + 1):
        width = room * (LEAST_SHARE / len(shown) + (1 - LEAST_SHARE) * root / sum(roots))
        found.append(Column(number, left, width, datetime.fromisoformat(run["started_at"]), span))
        left += width + GAP
    return found


def _frame(chart: Chart, columns: list[Column], runs: list[dict[str, Any]]) -> None:
    bottom = TOP + ROW * len(FORWARD)
    for column, run in zip(columns, runs, strict=True):
        chart.line(column.left, 4, column.left, bottom)
        who = f" {run['actor']}"[:LONGEST_NAME] if column.width >= ROOM_FOR_NAME else ""
        chart.text(column.left + 0.6, 14, f"{column.number}{who}", kind="bold small")
        if column.width >= ROOM_FOR_NAME:
            chart.text(column.left + 0.6, 27, duration(column.seconds), kind="small")
    for phase in FORWARD:
        top = TOP + ROW * (phase.number - 1)
        chart.line(0, top + ROW - 2, 100, top + ROW - 2)
        chart.text(0.6, top + 12, phase.label, kind="small")
    _legend(chart, bottom)


def _legend(chart: Chart, bottom: int) -> None:
    for left, top, kind, told in ((0, 8, "forward", "forward"), (33, 8, "back", "back"), (62, 8, "hold", "hold: clients wait"),
                                  (0, 25, "wait", "waited"), (33, 25, "bad", "failed"), (62, 25, "stands", "stands")):
        if kind == "stands":
            chart.line(left, bottom + top + 6, left + 3, bottom + top + 6, kind)
        else:
            chart.box(left, bottom + top, 1.0 if kind == "hold" else 3.0, 11, kind, told)
        chart.text(left + 4, bottom + top + 10, told, kind="small")


def _draw(chart: Chart, column: Column, run: dict[str, Any], stretch: list[Row], standing: dict[str, float]) -> None:
    phase, direction = stretch[0]["phase"], stretch[0]["direction"]
    if phase not in set(Phase):
        return
    top = TOP + ROW * (Phase(phase).number - 1) + ABOVE_BAR
    left = column.at(min(map(_began, stretch)))
    right = max(column.at(datetime.fromisoformat(stretch[-1]["at"])), left + 0.8)
    failed = stretch[-1]["outcome"] in ("failed", "fail", "cancelled")
    if phase in standing:
        _line(chart, phase, standing.pop(phase), left)
    told = f"run {column.number} by {run['actor']}: {phase_name(phase, direction)}, {stretch[-1]['outcome']}, {run['started_at']}"
    chart.box(left, top, right - left, BAR, "back" if direction == "back" else "forward", told)
    for event in stretch:
        _mark(chart, column, event, top)
    if failed:
        chart.box(max(left, right - 0.8), top - 3, 0.8, BAR + 6, "bad", f"{told}: {stretch[-1]['step']}")
    if direction == "forward" and not failed:
        standing[phase] = right


def _mark(chart: Chart, column: Column, event: Row, top: float) -> None:
    """A hold as a black bar, a wait for a gap or in a pass dotted."""
    detail, ended = event["detail"] or {}, datetime.fromisoformat(event["at"])
    if event["step"].startswith("hold for") and "held_ms" in detail:
        began = ended - timedelta(milliseconds=float(detail["held_ms"]))
        waited = float(detail.get("waited_for_gap_s", 0))
        if waited >= 0.1:  # noqa: PLR2004  # what nobody sees
            _box(chart, column, began - timedelta(seconds=waited), began, top + 2, BAR - 4, "wait", f"waited {duration(waited)} for a gap")
        _box(chart, column, began, ended, top - 3, BAR + 6, "hold", f"{event['step']}: held for {float(detail['held_ms']):.0f} ms")
    elif event["step"].startswith("pass ") and event["outcome"] == "resumed":
        _box(chart, column, _began(event), ended, top + 2, BAR - 4, "wait", f"{event['step']} paused: {detail.get('why', '')}")


def _box(chart: Chart, column: Column, began: datetime, ended: datetime, top: float, height: float, kind: str, told: str) -> None:
    left = column.at(began)
    chart.box(left, top, max(column.at(ended) - left, 0.5), height, kind, told)


def _line(chart: Chart, phase: str, left: float, right: float) -> None:
    middle = TOP + ROW * (Phase(phase).number - 1) + ABOVE_BAR + BAR / 2
    if right > left:
        chart.line(left, middle, right, middle, "stands")


def _stood_before(runs: list[dict[str, Any]]) -> dict[str, float]:
    """What stood when the first run of the picture began."""
    found: dict[str, float] = {}
    for run in runs:
        for stretch in stretches(run["events"]):
            if stretch[0]["direction"] == "back":
                found.pop(stretch[0]["phase"], None)
            elif stretch[-1]["outcome"] not in ("failed", "fail", "cancelled") and stretch[0]["phase"] in set(Phase):
                found[stretch[0]["phase"]] = 0.0
    return found


def _described(runs: list[dict[str, Any]], left_out: int) -> str:
    """The same in words."""
    told = [f"{left_out} earlier runs are left out"] if left_out else []
    for number, run in list(enumerate(runs, 1))[left_out:]:
        done = [f"{phase_name(some[0]['phase'], some[0]['direction'])} {some[-1]['outcome']}" for some in stretches(run["events"])]
        told.append(f"run {number}, {run['verb']} by {run['actor']} at {run['started_at']}: {', '.join(done) or 'nothing'}")
    return "Each column is one run, on a scale of its own. " + "; ".join(told)


def _ended(run: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(run["ended_at"] or (run["events"][-1]["at"] if run["events"] else run["started_at"]))


def _began(event: Row) -> datetime:
    return datetime.fromisoformat(event["at"]) - timedelta(milliseconds=event["duration_ms"] or 0)
