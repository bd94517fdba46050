"""By Kubernetes, with the official client against an API server of ours: there and back, and every way in which it can go wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from steps.deploys.kubernetes import Kubernetes
from steps.errors import DeployFailed, DeploySystemAway, Stopped
from tests.deploys.conftest import Ledger
from tests.doubles.kubernetes_double import TOKEN, Cluster

Make = Callable[..., Kubernetes]
BEFORE = {"api/app": "shop/api:0", "worker/app": "shop/worker:0"}


def images(cluster: Cluster) -> dict[str, str]:
    return {"api/app": cluster.image("api", "app"), "worker/app": cluster.image("worker", "app")}


def test_there_and_back_changes_only_the_named_containers(by_kubernetes: Make, cluster: Cluster, ledger: Ledger) -> None:
    found = ledger.put_out(by_kubernetes())

    assert images(cluster) == {"api/app": "shop/api:1", "worker/app": "shop/worker:1"}
    assert cluster.image("api", "proxy") == "envoy:1"
    assert cluster.patches == [("api", "shop/api:1", "mysql-rollout"), ("worker", "shop/worker:1", "mysql-rollout")]
    assert found["changed"] == ["api/app", "worker/app"]
    assert ledger.kept == BEFORE

    ledger.take_back(by_kubernetes())

    assert images(cluster) == BEFORE
    assert [cluster.deployments["shop", name]["metadata"]["generation"] for name in ("api", "worker")] == [3, 3]


def test_it_waits_until_the_controller_has_seen_it_and_every_replica_is_new_and_available(by_kubernetes: Make, cluster: Cluster,
                                                                                           ledger: Ledger, slept: list[float]) -> None:
    ledger.put_out(by_kubernetes())

    assert cluster.stage == {("shop", "api"): 5, ("shop", "worker"): 5}
    assert len(slept) == 10  # five stages of two rollouts, each seen


def test_pods_that_are_still_ending_are_waited_for(by_kubernetes: Make, cluster: Cluster, ledger: Ledger) -> None:
    cluster.ending = {"api": 3}

    found = ledger.put_out(by_kubernetes())

    assert cluster.ending == {"api": 0}
    assert "could not look" not in found


def test_without_the_right_to_see_pods_the_ledger_says_what_was_not_seen(by_kubernetes: Make, cluster: Cluster, ledger: Ledger) -> None:
    cluster.denied = {("list", "pods"): 403}

    assert ledger.put_out(by_kubernetes())["could not look"] == "whether old pods have ended"


def test_only_its_namespace_is_ever_asked_for(by_kubernetes: Make, cluster: Cluster, ledger: Ledger) -> None:
    ledger.put_out(by_kubernetes())
    ledger.take_back(by_kubernetes())

    assert {path.rpartition("/")[0] for path in cluster.asked} <= {
        "get /apis/apps/v1/namespaces/shop/deployments", "patch /apis/apps/v1/namespaces/shop/deployments", "get /api/v1/namespaces/shop"}


def test_what_stands_already_is_not_done_again(by_kubernetes: Make, cluster: Cluster, ledger: Ledger) -> None:
    ledger.put_out(by_kubernetes())
    cluster.patches.clear()

    assert ledger.put_out(by_kubernetes())["changed"] == []
    assert cluster.patches == []
    assert ledger.kept == BEFORE


def test_a_generation_that_changes_one_container_leaves_the_other(by_kubernetes: Make, cluster: Cluster, ledger: Ledger) -> None:
    ledger.put_out(by_kubernetes())
    ledger.kept = {}
    ledger.put_out(by_kubernetes(), "v2")
    assert images(cluster) == {"api/app": "shop/api:2", "worker/app": "shop/worker:1"}

    ledger.take_back(by_kubernetes(), "v1")
    assert images(cluster) == {"api/app": "shop/api:1", "worker/app": "shop/worker:1"}


BOTH = [{"deployment": "api", "container": "app", "images": {"v1": "shop/api:1", "v2": "shop/api:2"}},
        {"deployment": "worker", "container": "app", "images": {"v1": "shop/worker:1"}},
        {"deployment": "api", "container": "proxy", "images": {"v1": "envoy:2"}}]
API = "patch /apis/apps/v1/namespaces/shop/deployments/api"


def test_two_containers_of_one_deployment_are_one_change_and_one_rollout(by_kubernetes: Make, cluster: Cluster, ledger: Ledger,
                                                                         slept: list[float]) -> None:
    found = ledger.put_out(by_kubernetes(workload=BOTH))

    assert (images(cluster)["api/app"], cluster.image("api", "proxy")) == ("shop/api:1", "envoy:2")
    assert cluster.asked.count(API) == 1
    assert cluster.deployments["shop", "api"]["metadata"]["generation"] == 2
    assert len(slept) == 10  # five stages of two rollouts, not of three
    assert found["changed"] == ["api/app", "api/proxy", "worker/app"]
    assert ledger.kept == {**BEFORE, "api/proxy": "envoy:1"}

    ledger.take_back(by_kubernetes(workload=BOTH))

    assert (images(cluster), cluster.image("api", "proxy")) == (BEFORE, "envoy:1")
    assert cluster.asked.count(API) == 2
    assert cluster.deployments["shop", "api"]["metadata"]["generation"] == 3


def test_of_two_containers_one_that_stands_already_is_left_alone(by_kubernetes: Make, cluster: Cluster, ledger: Ledger) -> None:
    cluster.add("api", {"app": "shop/api:0", "proxy": "envoy:2"})
    scaled = iter([True])
    cluster.before_patch = lambda deployment: cluster.touch(deployment) if next(scaled, False) else None

    found = ledger.put_out(by_kubernetes(workload=BOTH))

    assert found["changed"] == ["api/app", "worker/app"]
    assert cluster.patches == [("api", "shop/api:1", "mysql-rollout"), ("worker", "shop/worker:1", "mysql-rollout")]
    assert cluster.asked.count(API) == 2  # a conflict, and again
    assert cluster.image("api", "proxy") == "envoy:2"


class Killed(BaseException):
    """As SIGKILL: nothing is caught, only the ledger is left."""


@pytest.mark.parametrize("at", [1, 2])
def test_killed_after_a_patch_it_is_continued_without_a_second_one(by_kubernetes: Make, cluster: Cluster, ledger: Ledger, at: int,
                                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    way = by_kubernetes()
    real = type(way.cluster).set_images

    def dies(*args: Any) -> None:
        real(*args)
        if len(cluster.patches) == at:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(type(way.cluster), "set_images", dies)
        with pytest.raises(Killed):
            ledger.put_out(way)
    assert ledger.kept == BEFORE

    ledger.put_out(by_kubernetes())

    assert [name for name, _, _ in cluster.patches] == ["api", "worker"]
    assert ledger.kept == BEFORE
    ledger.take_back(by_kubernetes())
    assert images(cluster) == BEFORE


def test_a_lost_answer_is_looked_up_and_not_repeated(by_kubernetes: Make, cluster: Cluster, ledger: Ledger) -> None:
    answers = iter([False])
    cluster.after_patch = lambda: next(answers, True)

    ledger.put_out(by_kubernetes())

    assert [name for name, _, _ in cluster.patches] == ["api", "worker"]


def test_a_conflict_is_followed_by_another_look(by_kubernetes: Make, cluster: Cluster, ledger: Ledger) -> None:
    scaled = iter([True, True])

    def somebody_scales(deployment: dict[str, Any]) -> None:
        if next(scaled, False):
            cluster.touch(deployment)

    cluster.before_patch = somebody_scales

    ledger.put_out(by_kubernetes())

    assert images(cluster) == {"api/app": "shop/api:1", "worker/app": "shop/worker:1"}
    assert cluster.asked.count("patch /apis/apps/v1/namespaces/shop/deployments/api") == 3


@pytest.mark.parametrize("faults", [[("get", 500)], [("get", 0)], [("patch", 503)], [("get", 429), ("get", 500), ("patch", 0)]])
def test_passing_faults_of_the_server_are_waited_out(by_kubernetes: Make, cluster: Cluster, ledger: Ledger,
                                                     faults: list[tuple[str, int]]) -> None:
    cluster.faults = faults

    ledger.put_out(by_kubernetes())

    assert images(cluster) == {"api/app": "shop/api:1", "worker/app": "shop/worker:1"}
    assert cluster.faults == []


def test_a_server_that_stays_away_is_never_taken_for_a_failure(by_kubernetes: Make, cluster: Cluster, ledger: Ledger) -> None:
    cluster.faults = [("get", 500)] * 50

    with pytest.raises(DeploySystemAway, match="answered get with 500: etcdserver: request timed out") as away:
        ledger.put_out(by_kubernetes())

    assert away.value.exit_code == 4
    assert images(cluster) == BEFORE


def test_away_at_the_deadline_is_not_a_failure_either(by_kubernetes: Make, cluster: Cluster, ledger: Ledger) -> None:
    way = by_kubernetes()
    ledger.keep(way.look("v1", {}))
    cluster.after_patch = lambda: cluster.faults.extend([("get", 500)] * 500) is None

    with pytest.raises(DeploySystemAway):
        way.put_out(ledger.job("v1", deadline_s=0.2))

    cluster.faults.clear()
    cluster.after_patch = lambda: True
    ledger.put_out(by_kubernetes())
    assert images(cluster) == {"api/app": "shop/api:1", "worker/app": "shop/worker:1"}


@pytest.mark.parametrize(("verb", "code", "said"), [
    ("get", 403, r"get was denied \(403\): deployments is forbidden: .*; give the account a Role with get on deployments in"),
    ("get", 401, r"get was denied \(401\)")])
def test_not_being_let_in_stops_before_anything_is_changed(by_kubernetes: Make, cluster: Cluster, ledger: Ledger, verb: str, code: int,
                                                           said: str) -> None:
    cluster.denied = {(verb, "deployments"): code}

    with pytest.raises(Stopped, match=said) as stopped:
        ledger.put_out(by_kubernetes())

    assert (stopped.value.exit_code, ledger.kept, cluster.patches) == (4, {}, [])
    assert TOKEN not in str(stopped.value)


def test_a_patch_that_is_denied_is_a_failed_deploy(by_kubernetes: Make, cluster: Cluster, ledger: Ledger) -> None:
    cluster.denied = {("patch", "deployments"): 403}

    with pytest.raises(DeployFailed, match=r"patch was denied \(403\).*give the account a Role with patch on deployments"):
        ledger.put_out(by_kubernetes())

    ledger.take_back(by_kubernetes())  # nothing is to be changed, so nothing is denied
    assert images(cluster) == BEFORE


@pytest.mark.parametrize(("workload", "said"), [
    ({"deployment": "gone", "container": "app"}, r"deployment shop/gone: there is no such Deployment \(404\)"),
    ({"deployment": "api", "container": "ap"}, "has no container ap; it has app, proxy")])
def test_what_is_not_there_is_named(by_kubernetes: Make, cluster: Cluster, ledger: Ledger, workload: dict[str, str], said: str) -> None:
    with pytest.raises(Stopped, match=said):
        ledger.put_out(by_kubernetes(workload=[{**workload, "images": {"v1": "x:1"}}]))

    assert cluster.patches == []


def test_a_rollout_that_gives_up_says_why_its_pods_do_not_start(by_kubernetes: Make, cluster: Cluster, ledger: Ledger) -> None:
    cluster.stuck_at, cluster.gives_up, cluster.waiting = 2, True, "ImagePullBackOff"

    with pytest.raises(DeployFailed, match=r"\(ProgressDeadlineExceeded\); 2 pods: ImagePullBackOff of app \(shop/api:1\)") as failed:
        ledger.put_out(by_kubernetes())

    assert "do not tell" not in str(failed.value)
    cluster.stuck_at = None
    ledger.take_back(by_kubernetes())
    assert images(cluster) == BEFORE


def test_that_the_rollout_before_was_given_up_does_not_fail_the_way_back(by_kubernetes: Make, cluster: Cluster, ledger: Ledger) -> None:
    cluster.stuck_at, cluster.gives_up = 2, True
    with pytest.raises(DeployFailed, match="gave up"):
        ledger.put_out(by_kubernetes())
    cluster.stuck_at = None

    ledger.take_back(by_kubernetes())

    assert (images(cluster), cluster.gave_up) == (BEFORE, {})


def test_a_way_back_that_is_given_up_in_its_turn_says_so(by_kubernetes: Make, cluster: Cluster, ledger: Ledger) -> None:
    cluster.stuck_at, cluster.gives_up = 2, True
    with pytest.raises(DeployFailed):
        ledger.put_out(by_kubernetes())
    cluster.after_patch = lambda: bool(cluster.gave_up.pop("api", None)) or True  # it moved, then gave up once more

    with pytest.raises(DeployFailed, match="gave up"):
        ledger.take_back(by_kubernetes())


def test_a_quota_that_is_used_up_is_named(by_kubernetes: Make, cluster: Cluster, ledger: Ledger) -> None:
    cluster.stuck_at, cluster.gives_up, cluster.quota = 1, True, 'pods "api-1" is forbidden: exceeded quota: small'

    with pytest.raises(DeployFailed, match=r"FailedCreate: pods .* exceeded quota: small"):
        ledger.put_out(by_kubernetes())


def test_without_the_right_to_see_pods_it_says_so(by_kubernetes: Make, cluster: Cluster, ledger: Ledger) -> None:
    cluster.stuck_at, cluster.gives_up, cluster.denied = 2, True, {("list", "pods"): 403}

    with pytest.raises(DeployFailed, match=r"ProgressDeadlineExceeded\); its pods could not be looked at"):
        ledger.put_out(by_kubernetes())


def test_an_image_that_can_never_start_is_not_waited_for(by_kubernetes: Make, cluster: Cluster, ledger: Ledger) -> None:
    cluster.stuck_at, cluster.waiting = 2, "InvalidImageName"

    with pytest.raises(DeployFailed, match="can never start; 2 pods: InvalidImageName of app"):
        ledger.put_out(by_kubernetes(), deadline_s=3600)


@pytest.mark.parametrize(("stage", "left"), [
    (0, "the controller has not seen the change yet"), (1, "0 of 3 replicas are new"), (2, "1 of 3 replicas are new"),
    (3, "1 old replicas are still ending"), (4, "2 of 3 new replicas are available")])
def test_at_the_deadline_it_says_what_is_missing(by_kubernetes: Make, cluster: Cluster, ledger: Ledger, stage: int, left: str) -> None:
    cluster.stuck_at = stage
    cluster.after_patch = lambda: cluster.stage.update({("shop", "api"): stage}) is None

    with pytest.raises(DeployFailed, match=rf"deployment shop/api: did not come within 0\.2 s: {left}"):
        ledger.put_out(by_kubernetes(), deadline_s=0.2)


def test_a_paused_deployment_is_named(by_kubernetes: Make, cluster: Cluster, ledger: Ledger) -> None:
    cluster.deployments["shop", "api"]["spec"]["paused"] = True

    with pytest.raises(DeployFailed, match=r"is paused.*kubectl rollout resume deployment/api"):
        ledger.put_out(by_kubernetes())


def test_somebody_elses_image_in_the_middle_is_not_taken_for_ours(by_kubernetes: Make, cluster: Cluster, ledger: Ledger) -> None:
    def somebody_deploys() -> bool:
        cluster.deployments["shop", "api"]["spec"]["template"]["spec"]["containers"][0]["image"] = "shop/api:hotfix"
        return True

    cluster.after_patch = somebody_deploys

    with pytest.raises(DeployFailed, match="somebody set app to shop/api:hotfix while shop/api:1 was rolled out"):
        ledger.put_out(by_kubernetes())


def test_when_it_was_out_before_we_began_only_a_named_image_leads_back(by_kubernetes: Make, cluster: Cluster, ledger: Ledger) -> None:
    cluster.add("api", {"app": "shop/api:1", "proxy": "envoy:1"})
    ledger.put_out(by_kubernetes())

    assert ledger.kept == {"api/app": None, "worker/app": "shop/worker:0"}
    assert "the image of api/app before is not known" in str(by_kubernetes().cannot_take_back("v0", ledger.kept))

    named = by_kubernetes(workload=[{"deployment": "api", "container": "app", "images": {"v0": "shop/api:0", "v1": "shop/api:1"}},
                                    {"deployment": "worker", "container": "app", "images": {"v1": "shop/worker:1"}}])
    ledger.take_back(named)
    assert images(cluster) == BEFORE


@pytest.mark.parametrize(("config", "said"), [
    ({"kubeconfig": "/nowhere/config"}, "no way to a cluster"), ({"context": "other"}, "no way to a cluster"),
    ({"kubeconfig": None, "context": None, "in_cluster": True}, "no way to a cluster")])
def test_a_configuration_that_leads_nowhere_stops_at_once(by_kubernetes: Make, ledger: Ledger, config: dict[str, Any], said: str,
                                                          monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)

    with pytest.raises(Stopped, match=said):
        ledger.put_out(by_kubernetes(**config))
