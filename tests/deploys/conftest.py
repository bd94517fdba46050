"""Jobs with a memory that a test can look at, and doubles of the systems that deploy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from steps.deploys.kubernetes import Kubernetes
from steps.deploys.way import Deadline, DeployWay, Job
from steps.plan_deploy import Kubernetes as Section
from tests.doubles.kubernetes_double import Cluster, kubernetes


class Ledger:
    """What survives a kill: what a way has kept."""

    def __init__(self) -> None:
        self.kept: dict[str, Any] = {}

    def job(self, generation: str, *, deadline_s: float = 30, run_id: str = "run-1") -> Job:
        return Job("small", "job", generation, run_id, Deadline(deadline_s), 2, dict(self.kept), self.keep)

    def keep(self, known: dict[str, Any]) -> None:
        self.kept = dict(known)

    def put_out(self, way: DeployWay, generation: str = "v1", **more: Any) -> dict[str, Any]:
        """As `steps.deploy.put_out` does it: look, keep, act."""
        self.keep(way.look(generation, self.kept))
        return way.put_out(self.job(generation, **more))

    def take_back(self, way: DeployWay, generation: str = "v0", **more: Any) -> dict[str, Any]:
        why = way.cannot_take_back(generation, self.kept)
        assert why is None, why
        return way.take_back(self.job(generation, **more))


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


@pytest.fixture
def cluster_at() -> Iterator[tuple[Cluster, str]]:
    with kubernetes() as found:
        yield found


@pytest.fixture
def cluster(cluster_at: tuple[Cluster, str]) -> Cluster:
    return cluster_at[0]


@pytest.fixture
def by_kubernetes(cluster_at: tuple[Cluster, str], tmp_path: Path) -> Callable[..., Kubernetes]:
    """Makes the way, of a plan with both Deployments."""
    config = cluster_at[0].config(tmp_path, cluster_at[1])

    def make(**more: Any) -> Kubernetes:
        return Kubernetes(Section.model_validate({
            "namespace": "shop", "kubeconfig": str(config), "context": "prod",
            "workload": [{"deployment": "api", "container": "app", "images": {"v1": "shop/api:1", "v2": "shop/api:2"}},
                         {"deployment": "worker", "container": "app", "images": {"v1": "shop/worker:1"}}], **more}))

    return make
