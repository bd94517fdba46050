"""Proof that the failures of real applications, on Prisma's client and on SQLAlchemy's ORM, are seen; and what their models are."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from flows.demo.traffic.failure import LOST, ApplicationFailedError
from flows.demo.traffic.generations import GENERATIONS, V0_COLUMNS
from flows.demo.traffic.http_model import HttpModel
from flows.demo.traffic.journal import Journal, read_history
from flows.demo.traffic.session import Session
from flows.params import Through
from tests.applications import installed, service
from tests.applications.schema import schemas
from tests.applications.stage import Stage

pytestmark = pytest.mark.timeout(600)  # the first of these tests may have to install Node packages

SOAK_S = 1.0


@pytest.fixture(autouse=True)
def slept() -> None:
    """Waits are real here: tries for a gap a millisecond apart would kill transactions of the traffic (F24)."""


def test_a_rename_in_place_fails_every_request_of_v0_from_then_on(stage: Stage) -> None:
    stage.start("v0")
    stage.soak("before", SOAK_S)
    stage.forward("path=adr", accept=["rename-in-place"], through=Through.PRE_DEPLOY)
    stage.soak("renamed", SOAK_S)
    report, wrong = stage.ended()

    assert report.phases["before"].failures == 0
    renamed = report.sides["renamed", "v0 prisma"]
    assert renamed.requests > 2
    assert set(renamed.failed) == {"P2022"}  # F2
    assert renamed.failed["P2022"] >= renamed.requests - 1  # one may have been under way when the label changed
    other = report.sides["renamed", "v0 sqlalchemy"]
    assert set(other.failed) == {1054}
    assert other.failed[1054] >= other.requests - 1
    assert other.requests > 2
    assert {row.column for row in wrong} <= {"lifecycleStatus"}  # no sync before phase 5 on this path


def test_an_instance_that_dies_is_counted_and_its_last_writes_are_either_or(stage: Stage) -> None:
    stage.start("v0")
    stage.soak("alive", SOAK_S)
    for file in stage.folder.glob("v0-*.json"):
        os.kill(json.loads(file.read_text())["pid"], signal.SIGKILL)
    stage.soak("dead", SOAK_S)
    report, wrong = stage.ended()

    assert report.phases["alive"].acknowledged_writes > 0
    assert report.phases["dead"].failed[LOST] > 5
    assert set(report.failed) == {LOST}
    assert wrong == []


def test_without_node_the_reason_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(installed.NotInstalledError, match="npm is not on the PATH"):
        installed.clients()


@pytest.mark.parametrize(("stack", "kinds"), [
    ("prisma", {1213: 1213, 1412: 1412, 1644: "P2039"}), ("sqlalchemy", {1213: 1213, 1412: 1412, 1644: "1644"})])
def test_an_application_says_which_error_mysql_gave_and_a_refused_write_is_none(stage: Stage, stack: str,
                                                                                 kinds: dict[int, int | str]) -> None:
    base = service.start(stage.url, stage.folder, "v0", stack, watched=os.getpid())
    session = Session(stage.url, "test")
    journal = Journal(stage.folder / "by_hand.journal", lambda: "test")
    model = HttpModel(GENERATIONS["v0"], base, journal, lambda *_: None)
    (job,) = session.rows("SELECT id FROM AiAnalysisJob LIMIT 1")
    seen: dict[int, object] = {}

    for number in kinds:
        session.run("CREATE TRIGGER broken BEFORE UPDATE ON AiAnalysisJob FOR EACH ROW SIGNAL SQLSTATE '45000' "
                    f"SET MYSQL_ERRNO = {number}, MESSAGE_TEXT = 'said by a test'")
        with pytest.raises(ApplicationFailedError) as failed:
            model.update(job["id"], {"progress": 77})
        assert not failed.value.unknown
        seen[number] = failed.value.kind
        session.run("DROP TRIGGER broken")
    assert model.update(job["id"], {"progress": 78}, {"userId": "nobody"}) is False
    model.close()
    session.close()

    assert seen == kinds
    assert read_history(stage.folder).chains == {}


def test_v0s_schema_is_the_baseline_and_v2s_lacks_what_cleanup_removes() -> None:
    texts = schemas()

    def fields(generation: str) -> list[str]:
        body = texts[generation].split("model Ai", 1)[1].splitlines()[1:]
        seen = [line for line in body[:body.index("")] if line.strip() and not line.lstrip().startswith("//") and "@ignore" not in line]
        return [line.split()[0] for line in seen]

    assert fields("v0") == [*V0_COLUMNS, "user"]
    assert set(fields("v1")) - set(fields("v2")) == {"status", "sessionId", "answerId"}
    assert not {"completedAt", "errorMessage"} & set(fields("v1"))
