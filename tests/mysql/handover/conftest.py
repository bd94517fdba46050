"""The stage's table in a schema of the test's own, and the real pt-online-schema-change; without it these tests fail."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from deploy.percona_toolkit import provide_pt_osc
from steps.plan import Plan
from steps.rollout import Person, Rollout, opened
from steps.target import Target
from tests.conftest import App, statements
from tests.mysql.handover.stage import TABLES, Make


@pytest.fixture(scope="module")
def tool() -> str:
    return provide_pt_osc()


@pytest.fixture
def app(empty: Target) -> Iterator[App]:
    client = App(empty)
    for statement in statements(TABLES):
        client.rows(statement)
    yield client
    client.close()


@pytest.fixture
def make(app: App, empty: Target) -> Iterator[Make]:
    """Opens a rollout on the test's schema; all are closed at the end."""
    contexts = []

    def opening(plan: Plan) -> Rollout:
        contexts.append(opened(plan, empty, Person("tester", "because"), frozenset()))
        return contexts[-1].__enter__()

    yield opening
    for context in reversed(contexts):
        context.__exit__(None, None, None)
