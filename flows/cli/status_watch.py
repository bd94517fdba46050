"""`rollout status --watch`: the rollout as it works, live on a terminal, a line for each change on a pipe. Takes no lock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from typing import Any, Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from flows import actions
from flows.cli.ending import Ending
from flows.glance import Glance, Watched
from flows.params import Request
from flows.phase_facts import GATE, phase_name
from flows.visible import duration, number, one_line
from steps import cancellation, passing, waits
from steps.errors import ConnectionLost, Unreachable
from steps.masking import mask
from steps.phase import Phase
from steps.target import Target

BAR_COLUMNS = 24
STATE_STYLES = {"done": "green", "running": "yellow", "cooling": "yellow", "waiting": "bold yellow", "going back": "bold yellow",
                "fail": "bold red", "inconclusive": "bold red"}
BAD = frozenset({"failed", "fail", "found"})
MARKS = {"done": "✔", "not begun": "·", "undone": "↶", "fail": "✘", "inconclusive": "?"}


class View(Protocol):
    """Where a glance is shown; `last` is what was shown last, and nothing before that."""

    @property
    def last(self) -> object: ...

    def show(self, now: Glance) -> None: ...

    def trouble(self, why: str) -> None:
        """The server cannot be reached; what was shown before is old."""


def follow(request: Request, database: Target, end: Ending, every_s: float, *, until_idle: bool) -> None:
    """
    Look every *every_s* until Ctrl-C, which ends it well, or with *until_idle* until nobody is at work.

    A server that goes away is asked again; one that cannot be reached in the first place is an error.
    """
    view: View
    with cancellation.untold(), _live(end.console) if end.console.is_terminal else nullcontext(Lines(end.say)) as view:
        try:
            while not _followed(request, database, view, every_s, until_idle=until_idle):
                waits.sleep_s(every_s)
        except KeyboardInterrupt:
            return  # Cancelled is one too: whoever watches has seen enough


def _followed(request: Request, database: Target, view: View, every_s: float, *, until_idle: bool) -> bool:
    """Whether it is over; else the connection was lost, and has to be made anew."""
    try:
        with actions.desk(request, database) as desk:
            watched = Watched(desk)
            while True:
                now = watched.look()
                view.show(now)
                if until_idle and not now.at_work:
                    return True
                waits.sleep_s(every_s)
    except (ConnectionLost, Unreachable) as error:
        if not view.last:
            raise
        view.trouble(f"{error.subject}: {error.reason}; asked again every {duration(every_s)}")
        return False


class Lines:
    """A line for each change: a phase, who is at work, what was done, a pass by every tenth or when it waits."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.say = say
        self.last: dict[str, str] = {}
        self._event = -1

    def show(self, now: Glance) -> None:
        stamp = f"{now.at:%H:%M:%SZ}"
        for key, state, text in _facts(now):
            if self.last.get(key) != state:
                self.last[key] = state
                self.say(f"{stamp} {_clean(text)}")
        first = self._event < 0
        for event in now.events:
            if event["id"] > self._event:
                self._event = event["id"]
                if not first:
                    self.say(_clean(_event_line(event)))

    def trouble(self, why: str) -> None:
        if self.last.get("trouble") != why:
            self.last["trouble"] = why
            self.say(_clean(why))


def _facts(now: Glance) -> Iterator[tuple[str, str, str]]:
    """What a line is about, the state it tells of, and the line: said when the state has changed."""
    for key, line in _plain_facts(now):
        yield key, line, line
    for row in now.passes:
        tenth = int(10 * row["rows_examined"] / max(1, row["rows_examined"] + (row["rows_left"] or 0)))
        yield f"pass {row['pass']}", f"{row['sweep']}.{tenth}.{row['paused_for']}", passing.told(row)


def _plain_facts(now: Glance) -> Iterator[tuple[str, str]]:
    yield "trouble", f"watching {now.table}, plan {now.plan}"  # said again once the server is back
    for row in now.phases:
        if row["state"] != "not begun":
            yield f"phase {row['phase']}", f"{Phase(row['phase']).label}: {row['state']}"
    yield "work", _worker(now)
    yield "sync", f"sync triggers: {now.sync}"
    yield "drift", f"drift: {now.drift}" if now.drift else "the table is as the plan left it"
    yield "next", f"next: {now.next}"


