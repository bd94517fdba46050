"""Do both sides agree? Every exact look at the rows, over time: the passes' own and those of the parity watch."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from flows.charts.svg import Chart
from flows.phase_facts import Row
from flows.visible import duration, number
from steps.exact_look import WATCH

LOOKS = frozenset({"closing pass", "parity", WATCH})
DISAGREE = re.compile(r"(\d+) of \d+ rows disagree")
TOP, LEVEL, HEIGHT = 24, 106, 160
MOST = 60
WORDS = {"clean": "all agree", "found": "rows differ", "unclear": "could not look, or not to the end"}


@dataclass(frozen=True)
class Look:
    """
    One look: when, by what, what came of it (`clean`, `found`, `unclear`), and how many rows differ where that is known.

    *failed*: what looked found something else than rows that differ, and so did not pass.
    """

    at: datetime
    step: str
    verdict: str
    differing: int
    failed: bool = False

    @property
    def words(self) -> str:
        return f"the rows agree, and {self.step} failed all the same" if self.failed and self.verdict == "clean" else WORDS[self.verdict]


def looks(events: Sequence[Row]) -> list[Look]:
    """Every look on record, in order."""
    found = []
    for event in events:
        detail = event["detail"] or {}
        if event["step"] in LOOKS:
            differing = int(detail.get("differing", detail.get("differ", 0)) or 0)
            unclear = event["outcome"] not in ("clean", "found", "done") or detail.get("complete") is False
            verdict = "found" if differing else "unclear" if unclear else "clean"
            found.append(Look(datetime.fromisoformat(event["at"]), event["step"], verdict, differing))
        elif "verdict" in detail and event["outcome"] in ("pass", "fail", "inconclusive"):
            rows = [int(told[1]) for wrong in detail.get("wrong") or [] if (told := DISAGREE.match(str(wrong)))]
            failed = event["outcome"] == "fail"
            unseen = event["outcome"] == "inconclusive" or (failed and not event["row_count"])  # a schema that is wrong spares the rows
            verdict = "found" if rows else "unclear" if unseen else "clean"  # what else failed is no parity
            found.append(Look(datetime.fromisoformat(event["at"]), "verify", verdict, sum(rows), failed))
    return found


def parity(events: Sequence[Row]) -> Chart | None:
    """The picture of all looks; None where nobody has looked yet."""
    seen = looks(events)
    if not seen:
        return None
    counts = {verdict: sum(look.verdict == verdict for look in seen) for verdict in WORDS}
    chart = Chart("parity", "Parity over time", _described(seen, counts), HEIGHT)
    first, span_s = seen[0].at, max(1.0, (seen[-1].at - seen[0].at).total_seconds())
    most = max([1, *(look.differing for look in seen)])
    chart.text(0, TOP - 8, "rows that differ", kind="small bold")
    chart.text(100, TOP - 8, f"up to {number(most)}" if any(counts[v] for v in ("found",)) else "none", "end", "small")
    chart.line(0, LEVEL, 100, LEVEL)
    for look in _fewer(seen):
        place = 2 + 96 * ((look.at - first).total_seconds() / span_s if len(seen) > 1 else 0.5)
        _draw(chart, look, place, most)
    chart.text(0, LEVEL + 18, f"{first:%Y-%m-%d %H:%M}", kind="small")
    if len(seen) > 1:
        chart.text(100, LEVEL + 18, f"{seen[-1].at:%Y-%m-%d %H:%M}" if span_s > 60 else f"+{duration(span_s)}", "end", "small")  # noqa: PLR2004
    chart.text(0, LEVEL + 36, f"● agree: {counts['clean']}; ▮ differ: {counts['found']}; ? not seen to the end: {counts['unclear']}",
               kind="small")
    return chart


def _draw(chart: Chart, look: Look, place: float, most: int) -> None:
    told = f"{look.at:%Y-%m-%d %H:%M:%S}, {look.step}: {look.differing or ''} {look.words}"
    if look.verdict == "clean":
        chart.dot(place, LEVEL, "hold", told)
    elif look.verdict == "unclear":
        chart.text(place, LEVEL - 6, "?", "middle", "bold")
    else:
        high = max(14.0, (LEVEL - TOP - 8) * look.differing / most)
        chart.box(place - 0.6, LEVEL - high, 1.2, high, "bad", told)


def _fewer(seen: list[Look]) -> list[Look]:
    """At most :data:`MOST` of them, the worst of each stretch."""
    each = -(-len(seen) // MOST)
    rank = {"clean": 0, "unclear": 1, "found": 2}
    return [max(seen[start:start + each], key=lambda look: (rank[look.verdict], look.differing)) for start in range(0, len(seen), each)]


def _described(seen: list[Look], counts: dict[str, int]) -> str:
    last = seen[-1]
    told = ", ".join(f"{count} times {WORDS[verdict]}" for verdict, count in counts.items() if count)
    return f"{len(seen)} looks at the rows: {told}. The last, {last.step} at {last.at:%Y-%m-%d %H:%M:%S}: {last.words}."
