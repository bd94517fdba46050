"""Every way of deploying inside a rollout: exit codes, ledger, kill -9 and the same command again, V2 and back."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flows.params import Through
from steps.deploys import kubernetes_api
from steps.errors import RollbackFailed, RolledBack, Stopped, WaitingForPerson
from tests.doubles.compose_project import BEFORE as COMPOSE_BEFORE
from tests.doubles.compose_project import Project
from tests.doubles.deploy_service import TOKEN, DeployServiceDouble
from tests.doubles.kubernetes_double import Cluster, kubernetes
from tests.doubles.serving import serving
from tests.flows.deploy_stage import Stage

BEFORE = {"api": "shop/api:0", "worker": "shop/worker:0"}
V1 = {"api": "shop/api:1", "worker": "shop/worker:1"}


class Shop:
    """The cluster, and the plan's section for it."""

    def __init__(self, cluster: Cluster, address: str, folder: Path) -> None:
        self.cluster = cluster
        self.section = {"namespace": "shop", "kubeconfig": str(cluster.config(folder, address)), "workload": [
            {"deployment": "api", "container": "app", "images": {"v1": "shop/api:1", "v2": "shop/api:2"}},
            {"deployment": "worker", "container": "app", "images": {"v1": "shop/worker:1"}}]}

    @property
    def images(self) -> dict[str, str]:
        return {name: self.cluster.image(name, "app") for name in ("api", "worker")}


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    with kubernetes() as (cluster, address):
        yield Shop(cluster, address, tmp_path)


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> DeployServiceDouble:
    monkeypatch.setenv("DEPLOY_TOKEN", TOKEN)
    return DeployServiceDouble()


@pytest.fixture
def http(service: DeployServiceDouble) -> Iterator[dict[str, Any]]:
    """`[deploy.http]` for the service."""
    with serving(service.answer) as address:
        yield {"start_url": f"{address}/deploys", "status_url": f"{address}/deploys/{{id}}", "undo_url": f"{address}/deploys/{{id}}/undo",
               "bodies": {"v1": {"version": "1"}}, "token_env": "DEPLOY_TOKEN", "id_at": "deploy.id", "status_at": "deploy.state"}


def test_kubernetes_there_and_back_leaves_what_it_needs_in_the_ledger(stage: Stage, shop: Shop) -> None:
    stage.plan(how="kubernetes", kubernetes=shop.section)

    assert stage.run().did == ["pre_deploy", "deploy"]

    state, detail = stage.phase()
    assert (shop.images, state, detail["how"]) == (V1, "done", "by kubernetes")
    assert detail["known"] == {"kubernetes": {"api/app": "shop/api:0", "worker/app": "shop/worker:0"}}
    assert stage.run().outcome == "nothing to do"

    assert stage.back().did == ["deploy"]
    assert (shop.images, stage.phase()) == (BEFORE, ("undone", {}))


def test_a_rollout_that_gives_up_is_taken_back_with_exit_5_and_runs_again(stage: Stage, shop: Shop) -> None:
    stage.plan(how="kubernetes", kubernetes=shop.section)
    shop.cluster.stuck_at, shop.cluster.gives_up = 2, True
    shop.cluster.after_patch = lambda: setattr(shop.cluster, "stuck_at", 2 if shop.cluster.patches[-1][1].endswith(":1") else None) is None

    with pytest.raises(RolledBack, match="ProgressDeadlineExceeded") as failed:
        stage.run()

    assert (failed.value.exit_code, stage.exit_code()) == (5, 5)
    assert (shop.images, stage.phase()) == (BEFORE, ("undone", {}))
    assert len(stage.app.triggers()) == 2
    shop.cluster.after_patch, shop.cluster.stuck_at = lambda: True, None
    assert stage.run().did == ["deploy"]
    assert shop.images == V1


def test_a_cluster_that_does_not_let_us_in_stops_with_exit_4_and_nothing_begun(stage: Stage, shop: Shop) -> None:
    stage.plan(how="kubernetes", kubernetes=shop.section)
    shop.cluster.denied = {("get", "deployments"): 403}

    with pytest.raises(Stopped, match="a Role with get on deployments"):
        stage.run()

    assert (stage.exit_code(), stage.phase(), shop.images) == (4, ("-", {}), BEFORE)
    shop.cluster.denied.clear()
    assert stage.run().did == ["deploy"]


def test_a_way_back_that_fails_needs_a_person_and_may_be_repeated(stage: Stage, shop: Shop) -> None:
    stage.plan(how="kubernetes", kubernetes=shop.section)
    stage.run()
    shop.cluster.denied = {("patch", "deployments"): 403}

    with pytest.raises(RollbackFailed, match="patch was denied"):
        stage.back()

    assert (stage.exit_code(), stage.phase()[0]) == (7, "done")
    shop.cluster.denied.clear()
    stage.back()
    assert (shop.images, stage.phase()[0]) == (BEFORE, "undone")


def test_a_cluster_that_is_not_there_stops_the_way_back_before_anything_is_undone(stage: Stage, shop: Shop) -> None:
    stage.plan(how="kubernetes", kubernetes=shop.section)
    stage.run(Through.CLEANUP)
    shop.cluster.denied = {("get", "deployments"): 403}

    with pytest.raises(Stopped, match="a Role with get on deployments"):
        stage.back(Through.CLEANUP)

    assert stage.phase("cleanup")[0] == "done"
    assert "`status`" not in stage.app.create_table("job")


def killed(process: subprocess.Popen[str]) -> None:
    output, _ = process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL, output


