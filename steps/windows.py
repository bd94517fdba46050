"""
When something may begin: days, hours and dates as a clock on the wall shows them in one place, with its changes of offset.

A time that the wall shows twice counts both times; one that it never shows on that day does not come. Times of day go over midnight
where the end is before the start, and the weekday is then that of the evening.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
LONGEST_SEARCH_DAYS = 750  # longer than any plan's pause between two openings: a window that the wall shows on one day of a year
DAY = timedelta(days=1)


def zone_of(name: str) -> ZoneInfo:
    """
    The zone of that IANA name, from the system's database or the package's.

    Raises:
        ValueError: there is none.
    """
    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError):
        raise ValueError(f"no time zone is called {name!r}; write an IANA name such as Europe/Berlin") from None


def shown(at: datetime, zone: ZoneInfo) -> str:
    """*at* as the wall shows it there, with offset and zone, so that nobody has to guess."""
    return f"{at.astimezone(zone).isoformat(' ', 'seconds')} ({zone.key})"


@dataclass(frozen=True)
class Window:
    """
    Open from *start* until just before *end* on *weekdays* (0 is Monday; none means every day), never before *not_before* nor from
    *not_after* on. Without *start* and *end* the whole day.
    """

    zone: ZoneInfo
    not_before: datetime | None = None
    not_after: datetime | None = None
    weekdays: frozenset[int] = frozenset()
    start: time | None = None
    end: time | None = None

    def is_open(self, at: datetime) -> bool:
        """Whether something may begin *at* that moment."""
        if (self.not_before and at < self.not_before) or (self.not_after and at >= self.not_after):
            return False
        return self._wall_is_open(at.astimezone(self.zone))

    def opens_at(self, after: datetime) -> datetime | None:
        """The first moment from *after* on at which it is open, in UTC; None if there is none any more."""
        first = max(after, self.not_before) if self.not_before else after
        if self.is_open(first):
            return first.astimezone(UTC)
        begins = first.astimezone(self.zone).date() - DAY
        for number in range(LONGEST_SEARCH_DAYS):
            day = begins + number * DAY  # with the next one: where the wall shows a night's hours twice they lie within each other
            opening = min((at for at in {*self._edges(day), *self._edges(day + DAY)} if at >= first and self.is_open(at)), default=None)
            if opening:
                return opening
            if self.not_after and number > 1 and self._utc(day, time(), 0) > self.not_after:
                return None
        return None

    def _wall_is_open(self, wall: datetime) -> bool:
        if self.start is None or self.end is None:
            return self._on(wall.date())
        if self.start < self.end:
            return self._on(wall.date()) and self.start <= wall.time() < self.end
        return (self._on(wall.date()) and wall.time() >= self.start) or (self._on(wall.date() - DAY) and wall.time() < self.end)

    def _on(self, day: date) -> bool:
        return not self.weekdays or day.weekday() in self.weekdays

    def _edges(self, day: date) -> Iterator[datetime]:
        """Every moment of *day* at which it can open: midnight, the start, either reading of both, and a change of the offset."""
        for at in {time(), self.start or time()}:
            yield self._utc(day, at, 0)
            yield self._utc(day, at, 1)
        readings = [self._utc(midnight, time(), fold) for midnight in (day, day + DAY) for fold in (0, 1)]
        change = self._change(min(readings), max(readings))
        if change:
            yield change

    def _utc(self, day: date, at: time, fold: int) -> datetime:
        return datetime.combine(day, at.replace(fold=fold), self.zone).astimezone(UTC)

    def _change(self, low: datetime, high: datetime) -> datetime | None:
        """The second at which the offset is another for the first time, between *low* and *high*."""
        def offset(seconds: int) -> timedelta | None:
            return (low + timedelta(seconds=seconds)).astimezone(self.zone).utcoffset()

        left, right = 0, int((high - low).total_seconds())
        if offset(right) == offset(left):
            return None
        before = offset(left)
        while right - left > 1:
            middle = (left + right) // 2
            left, right = (middle, right) if offset(middle) == before else (left, middle)
        return low + timedelta(seconds=right)
