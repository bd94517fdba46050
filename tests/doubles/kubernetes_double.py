"""
A Kubernetes API server as far as a deploy meets it: Deployments and Pods of namespaces, over HTTP, with a controller behind.

Faithful where it matters: bearer tokens (401), Role-like denials (403), Status objects, `metadata.generation` that grows only when the
spec changes, `resourceVersion` that grows always and is held against a patch's (409), strategic merge by container name with its content
type (415 else), field managers, `status.observedGeneration` behind, and rollouts that go on by stages, one for each look.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.doubles.serving import Request, serving

TOKEN = "a-bearer-token-of-the-cluster"
MERGE = "application/strategic-merge-patch+json"
DEPLOYMENT = re.compile(r"^/apis/apps/v1/namespaces/([^/]+)/deployments/([^/]+)$")
PODS = re.compile(r"^/api/v1/namespaces/([^/]+)/pods$")
STAGES = 5


def status(code: int, reason: str, message: str) -> tuple[int, dict[str, Any]]:
    return code, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "reason": reason,
                  "code": code}


class Cluster:
    """What the test sets up and looks at."""

    def __init__(self) -> None:
        self.deployments: dict[tuple[str, str], dict[str, Any]] = {}
        self.stage: dict[tuple[str, str], int] = {}
        self.stuck_at: int | None = None                      # no rollout goes beyond this stage
        self.gives_up = False                                 # a rollout that is stuck has exceeded its progress deadline
        self.gave_up: dict[str, str] = {}                     # since when
        self.quota: str | None = None                         # why no pod can be made
        self.waiting: str | None = None                       # why the pods of a rollout that is stuck do not start
        self.ending: dict[str, int] = {}                      # for how many looks a pod of a Deployment's last rollout is still ending
        self.denied: dict[tuple[str, str], int] = {}          # (verb, resource): status
        self.faults: list[tuple[str, int]] = []               # (verb, status) for the next requests of that verb; 0 is no answer
        self.before_patch: Callable[[dict[str, Any]], None] = lambda _: None
        self.after_patch: Callable[[], bool] = lambda: True   # whether the answer is sent
        self.patches: list[tuple[str, str, str]] = []         # (deployment, image, field manager)
        self.asked: list[str] = []
        self._version = 100

    def add(self, name: str, images: dict[str, str], *, namespace: str = "shop", replicas: int = 3) -> None:
        self._version += 1
        labels = {"app": name}
        self.deployments[namespace, name] = {
            "kind": "Deployment", "apiVersion": "apps/v1",
            "metadata": {"name": name, "namespace": namespace, "generation": 1, "resourceVersion": str(self._version), "managedFields": []},
            "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "progressDeadlineSeconds": 600,
                     "template": {"metadata": {"labels": labels},
                                  "spec": {"containers": [{"name": key, "image": image} for key, image in images.items()]}}},
            "status": {}}
        self.stage[namespace, name] = STAGES

    def image(self, name: str, container: str, namespace: str = "shop") -> str:
        containers = self.deployments[namespace, name]["spec"]["template"]["spec"]["containers"]
        return str(next(entry["image"] for entry in containers if entry["name"] == container))

    def config(self, folder: Path, address: str) -> Path:
        """A kubeconfig file that leads here, as its current context and under the name `prod`."""
        document = {"apiVersion": "v1", "kind": "Config", "current-context": "prod",
                    "clusters": [{"name": "here", "cluster": {"server": address}}], "users": [{"name": "ci", "user": {"token": TOKEN}}],
                    "contexts": [{"name": "prod", "context": {"cluster": "here", "user": "ci"}}]}
        path = folder / "kubeconfig"
        path.write_text(json.dumps(document))
        return path

    def answer(self, request: Request) -> tuple[int, Any] | None:  # noqa: PLR0911  # one for each kind of answer
        url = urlsplit(request.path)
        verb = {"GET": "get", "PATCH": "patch"}.get(request.command, request.command.lower())
        body = request.body()
        self.asked.append(f"{verb} {url.path}")
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return status(401, "Unauthorized", "Unauthorized")
        for number, (of, code) in enumerate(self.faults):
            if of == verb:
                del self.faults[number]
                return status(code, "InternalError", "etcdserver: request timed out") if code else None
        if found := DEPLOYMENT.match(url.path):
            if (verb, "deployments") in self.denied:
                return self._no(verb, "deployments", found[1])
            key = (found[1], found[2])
            if key not in self.deployments:
                return status(404, "NotFound", f'deployments.apps "{found[2]}" not found')
            return self._patch(request, key, body, parse_qs(url.query)) if verb == "patch" else (200, self._read(key))
        if found := PODS.match(url.path):
            if ("list", "pods") in self.denied:
                return self._no("list", "pods", found[1])
            return 200, self._pods(found[1], parse_qs(url.query)["labelSelector"][0])
        return self._no(verb, url.path, "cluster scope")

    def _no(self, verb: str, resource: str, where: str) -> tuple[int, dict[str, Any]]:
        return status(self.denied.get((verb, resource), 403), "Forbidden",
                      f'{resource} is forbidden: User "ci" cannot {verb} resource "{resource}" in the namespace "{where}"')

    def _patch(self, request: Request, key: tuple[str, str], body: dict[str, Any], query: dict[str, list[str]]) -> tuple[int, Any] | None:
        if request.headers.get("Content-Type") != MERGE:
            return status(415, "UnsupportedMediaType", "the body of the request was in an unknown format")
        self.before_patch(self.deployments[key])
        now = self.deployments[key]
        wanted = body.get("metadata", {}).get("resourceVersion")
        if wanted and wanted != now["metadata"]["resourceVersion"]:
            return status(409, "Conflict", "the object has been modified; please apply your changes to the latest version and try again")
        before, manager = copy.deepcopy(now["spec"]), query.get("fieldManager", ["unknown"])[0]
        containers = now["spec"]["template"]["spec"]["containers"]
        for change in body["spec"]["template"]["spec"]["containers"]:
            next(entry for entry in containers if entry["name"] == change["name"]).update(change)
            self.patches.append((key[1], change["image"], manager))
        self.touch(now)
        if now["spec"] != before:
            now["metadata"]["generation"] += 1
            now["metadata"]["managedFields"].append({"manager": manager, "operation": "Update"})
            self.stage[key] = 0
        return (200, now) if self.after_patch() else None

    def touch(self, deployment: dict[str, Any]) -> None:
        """Somebody changed something else of the object."""
        self._version += 1
        deployment["metadata"]["resourceVersion"] = str(self._version)

    def _read(self, key: tuple[str, str]) -> dict[str, Any]:
        now, stage = self.deployments[key], self.stage[key]
        last = STAGES if self.stuck_at is None else min(self.stuck_at, STAGES)
        now["status"] = self._status(now, stage, stuck=stage < STAGES and stage == last)
        self.stage[key] = max(stage, min(stage + 1, last))
        return now

    def _status(self, now: dict[str, Any], stage: int, *, stuck: bool) -> dict[str, Any]:
        wanted, generation = now["spec"]["replicas"], now["metadata"]["generation"]
        replicas, updated, available = {
            0: (wanted, wanted, wanted), 1: (wanted + 1, 0, wanted), 2: (wanted + 1, 1, wanted), 3: (wanted + 1, wanted, wanted),
            4: (wanted, wanted, wanted - 1), STAGES: (wanted, wanted, wanted)}[stage]  # 0: as it was, of the generation before
        name = now["metadata"]["name"]
        if stuck and self.gives_up:
            self.gave_up.setdefault(name, f"2026-01-01T00:{generation:02}:00Z")
        elif stage > 1:
            self.gave_up.pop(name, None)  # until a rollout moves, the condition still speaks of the one before
        gave_up = self.gave_up.get(name)
        progressing = {"type": "Progressing", "status": "False" if gave_up else "True", "reason": "ProgressDeadlineExceeded" if gave_up
                       else "NewReplicaSetAvailable" if stage == STAGES else "ReplicaSetUpdated",
                       "lastUpdateTime": gave_up or "2026-01-01T00:00:00Z"}
        failing = [{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": self.quota}] if self.quota else []
        found = {"observedGeneration": generation - (stage == 0), "replicas": replicas, "updatedReplicas": updated,
                 "availableReplicas": available, "readyReplicas": available, "conditions": [progressing, *failing]}
        return {name: value for name, value in found.items() if value != 0}  # the real one leaves zeroes out

    def _pods(self, namespace: str, selector: str) -> dict[str, Any]:
        items = []
        for (where, name), deployment in self.deployments.items():
            if where == namespace and selector == f"app={name}":
                containers = deployment["spec"]["template"]["spec"]["containers"]
                waits = self.waiting and self.stage[where, name] < STAGES
                state = {"waiting": {"reason": self.waiting, "message": "do not tell"}} if waits \
                    else {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
                items = [{"metadata": {"name": f"{name}-{n}", "namespace": namespace, "labels": {"app": name}},
                          "spec": {"containers": containers},
                          "status": {"phase": "Pending", "containerStatuses": [
                              {"name": entry["name"], "image": entry["image"], "imageID": "", "ready": False, "restartCount": 0,
                               "state": state} for entry in containers]}} for n in range(2)]
                if self.ending.get(name, 0) and self.stage[where, name] == STAGES:
                    self.ending[name] -= 1
                    items[0]["metadata"] = {**items[0]["metadata"], "deletionTimestamp": "2026-01-01T00:00:30Z"}
        return {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": str(self._version)}, "items": items}


@contextmanager
def kubernetes() -> Iterator[tuple[Cluster, str]]:
    """A cluster with the Deployments `api` (container app, and a sidecar) and `worker`, and its address."""
    cluster = Cluster()
    cluster.add("api", {"app": "shop/api:0", "proxy": "envoy:1"})
    cluster.add("worker", {"app": "shop/worker:0"}, replicas=2)
    with serving(cluster.answer) as address:
        yield cluster, address
