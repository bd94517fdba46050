"""The server's disk is full in the middle of a run (case C26): told as that, stopped, nothing half done, continued once there is room."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from deploy.mysql_server import Server, provide
from steps import ddl, passes
from tests.cli.calling import DEPLOYED, PLAN, Call, phases
from tests.conftest import App
from tests.faults.small_disk import SmallDisk, small_disk

pytestmark = pytest.mark.usefixtures("remembered_rehearsals")
RUN = ("run", PLAN, "--no-prefect", "--by", "ann", "--reason", "it is due", *DEPLOYED)
BACK = ("rollback", PLAN, "--no-prefect", "--by", "ann", "--reason", "it is due", "--to", "v0", "--drop-added", "--accept", "discard-added",
        *DEPLOYED)
MEGABYTES = 500
SMALL = ("--innodb-redo-log-capacity=16M", "--innodb-buffer-pool-size=32M")


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallDisk]:
    with small_disk(tmp_path_factory.mktemp("disk") / "small", MEGABYTES) as found:
        yield found


@pytest.fixture(scope="module")
def own(disk: SmallDisk, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose data are on that disk, and whose binary log is not: that one would hold every commit up."""
    log = tmp_path_factory.mktemp("log") / "binlog"
    with provide(folder=disk.folder / "server", options=(*SMALL, f"--log-bin={log}")) as server:
        yield server


@pytest.fixture
def full_before(disk: SmallDisk) -> Iterator[Callable[[Any, str], None]]:
    """The disk is full from just before *owner*'s *name* is first called, until the disk is emptied."""
    with pytest.MonkeyPatch.context() as patch:
        def fill_before(owner: Any, name: str) -> None:
            real, once = getattr(owner, name), list[bool]()

            def called(*args: Any, **more: Any) -> Any:
                if not once:
                    once.append(True)
                    disk.fill()
                return real(*args, **more)

            patch.setattr(owner, name, called)

        yield fill_before
    disk.empty()


@pytest.mark.parametrize(("owner", "name"), [(ddl, "_send"), (passes, "fill")], ids=["a copy", "the first pass"])
def test_a_full_disk_stops_the_run_and_the_same_command_ends_it(here: Call, job: App, disk: SmallDisk,
                                                                full_before: Callable[[Any, str], None], owner: Any, name: str) -> None:
    full_before(owner, name)

    stopped = here(*RUN)

    assert stopped.code == 4, stopped.text
    assert "is full" in stopped.text
    assert "make room as large as the table with its indexes, on the data disk and in tmpdir" in stopped.text
    assert "same command" in stopped.text
    assert len(job.triggers()) in (0, 2)
    disk.empty()
    again = here(*RUN)
    assert again.code == 0, again.text
    assert set(phases(job).values()) == {"done"}
    assert job.value("SELECT COUNT(*) FROM AiAnalysisJob WHERE status = 'completed' AND lifecycleStatus <> 'succeeded'") == 0


def test_a_full_disk_on_the_way_back_is_no_failure_of_it(here: Call, job: App, disk: SmallDisk,
                                                         full_before: Callable[[Any, str], None]) -> None:
    before = job.create_table()
    assert here(*RUN).code == 0
    full_before(ddl, "_send")

    stopped = here(*BACK)

    assert stopped.code == 4, stopped.text
    assert "is full" in stopped.text
    disk.empty()
    again = here(*BACK)
    assert again.code == 0, again.text
    assert job.create_table() == before
