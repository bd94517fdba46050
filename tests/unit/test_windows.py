"""When a change window is open: over midnight, by weekday, and where clocks are put forward and back."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steps import windows
from steps.windows import Window, zone_of

BERLIN = zone_of("Europe/Berlin")
FORWARD, BACK = datetime(2026, 3, 29, 1, tzinfo=UTC), datetime(2026, 10, 25, 1, tzinfo=UTC)  # 02:00 becomes 03:00, and 03:00 becomes 02:00
MINUTE = timedelta(minutes=1)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def daily(start: str, end: str, *days: int, zone: str = "Europe/Berlin") -> Window:
    return Window(zone_of(zone), weekdays=frozenset(days), start=time.fromisoformat(start), end=time.fromisoformat(end))


@pytest.mark.parametrize(("at", "is_open"), [
    ("2026-11-27T20:59", False), ("2026-11-27T21:00", True),  # Friday, 22:00 there
    ("2026-11-28T02:59", True), ("2026-11-28T03:00", False),  # still Friday's window, until Saturday 04:00 there
    ("2026-11-28T21:00", False), ("2026-11-27T02:00", False),  # Saturday evening; the night from Thursday
])
def test_a_window_over_midnight_is_that_of_the_day_on_which_it_begins(at: str, is_open: bool) -> None:
    assert daily("22:00", "04:00", 4).is_open(utc(at)) is is_open


def test_the_day_is_that_of_the_place() -> None:
    friday = Window(zone_of("Pacific/Auckland"), weekdays=frozenset({4}))

    assert friday.is_open(utc("2026-11-26T11:00"))  # Thursday in UTC, Friday 00:00 there
    assert not friday.is_open(utc("2026-11-27T11:00"))


def test_hours_that_the_wall_never_shows_open_when_the_clock_has_jumped_over_them() -> None:
    assert daily("02:30", "04:00", 6).opens_at(utc("2026-03-28T12:00")) == FORWARD
    assert daily("02:10", "02:50", 6).opens_at(utc("2026-03-28T12:00")) == utc("2026-04-05T00:10")  # not on that day at all


def test_hours_that_the_wall_shows_twice_are_open_twice() -> None:
    window = daily("02:15", "02:45", 6)

    assert [window.is_open(BACK + minutes * MINUTE) for minutes in (-46, -45, -16, -15, 0, 14, 15, 44, 45)] == [
        False, True, True, False, False, False, True, True, False]
    assert window.opens_at(BACK - 15 * MINUTE) == BACK + 15 * MINUTE


def test_a_clock_put_back_into_the_window_opens_it_again() -> None:
    window = daily("01:00", "02:30", 6)

    assert not window.is_open(BACK - MINUTE)
    assert window.opens_at(BACK - 20 * MINUTE) == BACK


def test_dates_bound_it_from_both_sides() -> None:
    window = Window(BERLIN, utc("2026-12-01T00:00"), utc("2026-12-02T00:00"), frozenset(), time(22), time(23))

    assert window.opens_at(utc("2026-11-01T00:00")) == utc("2026-12-01T21:00")
    assert not window.is_open(utc("2026-11-30T21:30"))
    assert window.opens_at(utc("2026-12-01T22:00")) is None
    assert not window.is_open(utc("2026-12-02T00:00"))


def test_a_moment_is_shown_with_offset_and_zone() -> None:
    assert windows.shown(utc("2026-07-01T20:00"), BERLIN) == "2026-07-01 22:00:00+02:00 (Europe/Berlin)"
    assert windows.shown(utc("2026-12-01T20:00"), BERLIN) == "2026-12-01 21:00:00+01:00 (Europe/Berlin)"


@pytest.mark.parametrize("name", ["Mars/Olympus", "", "../../etc/passwd", "/etc/passwd", "Europe", "\x00"])
def test_what_is_no_zone_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="no time zone is called"):
        zone_of(name)


ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe", "America/Santiago", "Africa/Casablanca",
         "Pacific/Apia", "Asia/Beirut", "America/St_Johns")
TIMES = st.builds(time, st.integers(0, 23), st.integers(0, 59))


@settings(max_examples=150, deadline=None)
@given(zone=st.sampled_from(ZONES), days=st.sets(st.integers(0, 6), min_size=1), start=TIMES, end=TIMES,
       after=st.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1)), near=st.sampled_from((None, FORWARD, BACK)))  # noqa: DTZ001
def test_it_opens_at_the_first_minute_at_which_it_is_open(zone: str, days: set[int], start: time, end: time, after: datetime,
                                                           near: datetime | None) -> None:
    if start == end:
        start, end = time(), time(1)
    window = Window(zone_of(zone), weekdays=frozenset(days), start=start, end=end)
    at = (near - timedelta(hours=after.hour) if near else after.replace(tzinfo=UTC)).replace(second=0, microsecond=0)

    opens = window.opens_at(at)

    assert opens is not None
    assert window.is_open(opens)
    steps = min(int((opens - at) / MINUTE), 3000)
    assert not any(window.is_open(opens - n * MINUTE) for n in range(1, steps + 1))
    wall = opens.astimezone(window.zone)
    day = wall.weekday() if start < end or wall.time() >= start else (wall.weekday() - 1) % 7
    assert day in days
