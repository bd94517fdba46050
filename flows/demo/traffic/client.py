"""What all clients have in common: a pace, one request at a time, and an account of how each ended."""

import random
import sys
import threading
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from flows.demo.traffic.failure import BROKEN, Kind, kind_of
from flows.demo.traffic.generations import Generation
from flows.demo.traffic.http_model import HttpModel
from flows.demo.traffic.journal import Journal
from flows.demo.traffic.model import Model
from flows.demo.traffic.session import Session
from flows.demo.traffic.sql_model import SqlModel
from flows.demo.traffic.tally import Tally

OWN_BUG = -1
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
# Texts that a careless conversion would change: padding, escapes, four-byte characters, emptiness, composed accents.
TEXTS = (
    "",
    " ",
    "timeout after 30 s ",
    "分析失败: 模型超时 \U0001f916",
    "it's 100 % \\ broken\n\tat worker.ts:48",
    "Cafe\u0301 \x00 \U0001f9ea",
)


def now() -> datetime:
    """Return UTC now as DATETIME(3) keeps it: milliseconds, no time zone."""
    moment = datetime.now(UTC).replace(tzinfo=None)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def cuid(milliseconds: int, dice: random.Random) -> str:
    """Return an id like Prisma's `cuid()`: c, the time in base 36, then chance; 25 characters."""
    stamp = ""
    while milliseconds:
        milliseconds, digit = divmod(milliseconds, 36)
        stamp = DIGITS[digit] + stamp
    return "c" + stamp.rjust(8, "0")[-8:] + "".join(dice.choices(DIGITS, k=16))


@dataclass(frozen=True)
class Surroundings:
    """
    What one process's clients share. *label* is asked at every request; *interval_s* is a client's mean pace.

    With *application*, an application's base URL, the clients ask that one; else they are the application themselves.
    """

    url: str
    generation: Generation
    users: tuple[str, ...]
    journal: Journal
    tally: Tally
    label: Callable[[], str]
    stopped: threading.Event
    interval_s: float
    application: str | None = None


class Client(ABC):
    """One application instance with its own connection; a role says what its next request is."""

    def __init__(self, shared: Surroundings, number: int) -> None:
        self.shared, self.generation = shared, shared.generation
        self.name = f"{shared.generation.name}-{type(self).__name__.lower()}-{number}"
        self.dice = random.Random()
        self.succeeded = threading.Event()
        self.model = self._model()

    @abstractmethod
    def request(self) -> None:
        """Make the next request; errors are the model's and leave the role's own state as it was."""

    def _model(self) -> Model:
        shared = self.shared
        if shared.application:
            return HttpModel(self.generation, shared.application, shared.journal, self._wrong)
        return SqlModel(self.generation, Session(shared.url, f"traffic-{self.name}"), shared.journal, self._wrong)

    def perhaps(self, probability: float) -> bool:
        """Throw the dice."""
        return self.dice.random() < probability

    def unfinished(self) -> bool:
        """Tell whether the role holds work that it should end before it stops."""
        return False

    def run(self) -> None:
        """Make requests at the pace until stopped, then end what is in hand, within a few tries."""
        while not self.shared.stopped.wait(self.shared.interval_s * self.dice.uniform(0.4, 1.6)):
            self.attempt()
        tries = 5
        while self.unfinished() and tries:
            self.attempt()
            tries -= 1
        self.model.close()

    def attempt(self) -> None:
        """Make one request and account for it, whatever happens."""
        kind: Kind | None = None
        label, begun = self.shared.label(), time.monotonic()
        try:
            self.request()
        except BROKEN as error:
            kind = kind_of(error)
        except Exception:  # noqa: BLE001  # a client that dies silently would make the traffic look well
            traceback.print_exc(file=sys.stderr)
            kind = OWN_BUG
        self.shared.tally.ended(label, self.model.answered.name, begun, kind)
        if kind is None:
            self.succeeded.set()
        else:
            self.model.recover()

    def _wrong(self, column: str, job: str) -> None:
        self.shared.tally.wrong(self.shared.label(), self.model.answered.name, column, job)
