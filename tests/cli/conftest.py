"""The command line on a schema of the test's own, whose URL is in the environment."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from steps import rehearsal
from steps.target import ENVIRONMENT, Target
from tests.cli.calling import DEPLOYED, PLAN, Call, caller
from tests.conftest import App
from tests.remembered import remembered


@pytest.fixture(autouse=True)
def quiet_afterwards() -> Iterator[None]:
    """The handler that a command made writes to this test's captured stderr; it must not outlive it."""
    yield
    logger = logging.getLogger("rollout")
    for handler in [h for h in logger.handlers if getattr(h, "_rollout", False)]:
        logger.removeHandler(handler)


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """The command line, with whatever database the test sets."""
    return caller(monkeypatch, capsys)


@pytest.fixture
def here(call: Call, monkeypatch: pytest.MonkeyPatch, url: str) -> Call:
    """The command line with ROLLOUT_DATABASE_URL set to the test's schema."""
    monkeypatch.setenv(ENVIRONMENT, url)
    return call


@pytest.fixture
def begun(here: Call, seeded: App, monkeypatch: pytest.MonkeyPatch) -> App:
    """Nine rows, taken through all five phases by the command line."""
    with monkeypatch.context() as patch:
        patch.setattr(rehearsal, "rehearse", remembered)
        answer = here("run", PLAN, "--no-prefect", "--by", "ann", "--reason", "it is due", *DEPLOYED)
    assert answer.code == 0, answer.text
    return seeded


@pytest.fixture(scope="module")
def crowd(old: Target) -> Target:
    """A schema that many calls share because none of them may change it: the old database and nine jobs."""
    return old


@pytest.fixture
def bystander(crowd: Target) -> Iterator[App]:
    """A client of the shared schema."""
    app = App(crowd)
    yield app
    app.close()


@pytest.fixture
def bystander_url(crowd: Target) -> str:
    """The shared schema as the command line takes it."""
    return crowd.url.render_as_string(hide_password=False)


@pytest.fixture
def there(call: Call, monkeypatch: pytest.MonkeyPatch, bystander_url: str) -> Call:
    """The command line with ROLLOUT_DATABASE_URL set to the shared schema."""
    monkeypatch.setenv(ENVIRONMENT, bystander_url)
    return call
