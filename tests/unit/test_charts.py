"""The pictures: what they say to whoever does not see them or sees no colours, that they are well formed, and that they stay small."""

from __future__ import annotations

import base64
import re
from xml.etree import ElementTree as ET

import pytest

from flows.charts.pace import paces, pauses
from flows.charts.parity import looks, parity
from flows.charts.svg import Chart
from flows.charts.timeline import MOST_RUNS, timeline
from tests.trails import HOSTILE, Trail, weeks

LONGEST_PICTURE = 30_000


def parsed(text: str | bytes) -> ET.Element:
    return ET.fromstring(text)  # noqa: S314  # our own drawing


def drawn(chart: Chart | None) -> ET.Element:
    assert chart is not None
    return parsed(chart.inline())


def marks(root: ET.Element) -> list[str]:
    return [str(mark.findtext("title")) for mark in root.iter() if mark.tag in ("rect", "circle") and mark.find("title") is not None]


def charts() -> list[Chart]:
    trail = weeks().document
    events = [event for run in trail["runs"] for event in run["events"]]
    found = [timeline(trail), *paces(events), parity(events + trail["beside"])]
    assert len(found) == 3
    return [chart for chart in found if chart is not None]


@pytest.mark.parametrize("chart", charts(), ids=lambda chart: chart.ident)
def test_each_picture_says_what_it_shows_and_has_no_name_twice(chart: Chart) -> None:
    root = drawn(chart)

    assert root.get("role") == "img"
    assert root.get("aria-labelledby") == f"{chart.ident}-t {chart.ident}-d"
    assert root.findtext("title") == chart.title
    assert len(str(root.findtext("desc"))) > 40
    names = [one.get("id") for one in root.iter() if one.get("id")]
    assert len(names) == len(set(names))
    assert all(str(name).startswith(chart.ident) for name in names)


@pytest.mark.parametrize("chart", charts(), ids=lambda chart: chart.ident)
def test_each_picture_stays_within_its_frame_whatever_its_width(chart: Chart) -> None:
    for mark in drawn(chart).iter():
        for name in ("x", "x1", "x2", "cx", "width"):
            given = mark.get(name)
            if given and mark.tag != "pattern":
                assert re.fullmatch(r"-?\d+(\.\d+)?%", given), (mark.tag, name, given)
                assert -0.01 <= float(given[:-1]) <= 100.01
        if mark.tag == "rect":
            assert float(str(mark.get("x"))[:-1]) + float(str(mark.get("width"))[:-1]) <= 101.5
        for name in ("y", "y1", "y2", "cy"):
            if mark.get(name) and mark.tag != "pattern":
                assert 0 <= float(str(mark.get(name))) <= chart.height


@pytest.mark.parametrize("chart", charts(), ids=lambda chart: chart.ident)
def test_each_picture_alone_is_a_small_svg_on_white(chart: Chart) -> None:
    kind, _, data = chart.data_uri().partition(",")
    alone = parsed(base64.b64decode(data))

    assert kind == "data:image/svg+xml;base64"
    assert alone.tag == "{http://www.w3.org/2000/svg}svg"
    assert "background:#fff" in str(alone.get("style"))
    assert len(chart.data_uri()) < LONGEST_PICTURE


def test_the_timeline_tells_forward_from_back_without_colour_and_names_who() -> None:
    root = drawn(timeline(weeks().document))
    by_title = {str(mark.findtext("title")): mark for mark in root.iter("rect")}

    [back] = [mark for title, mark in by_title.items() if "rollback of deploy" in title]
    assert back.get("fill") == "url(#timeline-back)"
    forward = [mark for title, mark in by_title.items() if "run 1 by ann: 2. deploy" in title]
    assert [mark.get("class") for mark in forward] == ["forward"]
    titles = marks(root)
    assert any("held for 120 ms" in title for title in titles)
    assert any("waited 600 ms for a gap" in title for title in titles)
    assert any("running threads" in title for title in titles)
    assert [title for title in titles if "look at rows" in title and "run 2 by ben: 4. verify, fail" in title]
    described = str(root.findtext("desc"))
    assert "run 2, run by ben" in described
    assert "4. verify fail, rollback of deploy done" in described
    assert "run 3, run by carol" in described


def test_the_timeline_shows_a_second_beside_weeks_and_only_the_last_runs() -> None:
    trail = Trail()
    for number in range(30):
        trail.run(number * 86400, 3600.0 if number % 2 else 0.5)
        trail.event(number * 86400 + 0.4, "verify", "look", duration_ms=300.0)
    root = drawn(timeline(trail.document))

    bars = [mark for mark in root.iter("rect") if (mark.findtext("title") or "").startswith("run ")]
    assert len(bars) == MOST_RUNS
    assert all(float(str(mark.get("width"))[:-1]) >= 0.5 for mark in bars)
    assert "18 earlier runs are left out" in str(root.findtext("desc"))
    assert timeline(Trail().document) is None


