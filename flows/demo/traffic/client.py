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

from flows.demo.traffic.generations import Generation
from flows.demo.traffic.journal import Journal
from flows.demo.traffic.model import Model
from flows.demo.traffic.session import BROKEN, Session, errno_of
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
    """What one process's clients share. *label* is asked at every request; *interval_s* is a client's mean pace."""

    url: str
    generation: Generation
    users: tuple[str, ...]
    journal: Journal
    tally: Tally
    label: Callable[[], str]
    stopped: threading.Event
    interval_s: float


class Client(ABC):
    """One application instance with its own connection; a role says what its next request is."""

    def __init__(self, shared: Surroundings, number: int) -> None:
        self.shared, self.generation = shared, shared.generation
        self.name = f"{shared.generation.name}-{type(self).__name__.lower()}-{number}"
        self.dice = random.Random()
        self.succeeded = threading.Event()
        self._session = Session(shared.url, f"traffic-{self.name}")
        self.model = Model(self.generation, self._session, shared.journal, self._wrong)

    @abstractmethod
    def request(self) -> None:
        """Make the next request; errors are pymysql's and leave the role's own state as it was."""

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
        self._session.close()

    def attempt(self) -> None:
        """Make one request and account for it, whatever happens."""
        label, begun, errno = self.shared.label(), time.monotonic(), None
        try:
            self.request()
        except BROKEN as error:
            errno = errno_of(error)
        except Exception:  # noqa: BLE001  # a client that dies silently would make the traffic look well
            traceback.print_exc(file=sys.stderr)
            errno = OWN_BUG
        self.shared.tally.ended(label, begun, errno)
        if errno is None:
            self.succeeded.set()
        else:
            self._session.recover()

    def _wrong(self, column: str, job: str) -> None:
        self.shared.tally.wrong(self.shared.label(), column, job)
