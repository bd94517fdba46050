"""V0's instances behind one HAProxy are replaced one by one by the deploy phase, and back by the automatic rollback, under load."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from deploy.mysql_server import Server
from flows.demo.traffic import Report
from flows.demo.traffic.failure import LOST
from flows.demo.traffic.session import Session
from steps.errors import RolledBack
from tests.applications import proxy, replacing, service
from tests.applications.proxied_stage import ProxiedStage
from tests.applications.proxy import provider
from tests.applications.scenarios import FAULTY, FaultyRelease
from tests.traffic.conftest import staged

pytestmark = pytest.mark.timeout(600)  # the first of these tests may have to install Node packages, and HAProxy

SOAK_S = 1.0
V0, V1 = ["v0-1", "v0-2", "v0-3"], ["v1-1", "v1-2", "v1-3"]


@pytest.fixture(autouse=True)
def slept() -> None:
    """Waits are real here: tries for a gap a millisecond apart would kill transactions of the traffic (F24)."""


@pytest.fixture
def stage(server: Server, tmp_path: Path) -> Iterator[ProxiedStage]:
    with staged(ProxiedStage, server, tmp_path) as found:
        yield found


def phases(stage: ProxiedStage) -> dict[object, object]:
    return dict(stage.rows("SELECT phase, state FROM _rollout_phase"))  # type: ignore[arg-type]


def last_exit(stage: ProxiedStage) -> object:
    return stage.rows("SELECT exit_code FROM _rollout_run ORDER BY started_at DESC LIMIT 1")[0][0]


def answered(report: Report, label: str) -> set[str]:
    """Which generations answered under *label*; the one request that a change of labels may find under way left out."""
    return {side.split()[0] for (phase, side), counts in report.sides.items() if phase == label and counts.requests > 1}


def assert_nothing_was_lost(report: Report, wrong: list[object]) -> None:
    assert (dict(report.failed), report.wrong_reads, report.run_twice, wrong) == ({}, 0, 0, []), report.examples
    assert report.acknowledged_writes > 50


def test_v0_is_replaced_by_v1_one_by_one_behind_one_address_and_no_client_notices(stage: ProxiedStage) -> None:
    stage.start("v0")
    stage.soak("before", SOAK_S)
    assert stage.instances() == V0
    assert stage.forward().did == ["pre_deploy", "deploy", "backfill", "verify", "shadow_write"]
    stage.soak("after", SOAK_S)
    report, wrong = stage.ended()

    assert_nothing_was_lost(report, [*wrong])
    assert stage.replaced() == [["v0-2", "v0-3", "v1-1"], ["v0-3", "v1-1", "v1-2"], V1]
    assert stage.instances() == V1
    assert (answered(report, "before"), answered(report, "2. deploy"), answered(report, "after")) == ({"v0"}, {"v0", "v1"}, {"v1"})
    for side in ("v0 haproxy", "v1 haproxy"):
        assert report.sides["2. deploy", side].acknowledged_writes > 2, side
    assert set(phases(stage).values()) == {"done"}
    assert last_exit(stage) == 0


def test_a_failed_verify_replaces_v1_by_v0_one_by_one_behind_one_address_and_no_client_notices(stage: ProxiedStage) -> None:
    stage.start("v0", 2)
    with pytest.raises(RolledBack) as failed:
        stage.forward("verify.on_fail=v0", conductor=FaultyRelease(stage))
    stage.soak("V0 again", SOAK_S)
    report, wrong = stage.ended(old_side_only=True)

    assert failed.value.exit_code == 5
    assert FAULTY in str(failed.value)
    assert_nothing_was_lost(report, [*wrong])
    assert stage.replaced() == [["v0-2", "v1-1"], V1[:2], ["v0-1", "v1-2"], V0[:2]]
    assert stage.instances() == V0[:2]
    for label in ("2. deploy", "rollback of deploy"):
        assert answered(report, label) == {"v0", "v1"}, label
    assert answered(report, "V0 again") == {"v0"}
    assert phases(stage) == dict.fromkeys(("pre_deploy", "deploy", "backfill", "verify"), "undone")
    assert stage.rows("SHOW TRIGGERS") == []
    assert last_exit(stage) == 5


@contextmanager
def requests_in_hand(stage: ProxiedStage, name: str) -> Iterator[None]:
    """Nobody gets an answer: the table is locked until the end, and the instance *name* has requests in hand by now."""
    session = Session(stage.url, "test")
    session.run("LOCK TABLES AiAnalysisJob WRITE")
    until(lambda: bool(seen(stage, name).in_hand))
    yield
    session.run("UNLOCK TABLES")
    session.close()


def seen(stage: ProxiedStage, name: str) -> proxy.Instance:
    (found,) = [instance for instance in stage.proxy.instances() if instance.name == name]
    return found


def until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_an_instance_that_is_drained_answers_what_it_has_in_hand_and_one_that_just_ends_is_counted_as_failures(stage: ProxiedStage) -> None:
    stage.start("v0")
    stage.label("drained")
    with requests_in_hand(stage, "v0-1"):
        going = threading.Thread(target=replacing.go, args=(stage.folder, "v0-1"))
        going.start()
        until(lambda: seen(stage, "v0-1").state == "DRAIN")
    going.join()
    stage.soak("without it", SOAK_S)
    stage.soak("between", SOAK_S / 2)  # whoever is killed has nothing in hand that began earlier
    stage.label("killed")
    with requests_in_hand(stage, "v0-2"):
        lost = seen(stage, "v0-2").in_hand
        os.kill(replacing.pid(stage.folder, "v0-2"), signal.SIGKILL)
        until(lambda: not seen(stage, "v0-2").in_hand)
    stage.soak("one is left", SOAK_S)
    report, wrong = stage.ended()

    assert stage.instances() == ["v0-2", "v0-3"]
    assert (report.phases["drained"].failures, report.phases["without it"].failures) == (0, 0)
    assert set(report.failed) == {LOST}
    assert report.failed[LOST] >= lost > 0
    assert wrong == []


def test_the_proxy_ends_with_its_owner_also_when_that_is_killed(tmp_path: Path) -> None:
    holding = """import sys, time, pathlib; from tests.applications import proxy
with proxy.running(pathlib.Path(sys.argv[1])) as p: print(p.address, flush=True); time.sleep(60)"""
    with subprocess.Popen([sys.executable, "-c", holding, str(tmp_path)], cwd=service.ROOT, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout
        where = urlsplit(owner.stdout.readline().strip())
        assert listens(where.port)
        owner.kill()
    until(lambda: not listens(where.port))


def listens(port: int | None) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port or 0)) == 0


def test_without_haproxy_the_reason_and_the_remedy_are_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old = tmp_path / "haproxy"
    old.write_text("#!/bin/sh\necho HAProxy version 1.8.4\n")
    old.chmod(0o755)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(proxy.NoProxyError, match=r"apt-get is missing; install HAProxy 2\.6 or newer \(Debian: haproxy\)"):
        proxy.provide_haproxy()

    old.write_text("#!/bin/sh\necho HAProxy version 2.8.1\n")
    assert proxy.provide_haproxy() == (str(old),)
    assert provider.OLDEST == (2, 6)