class Screen:
    """The whole state, drawn anew each time in its place."""

    def __init__(self, live: Live) -> None:
        self.live = live
        self.last: Glance | None = None

    def show(self, now: Glance) -> None:
        self.last = now
        self.live.update(drawn(now), refresh=True)

    def trouble(self, why: str) -> None:
        if self.last:
            self.live.update(Group(drawn(self.last), Text(_clean(why), style="bold red")), refresh=True)


@contextmanager
def _live(console: Console) -> Iterator[View]:
    own = Console(file=console.file, highlight=False, markup=False, emoji=False)
    with Live(console=own, auto_refresh=False, vertical_overflow="crop", redirect_stderr=False, redirect_stdout=False) as live:
        yield Screen(live)


def drawn(now: Glance) -> RenderableType:
    """What is seen, for a terminal of any width."""
    head = Text(_clean(f"{now.table}, plan {now.plan}, {now.at:%Y-%m-%d %H:%M:%S} UTC"), style="bold")
    table = Table("phase", "state", "for")
    for row in now.phases:
        state = Text(f"{MARKS.get(row['state'], '●')} {row['state']}", style=STATE_STYLES.get(row["state"], ""))
        table.add_row(Phase(row["phase"]).label, state, _age(row, now))
    parts: list[RenderableType] = [head, table, Text(_clean(_worker(now)), style="" if now.at_work or not now.working else "bold red")]
    parts += [_pass(row) for row in now.passes]
    parts.append(Text(f"sync triggers: {now.sync}", style="" if now.sync in ("on", "off") else "bold red"))
    parts += [Text(_clean(f"drift: {now.drift}"), style="bold red")] if now.drift else []
    parts += [Text(_clean(line)) for line in now.left]
    parts.append(Text(_clean(f"next: {now.next}"), style="bold"))
    parts += [Text("  " + _clean(_event_line(event)), style="red" if event["outcome"] in BAD else "dim") for event in now.events]
    return Group(*parts)


def _pass(row: dict[str, Any]) -> RenderableType:
    total = row["rows_examined"] + row["rows_left"] if row["rows_left"] is not None else None
    colour = "red" if row["paused_for"] else "green"
    line = Table.grid(padding=(0, 1))
    line.add_row(ProgressBar(total=total or 1, completed=row["rows_examined"] if total else 0, width=BAR_COLUMNS, complete_style=colour,
                             finished_style=colour), Text(_clean(passing.told(row)), style=colour if row["paused_for"] else ""))
    return line


def _worker(now: Glance) -> str:
    if not now.working:
        return "nobody is at work"
    if not now.at_work:
        return f"{now.working['actor']} on {now.working['host']} is dead (since {now.working['heartbeat_at']}); the next run goes on"
    return f"at work: {now.working['actor']} on {now.working['host']} (pid {now.working['pid']}) since {now.working['since']}"


def _age(row: dict[str, Any], now: Glance) -> str:
    if not row["at"]:
        return ""
    since = datetime.fromisoformat(row["at"])
    return duration(max(0.0, (now.at.replace(tzinfo=UTC) - since).total_seconds()))


def _event_line(event: dict[str, Any]) -> str:
    figures = [f"{number(event['duration_ms'])} ms"] if event["duration_ms"] is not None else []
    figures += [f"{event['row_count']} rows"] if event["row_count"] is not None else []
    said = [f" by {event['by']}"] if event.get("by") else []
    said += [f": {event['why']}"] if event.get("why") else []
    return (f"{event['at']:%H:%M:%SZ} {phase_name(event['phase'], event['direction'])}: {event['step']}, {event['outcome']}"
            + (f" ({', '.join(figures)})" if figures else "") + ("".join(said) if event["step"] == GATE else ""))


def _clean(text: str) -> str:
    return mask(one_line(text))
