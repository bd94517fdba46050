"""
What every way of deploying does: look, put out, take back. Each asks the deploy system what is true before it acts.

What a way must know to take a generation back is in the ledger before its first change, so that a run that was killed at any
point can be continued, or taken back, by the same command.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from steps import waits
from steps.errors import DeployFailed, DeploySystemAway, RolloutError

T = TypeVar("T")
TRIES = 4
FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 5.0


class Deadline:
    """A moment that everything about one deploy has to be done by."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._at_s = waits.now_s() + seconds

    @property
    def left_s(self) -> float:
        return max(0.0, self._at_s - waits.now_s())

    @property
    def passed(self) -> bool:
        return self.left_s <= 0


@dataclass(frozen=True)
class Job:
    """
    One generation on its way out, or back.

    `known` is what the way remembered when it looked; `keep` replaces it, in the ledger, before it returns. `begins` is told the id of
    each process that changes something, before it starts: it outlives a tool that is killed.
    """

    plan_id: str
    table: str
    generation: str
    run_id: str
    deadline: Deadline
    every_s: float
    known: dict[str, Any]
    keep: Callable[[dict[str, Any]], None]
    begins: Callable[[int], None] = lambda _: None

    def learn(self, **facts: Any) -> None:
        """Add *facts* to what is known, in the ledger first."""
        self.keep({**self.known, **facts})
        self.known.update(facts)


class DeployWay(Protocol):
    """One way of deploying. All of it is safe to repeat, after a kill too."""

    @property
    def name(self) -> str:
        """As in `deploy.how`."""

    def puts_out(self, generation: str) -> bool:
        """Whether the plan tells this way what *generation* is."""

    def cannot_take_back(self, generation: str, known: dict[str, Any]) -> str | None:
        """Why this way cannot return to *generation*, or None. Asks nobody."""

    def ready(self) -> None:
        """
        Asks nobody.

        Raises:
            Stopped: something that it needs on this machine is not here.
        """

    def look(self, generation: str, known: dict[str, Any]) -> dict[str, Any]:
        """
        What has to be known to take *generation* back again, with what is *known* already kept. Changes nothing.

        Raises:
            Stopped: the deploy system does not answer, does not let us in, or has no such thing.
        """

    def reach(self, known: dict[str, Any]) -> None:
        """Before anything is undone: does the deploy system answer, and is what was changed still there? Raises Stopped as `look`."""

    def put_out(self, job: Job) -> dict[str, Any]:
        """
        Put the job's generation out and wait until it is; return what the ledger shall say of it.

        Raises:
            DeployFailed: it failed, or did not come before the deadline.
            DeploySystemAway: nobody knows; the same command looks again.
        """

    def take_back(self, job: Job) -> dict[str, Any]:
        """Return to the job's generation, the one before, and wait until it stands. Raises the same."""


def patiently(action: Callable[[], T]) -> T:
    """Call *action* until the deploy system answers, a few times. Raises DeploySystemAway when it does not."""
    return waits.retry(action, tries=TRIES, first_wait_s=FIRST_WAIT_S, longest_wait_s=LONGEST_WAIT_S)


def wait_until(missing: Callable[[], str | None], deadline: Deadline, every_s: float, what: str, remedy: str,
               short: str = "did not come") -> None:
    """
    Ask *missing* every *every_s* seconds until it names nothing.

    Raises:
        DeployFailed: something was still missing at the deadline; names it.
        DeploySystemAway: nobody answered any more at the deadline.
    """
    while True:
        away: RolloutError | None = None
        left = None
        try:
            left = missing()
            if left is None:
                return
        except DeploySystemAway as error:
            away = error
        if deadline.passed:
            if away:
                raise away
            raise DeployFailed(what, f"{short} within {deadline.seconds:g} s: {left}", remedy)
        waits.sleep_s(min(every_s, max(deadline.left_s, 0.01)))
