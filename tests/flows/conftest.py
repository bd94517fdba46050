"""Prefect as the cockpit has it, in a private home, on a server of its own that starts when the first test asks for it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from flows import cockpit
from steps.target import Target
from tests.flows.deploy_stage import Stage
from tests.flows.serving import Runner, Serving

REHEARSING = ("test_bounded_locks.py", "test_end_blockers.py", "test_default_path.py")
HOME = tempfile.mkdtemp(prefix="rollout-prefect-")
# Before anything imports Prefect: it reads these once. Batches, because a transaction per task event is slow on SQLite.
os.environ["PREFECT_HOME"] = HOME
os.environ.update({
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "50", "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_READ_BATCH_SIZE": "50",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "1", "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_READ_BATCH_SIZE": "50",
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_BATCH_SIZE": "100", "PREFECT_LOGGING_TO_API_BATCH_INTERVAL": "0.2",
})
cockpit.prepare(quiet=True)


@pytest.fixture(scope="session")
def prefect_server() -> Iterator[None]:
    """A Prefect server for the session; without heartbeats, whose thread costs each flow run a second."""
    from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings
    from prefect.testing.utilities import prefect_test_harness

    with prefect_test_harness(server_startup_timeout=120), temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}):
        yield
    shutil.rmtree(HOME, ignore_errors=True)


@pytest.fixture(autouse=True)
def mostly_remembered(request: pytest.FixtureRequest) -> None:
    """Where a test is not about what the rehearsal does to others, the same one is not made twice."""
    if request.path.name not in REHEARSING:
        request.getfixturevalue("remembered_rehearsals")


@pytest.fixture
def stage(empty: Target, tmp_path: Path) -> Iterator[Stage]:
    """A small table and a plan for it, both this test's own."""
    with ExitStack() as stack:
        found = Stage(tmp_path, empty, stack)
        yield found
        found.app.close()


@pytest.fixture(scope="session")
def runner(prefect_server: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    """`rollout serve`, once for all: a start of it takes longer than most tests."""
    found = Runner(tmp_path_factory.mktemp("served"))
    yield found
    found.stop()


@pytest.fixture
def serving(runner: Runner, stage: Stage) -> Iterator[Serving]:
    """`rollout serve` for the stage's database."""
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        runner.works_on(stage)
        yield Serving(stage, runner, client)