def test_the_pace_of_a_pass_shows_rate_chunk_times_and_why_it_waited() -> None:
    events = weeks().runs[0]["events"]
    [chart] = paces(events)
    root = drawn(chart)

    assert len([title for title in marks(root) if "rows/s" in title]) == 25
    assert len(list(root.iter("circle"))) == 25
    assert [pause.why for pause in pauses(next(e for e in events if e["step"].startswith("pace")), events)] == [
        "number of running threads is 90, over 60"]
    assert "‖1" in [text.text for text in root.iter("text")]
    assert "1 pause, 5.0 s; pause 1: 5.0 s, number of running threads" in chart.description.replace(" in all (‖)", "")
    assert paces([event | {"detail": {}} for event in events]) == []  # what an older tool recorded


def test_parity_tells_looks_that_were_clean_found_something_or_could_not_see() -> None:
    trail = weeks().document
    events = [event for run in trail["runs"] for event in run["events"]] + trail["beside"]
    root = drawn(parity(events))

    assert [look.verdict for look in looks(events)] == ["found", "clean", "clean", "clean", "clean", "found", "unclear", "clean"]
    texts = [str(text.text) for text in root.iter("text")]
    assert "● agree: 5; ▮ differ: 2; ? not seen to the end: 1" in texts
    assert "?" in texts
    assert parity([]) is None


def test_a_smoke_query_that_failed_is_no_row_that_differs() -> None:
    trail = Trail()
    trail.run(0, 5, 5)
    for number, wrong in enumerate(("z.sql: expected no rows, got 1 rows", "2 of 9 rows disagree (a: 2; keys: 1)")):
        trail.event(number, "verify", "look at rows", "fail", row_count=9, detail={"verdict": "fail", "wrong": [wrong]})

    assert [(look.verdict, look.differing) for look in looks(trail.runs[0]["events"])] == [("clean", 0), ("found", 2)]


@pytest.mark.parametrize(("rows", "said"), [(9, "the rows agree, and verify failed all the same."),
                                            (0, "could not look, or not to the end.")])
def test_a_verify_that_failed_on_something_else_than_rows_is_not_told_as_well(rows: int, said: str) -> None:
    trail = Trail()
    trail.run(0, 5, 5)
    trail.event(1, "backfill", "closing pass", row_count=9, detail={"differ": 0})
    trail.event(2, "verify", "look at rows", "fail", row_count=rows, detail={"verdict": "fail", "wrong": ["z.sql: expected no rows"]})
    chart = parity(trail.runs[0]["events"])

    assert chart is not None
    assert chart.description.endswith(f"The last, verify at 2026-11-02 09:00:02: {said}")


def test_a_thousand_looks_are_drawn_as_the_worst_of_each_stretch() -> None:
    trail = Trail()
    for number in range(1000):
        trail.event(number * 3600, "shadow_write", "parity watch", "found" if number == 500 else "clean",
                    detail={"differing": 7 if number == 500 else 0, "complete": True})
    chart = parity(trail.beside)

    assert any("7 rows differ" in title for title in marks(drawn(chart)))
    assert len(marks(drawn(chart))) <= 61
    assert chart is not None
    assert len(chart.data_uri()) < LONGEST_PICTURE


def test_hostile_names_are_text_in_every_picture() -> None:
    trail = Trail(table=HOSTILE)
    trail.run(0, 10, actor=HOSTILE, reason=HOSTILE)
    trail.event(5, "pre_deploy", f"pass {HOSTILE}", "resumed", duration_ms=10.0, detail={"why": HOSTILE})
    trail.event(6, "pre_deploy", f"pace of pass {HOSTILE}", row_count=1, detail={"worked s": 5.0, "intervals": [[0, 1.0, 1, 2.0, 3.0]]})
    found = [timeline(trail.document), *paces(trail.runs[0]["events"])]

    assert len(found) == 2
    for chart in found:
        assert chart is not None
        inline = chart.inline()
        root = parsed(inline)
        assert {one.tag for one in root.iter()} <= {"svg", "title", "desc", "defs", "pattern", "path", "rect", "circle", "line", "text"}
        assert "<script" not in inline
        assert "\u202e" not in inline
        assert "\x1b" not in inline
        parsed(base64.b64decode(chart.data_uri().partition(",")[2]))
