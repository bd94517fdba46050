"""One generation's clients as threads of one process, steered by files, and never left over."""

import json
import os
import signal
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from flows.demo.traffic.client import Client, Surroundings
from flows.demo.traffic.generations import GENERATIONS, TABLE, Generation
from flows.demo.traffic.journal import SUFFIX, Journal, note_pending
from flows.demo.traffic.producer import Producer
from flows.demo.traffic.reader import Reader
from flows.demo.traffic.session import Session
from flows.demo.traffic.tally import Tally
from flows.demo.traffic.worker import Worker

URL_NAME = "ROLLOUT_TRAFFIC_URL"
REPORT_S = 0.5
USERS = 8
ROLES: tuple[type[Client], ...] = (Producer, Worker, Reader)
NO_LABEL = "start"
Cast = Mapping[str, Sequence[type[Client]]]


@dataclass(frozen=True)
class Settings:
    """
    What one process is told. *rate_per_s* is for all clients together; *control* holds the phase label.

    It ends at SIGTERM, after *seconds*, when `<control>.stop.<generation>` appears, or when the process *watched*
    (a pid, 0 for none) is gone. *report* gets a JSON line every half second; the journal lies beside it.
    The clients ask the *application* at that URL, made of *stack*; without one they are the application.
    """

    url: str
    generation: str
    report: Path
    control: Path
    health: Path | None
    clients: int
    rate_per_s: float
    seconds: float
    watched: int
    application: str | None = None
    stack: str = ""


def stop_file(control: Path, generation: str) -> Path:
    """Return the file whose appearance ends the *generation*'s processes."""
    return control.with_name(f"{control.name}.stop.{generation}")


def alive(pid: int) -> bool:
    """Tell whether there is a process *pid*, ours or not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


@dataclass(frozen=True)
class _Part:
    """Clients that are accounted for together: they have a report and a journal of their own. *stack* names them in it."""

    report: Path
    stack: str
    tally: Tally
    journal: Journal
    clients: list[Client]


def run(settings: Settings, cast: Cast | None = None) -> None:
    """
    Run the clients until told to end; then let each finish its request and its job, and write the final report.

    A *cast* says who plays, by the names of parts which are accounted for each by itself; without one all are one part, and take
    the roles in turn. The rate is for all together.

    Raises:
        pymysql.err.MySQLError: the database does not answer at the start; nothing was done.
        LookupError: it has no users.
    """
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    generation = GENERATIONS[settings.generation]
    users, label = _prepare(settings, generation), _Label(settings.control)
    roles = cast or {"": [ROLES[number % len(ROLES)] for number in range(settings.clients)]}
    interval_s = sum(map(len, roles.values())) / settings.rate_per_s
    parts = []
    for name, types in roles.items():
        report = settings.report.with_stem("-".join(filter(None, (settings.report.stem, name.replace(" ", "_")))))
        stack = f"{settings.stack} {name}".strip()
        tally, journal = Tally(), Journal(report.with_suffix(SUFFIX), label, stack)
        shared = Surroundings(settings.url, generation, users, journal, tally, label, stopped, interval_s, settings.application)
        parts.append(_Part(report, stack, tally, journal, [role(shared, number) for number, role in enumerate(types)]))
    threads = [threading.Thread(target=client.run, name=client.name) for part in parts for client in part.clients]
    for thread in threads:
        thread.start()
    try:
        _report_until_stopped(settings, stopped, parts)
    finally:
        stopped.set()
        for thread in threads:
            thread.join()
    for part in parts:
        part.journal.close()
        _append(part, final=True)


class _Label:
    """The phase label in the control file, read anew at every request."""

    def __init__(self, control: Path) -> None:
        self._control = control

    def __call__(self) -> str:
        try:
            return self._control.read_text(encoding="utf-8").strip() or NO_LABEL
        except FileNotFoundError:
            return NO_LABEL


def _prepare(settings: Settings, generation: Generation) -> tuple[str, ...]:
    """Note which jobs wait already, and return the users on whose behalf the clients ask."""
    session = Session(settings.url, f"traffic-{generation.name}")
    columns = {row["Field"] for row in session.rows(f"SHOW COLUMNS FROM `{TABLE}`")}
    # status as long as there is one: before the first pass, lifecycleStatus calls all of history pending (F17)
    state = "status" if "status" in columns else "lifecycleStatus"
    waiting = session.rows(f"SELECT `id` FROM `{TABLE}` WHERE `{state}` = 'pending'")
    note_pending(settings.report, [row["id"] for row in waiting])
    users = session.rows("SELECT `id` FROM `User` ORDER BY `id` LIMIT %s", USERS)
    session.close()
    if not users:
        raise LookupError("the database has no users; seed() it first")
    return tuple(row["id"] for row in users)


def _report_until_stopped(settings: Settings, stopped: threading.Event, parts: list[_Part]) -> None:
    deadline, healthy = time.monotonic() + settings.seconds, False
    written = 0.0
    while not stopped.wait(0.1) and not _told_to_end(settings) and time.monotonic() < deadline:
        if settings.health and not healthy and all(client.succeeded.is_set() for part in parts for client in part.clients):
            healthy = True
            settings.health.touch()
        if time.monotonic() - written >= REPORT_S:
            written = time.monotonic()
            for part in parts:
                _append(part, final=False)


def _told_to_end(settings: Settings) -> bool:
    orphaned = bool(settings.watched) and not alive(settings.watched)
    return orphaned or stop_file(settings.control, settings.generation).exists()


def _append(part: _Part, *, final: bool) -> None:
    line = {"pid": os.getpid(), "stack": part.stack, "at": time.monotonic(), "final": final}
    with part.report.open("a", encoding="utf-8") as report:
        report.write(json.dumps(line | part.tally.as_json()) + "\n")
