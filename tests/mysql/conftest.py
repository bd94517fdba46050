"""A small table of the test's own, clients and sessions on it, and rollouts of small plans."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Self

import pymysql
import pytest

from steps import pre_deploy, waits
from steps.mysql import Session
from steps.plan import Plan
from steps.rollout import Person, Rollout, opened, owned
from steps.target import Target
from tests.conftest import App

JOB = """CREATE TABLE job (id VARCHAR(191) NOT NULL, status VARCHAR(32) NOT NULL DEFAULT 'pending', note TEXT NULL,
doneAt DATETIME(3) NULL, PRIMARY KEY (id)) DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci"""

Opened = Callable[..., Rollout]
Clients = Callable[[], App]


@pytest.fixture
def session(empty: Target) -> Iterator[Session]:
    """A session of ours in the test's schema."""
    with Session(empty) as found:
        yield found


@pytest.fixture
def clients(empty: Target) -> Iterator[Clients]:
    """Makes clients of the test's schema, as often as asked."""
    made: list[App] = []

    def make() -> App:
        made.append(App(empty))
        return made[-1]

    yield make
    for client in made:
        client.close()


@pytest.fixture
def job(clients: Clients) -> App:
    """A client of a schema with the table `job`, empty."""
    client = clients()
    client.run(JOB)
    return client


@pytest.fixture
def opened_on(empty: Target) -> Iterator[Opened]:
    """Makes a Rollout of any plan in the test's schema."""
    with ExitStack() as standing:

        def make(plan: Plan, *accepted: str) -> Rollout:
            return standing.enter_context(opened(plan, empty, Person("tester", "because"), frozenset(accepted)))

        yield make


def expand(rollout: Rollout) -> list[str]:
    """Phase 1 from where the table stands; what became of each step."""
    with owned(rollout, "run", {}):
        return [step.run().value for step in pre_deploy.steps(rollout)]


def go_back(rollout: Rollout, *, drop_added: bool = True) -> list[str]:
    """The way back of phase 1."""
    with owned(rollout, "rollback", {}):
        return [step.run().value for step in pre_deploy.back(rollout, drop_added=drop_added)]


def until(condition: Callable[[], object], seconds: float = 10) -> None:
    """Wait for *condition* with short polls; a test that waits in vain fails."""
    deadline = waits.now_s() + seconds
    while not condition():
        assert waits.now_s() < deadline, "waited in vain"
        threading.Event().wait(0.005)


class Aside:
    """A statement that another client sends meanwhile; knows how long it took and how it ended."""

    def __init__(self, client: App, *statements: str) -> None:
        self.client, self.statements = client, statements
        self.seconds = -1.0
        self.error: pymysql.err.MySQLError | None = None
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def _work(self) -> None:
        began = waits.now_s()
        try:
            for statement in self.statements:
                self.client.run(statement)
        except pymysql.err.MySQLError as error:
            self.error = error
        self.seconds = waits.now_s() - began

    @property
    def ended(self) -> bool:
        return not self._thread.is_alive()

    def join(self) -> Self:
        self._thread.join(20)
        assert self.ended, "still waiting"
        return self


class Bystander:
    """Reads and writes the table all the time, each statement on its own; knows its longest one."""

    def __init__(self, client: App) -> None:
        self.client, self.longest_s, self.done = client, 0.0, 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)

    def _work(self) -> None:
        while not self._ended.is_set():
            for statement in ("SELECT COUNT(*) FROM job", "UPDATE job SET note = CONCAT(IFNULL(note, ''), 'x') WHERE id = 'b'"):
                began = waits.now_s()
                self.client.run(statement)
                self.longest_s = max(self.longest_s, waits.now_s() - began)
                self.done += 1

    def __enter__(self) -> Self:
        self._thread.start()
        until(lambda: self.done)
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(20)
