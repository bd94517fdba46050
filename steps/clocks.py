"""
Whether a time has passed, when a clock may have been stepped meanwhile: the server's and this machine's must both say so (case C84).

All times in the ledger are the server's. One that is stepped, or another server after a failover, would let hours pass in a moment;
so what must not come early is due when it is due by both clocks, and a difference between the two is told.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from steps import waits
from steps.mysql import Session

TOLERATED_S = 60


@dataclass(frozen=True)
class Moment:
    """One moment by both clocks, in UTC."""

    server: datetime
    tool: datetime

    def plus(self, seconds: float) -> Moment:
        return Moment(self.server + timedelta(seconds=seconds), self.tool + timedelta(seconds=seconds))

    def has_come(self, now: Moment) -> bool:
        """Whether both clocks say so."""
        return now.server >= self.server and now.tool >= self.tool

    @property
    def shown(self) -> str:
        """The later of the two: from then on both say so, if they go right."""
        return max(self.server, self.tool).isoformat(timespec="seconds")

    @property
    def by_tool(self) -> str:
        """The tool's time, as a phase's detail keeps it beside the server's."""
        return self.tool.isoformat(timespec="milliseconds")


def now(session: Session) -> Moment:
    """Asks the server, whatever its time zone."""
    server = datetime.fromisoformat(str(session.value("SELECT UTC_TIMESTAMP(3)"))).replace(tzinfo=UTC)
    return Moment(server, waits.clock())


def recorded(server: object, by_tool: object) -> Moment:
    """A moment in the ledger; an older tool wrote down the *server*'s time alone, which then counts for both clocks."""
    at = datetime.fromisoformat(str(server))
    return Moment(at, datetime.fromisoformat(str(by_tool)) if by_tool else at)


def difference(moment: Moment) -> str:
    """What is to be said of two clocks that differ, else nothing."""
    seconds = (moment.server - moment.tool).total_seconds()
    if abs(seconds) <= TOLERATED_S:
        return ""
    return (f"; the server's clock is {abs(seconds):.0f} s {'ahead of' if seconds > 0 else 'behind'} this machine's, "
            "so how much time has passed cannot be told, and both have to say so")
