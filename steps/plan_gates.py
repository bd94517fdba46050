"""`[gates]` of a plan: what has to be so before a phase begins. Operational: no part of the plan's identity."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, time
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, field_validator, model_validator

from steps import windows
from steps.phase import FORWARD, Phase
from steps.plan_sections import Part

Weekday = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
Person = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=191)]
CHANGING = tuple(phase for phase in FORWARD if phase is not Phase.VERIFY)


def _once(values: tuple[Any, ...]) -> tuple[Any, ...]:
    twice = [str(value) for value, times in Counter(values).items() if times > 1]
    if twice:
        raise ValueError(f"names {', '.join(twice)} twice")
    return values


class GateWindow(Part):
    """`[gates.window]`: when phases may begin. Times are those of the wall in `time_zone`; over midnight where `to` is before `from`."""

    not_before: datetime | None = None
    not_after: datetime | None = None
    weekdays: tuple[Weekday, ...] = ()
    start: time | None = Field(default=None, alias="from")
    end: time | None = Field(default=None, alias="to")
    time_zone: str = "UTC"
    phases: tuple[Phase, ...] = Field(default=CHANGING, min_length=1)

    @field_validator("not_before", "not_after", "start", "end", mode="before")
    @classmethod
    def _no_numbers(cls, value: object) -> object:
        if isinstance(value, int | float):
            raise ValueError("write a date as 2026-12-01T22:00:00 and a time as 22:00")  # noqa: TRY004  # pydantic takes only these
        return value

    @field_validator("start", "end")
    @classmethod
    def _wall_time(cls, value: time | None) -> time | None:
        if value and value.tzinfo:
            raise ValueError("is a time on the wall of time_zone; leave its offset out")
        return value

    @field_validator("time_zone")
    @classmethod
    def _known_zone(cls, value: str) -> str:
        return windows.zone_of(value).key

    _once = field_validator("weekdays", "phases")(_once)

    @model_validator(mode="after")
    def _opens(self) -> GateWindow:
        if (self.start is None) != (self.end is None):
            raise ValueError("from and to go together")
        if self.start is not None and self.start == self.end:
            raise ValueError("from and to are the same: leave both out for the whole day")
        if not (self.not_before or self.not_after or self.weekdays or self.start):
            raise ValueError("says no time: give not_before, not_after, weekdays, or from and to")
        window = self.window
        if window.not_before and window.not_after and window.not_before >= window.not_after:
            raise ValueError("not_before is not earlier than not_after")
        if window.not_before and window.opens_at(window.not_before) is None:
            raise ValueError("never opens: no such weekday and hour lies between not_before and not_after")
        return self

    @property
    def window(self) -> windows.Window:
        zone = windows.zone_of(self.time_zone)
        first, last = (at.replace(tzinfo=zone) if at and at.tzinfo is None else at for at in (self.not_before, self.not_after))
        return windows.Window(zone, first, last, frozenset(map(windows.WEEKDAYS.index, self.weekdays)), self.start, self.end)

    @property
    def told(self) -> str:
        """In words, in the place's own time; :func:`steps.windows.shown` adds the offset to each moment."""
        window, parts = self.window, [", ".join(self.weekdays)] if self.weekdays else []
        parts += [f"{self.start:%H:%M} to {self.end:%H:%M}"] if self.start and self.end else []
        parts += [f"from {windows.shown(window.not_before, window.zone)} on"] if window.not_before else []
        parts += [f"until {windows.shown(window.not_after, window.zone)}"] if window.not_after else []
        return f"{'; '.join(parts)}, {self.time_zone}"


class Gates(Part):
    """`[gates]`: who has to approve, when phases may begin, and how long one has to have stood before the next begins."""

    approve: tuple[Phase, ...] = Field(default=(), description="phases that wait for an approval; cleanup always does")
    approvers: tuple[Person, ...] = Field(default=(), description="if given, nobody else's approval counts")
    four_eyes: bool = Field(default=False, description="whoever asked for a phase cannot approve it")
    expires_s: int = Field(default=259_200, ge=1, le=2_592_000, description="an approval not used by then is void; so long a gate waits")
    window: tuple[GateWindow, ...] = ()
    soak: dict[Phase, Annotated[int, Field(ge=0, le=31_536_000)]] = Field(default={}, description="seconds by phase")

    @field_validator("window", mode="before")
    @classmethod
    def _one_or_more(cls, value: object) -> object:
        return (value,) if isinstance(value, dict) else value

    _once = field_validator("approve", "approvers")(_once)

    @field_validator("soak")
    @classmethod
    def _something_follows(cls, value: dict[Phase, int]) -> dict[Phase, int]:
        if Phase.CLEANUP in value:
            raise ValueError("cleanup is the last phase: nothing waits for its soak")
        return value

    def windows_of(self, phase: Phase) -> tuple[GateWindow, ...]:
        """Those that hold for *phase*; it may begin when one of them is open."""
        return tuple(window for window in self.window if phase in window.phases)

    def loosened_by(self, other: Gates) -> list[str]:
        """Keys by which *other* asks less of anybody than this: nobody may take a gate out of his own way (`--set`)."""
        lost = {"approve": not set(self.approve) <= set(other.approve), "four_eyes": self.four_eyes and not other.four_eyes,
                "approvers": bool(self.approvers) and not (other.approvers and set(other.approvers) <= set(self.approvers)),
                "window": bool(self.window) and self.window != other.window, "expires_s": other.expires_s > self.expires_s,
                "soak": any(other.soak.get(phase, 0) < seconds for phase, seconds in self.soak.items())}
        return [key for key, is_lost in lost.items() if is_lost]

    def needs_approval(self, phase: Phase) -> bool:
        return phase is Phase.CLEANUP or phase in self.approve