def test_kubernetes_killed_after_the_first_patch_continues_with_the_second_and_knows_the_images_before(stage: Stage, shop: Shop) -> None:
    stage.plan(how="kubernetes", kubernetes=shop.section)
    stage.run(Through.PRE_DEPLOY)
    process = stage.process()
    shop.cluster.after_patch = lambda: os.kill(process.pid, signal.SIGKILL) is not None
    killed(process)
    assert (shop.images, stage.phase()[0]) == ({**BEFORE, "api": "shop/api:1"}, "running")

    shop.cluster.after_patch = lambda: True
    assert stage.run().did == ["deploy"]

    assert (shop.images, [name for name, _, _ in shop.cluster.patches]) == (V1, ["api", "worker"])
    stage.back()
    assert shop.images == BEFORE


def test_interrupted_in_the_middle_it_can_be_taken_back_at_once(stage: Stage, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.plan(how="kubernetes", kubernetes=shop.section)
    real = kubernetes_api.Cluster.set_images

    def dies(*args: Any) -> None:
        real(*args)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(kubernetes_api.Cluster, "set_images", dies)
        with pytest.raises(KeyboardInterrupt):
            stage.run()
    assert (shop.images, stage.phase()[0]) == ({**BEFORE, "api": "shop/api:1"}, "running")

    assert stage.back().did == ["deploy"]

    assert (shop.images, stage.phase()[0]) == (BEFORE, "undone")


def test_v2_goes_out_for_cleanup_and_its_way_back_brings_v1(stage: Stage, shop: Shop) -> None:
    stage.plan(how="kubernetes", kubernetes=shop.section)

    stage.run(Through.CLEANUP)
    assert (shop.images, stage.phase("cleanup")[0]) == ({**V1, "api": "shop/api:2"}, "done")
    assert "`status`" not in stage.app.create_table("job")

    stage.back(Through.CLEANUP)
    assert (shop.images, stage.phase("cleanup")[0]) == (V1, "undone")
    assert "`status`" in stage.app.create_table("job")
    for phase in (Through.SHADOW_WRITE, Through.VERIFY, Through.BACKFILL, Through.DEPLOY):
        stage.back(phase)
    assert shop.images == BEFORE


def test_what_a_person_put_out_a_person_takes_back(stage: Stage, shop: Shop) -> None:
    stage.plan(how="kubernetes", kubernetes={**shop.section, "workload": [
        {"deployment": "api", "container": "app", "images": {"v2": "shop/api:2"}}]})
    with pytest.raises(WaitingForPerson):
        stage.run()
    stage.run(deployed_by="ben")

    with pytest.raises(WaitingForPerson, match="a person has to confirm that the old generation"):
        stage.back()

    assert stage.back(deployed_by="ben").did == ["deploy"]
    assert shop.cluster.patches == []


def test_http_there_and_back(stage: Stage, service: DeployServiceDouble, http: dict[str, Any]) -> None:
    stage.plan(how="http", http=http)
    stage.run()
    assert (service.now, stage.phase()[0]) == ("1", "done")

    stage.back()

    assert (service.now, stage.phase()) == ("0", ("undone", {}))
    record = str(stage.app.rows("SELECT * FROM _rollout_event") + stage.app.rows("SELECT * FROM _rollout_phase"))
    assert TOKEN not in record


def test_a_deploy_that_the_service_calls_failed_is_undone_with_exit_5(stage: Stage, service: DeployServiceDouble,
                                                                      http: dict[str, Any]) -> None:
    stage.plan(how="http", http=http)
    service.ends_as = "failed"

    with pytest.raises(RolledBack, match="ended as failed"):
        stage.run()

    assert (service.now, stage.exit_code(), stage.phase()[0]) == ("0", 5, "undone")
    service.ends_as = "succeeded"
    stage.run()
    assert (service.now, len(service.deploys)) == ("1", 3)


def test_http_killed_before_the_answer_came_does_not_deploy_twice(stage: Stage, service: DeployServiceDouble, http: dict[str, Any]) -> None:
    stage.plan(how="http", http=http)
    stage.run(Through.PRE_DEPLOY)
    process = stage.process()
    service.after_start = lambda: os.kill(process.pid, signal.SIGKILL) is not None
    killed(process)
    assert (list(service.deploys), "id" in stage.phase()[1]["known"]["http"]["v1"]) == (["d1"], False)

    service.after_start = lambda: True
    assert stage.run().did == ["deploy"]

    assert (list(service.deploys), service.now, list(service.by_key.values())) == (["d1"], "1", ["d1"])


def test_compose_killed_by_its_first_service_continues_with_the_second(stage: Stage, tmp_path: Path) -> None:
    project = Project(tmp_path)
    stage.plan(how="compose", compose=project.section())
    stage.run(Through.PRE_DEPLOY)
    project.set(next="kills")
    killed(stage.process())
    assert project.images() == {**COMPOSE_BEFORE, "api": "shop/api:1"}

    assert stage.run().did == ["deploy"]
    assert project.state["ups"] == [["api", "shop/api:1"], ["worker", "shop/worker:1"]]

    stage.back()
    assert (project.images(), stage.phase()) == (COMPOSE_BEFORE, ("undone", {}))


def test_health_that_does_not_come_takes_any_way_back(stage: Stage, shop: Shop) -> None:
    shop.cluster.after_patch = lambda: shop.cluster.stage.update(dict.fromkeys(shop.cluster.stage, 5)) is None
    with serving(lambda _: (503, {})) as address:
        stage.plan(how="kubernetes", kubernetes=shop.section, health_url=f"{address}/ready", deadline_s=3)

        with pytest.raises(RolledBack, match=r"health url: did not say yes within 3 s: 127\.0\.0\.1:\d+ answered 503"):
            stage.run()

    assert (shop.images, stage.phase()[0], stage.exit_code()) == (BEFORE, "undone", 5)
