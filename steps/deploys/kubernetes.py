"""
By Kubernetes: the image of named containers is changed, and the rollout watched until every replica is new and available.

The images from before are in the ledger before the first change. No watch stream: the Deployment is read every
`deploy.health_every_s`, which an interrupted connection cannot break.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from steps import waits
from steps.deploys.images import ByImages
from steps.deploys.kubernetes_api import Changed, Cluster
from steps.deploys.way import Job, patiently, wait_until
from steps.errors import DeployFailed, DeploySystemAway, Stopped
from steps.plan_deploy import Kubernetes as Section

HOPELESS = ("InvalidImageName", "ErrImageNeverPull")
STUCK = (*HOPELESS, "ErrImagePull", "ImagePullBackOff", "CrashLoopBackOff", "CreateContainerConfigError", "CreateContainerError",
         "RunContainerError")
REMEDY = "see `kubectl rollout status` and the pods' events"


class Kubernetes(ByImages):
    """`known` is the image of each container before, by `deployment/container`; None where it was the new one already."""

    name = "kubernetes"

    def __init__(self, plan: Section) -> None:
        super().__init__(plan.workload)
        self.plan = plan
        self._blind = False
        self._gave_up_before: dict[str, Any] = {}
        self._by_name = {workload.name: workload for workload in plan.workload}

    @cached_property
    def cluster(self) -> Cluster:
        return Cluster(self.plan)

    def ready(self) -> None:
        _ = self.cluster

    def look(self, generation: str, known: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, wanted in self.wanted(generation).items():
            workload = self._by_name[name]
            now = _image(self.cluster.deployment(workload.deployment), workload.deployment, workload.container)
            found[name] = None if now == wanted else now
        return {**found, **known}

    def reach(self, known: dict[str, Any]) -> None:
        for name in known:
            if name in self._by_name:
                self.cluster.deployment(self._by_name[name].deployment)

    def put_out(self, job: Job) -> dict[str, Any]:
        return self._go_to(job, self.wanted(job.generation))

    def take_back(self, job: Job) -> dict[str, Any]:
        before = self.before(job.generation, job.known)
        gone = sorted(set(before) - set(self._by_name))
        if gone:
            raise DeployFailed("kubernetes", f"{', '.join(gone)} was changed by this tool and is no longer in the plan", "put it back")
        return self._go_to(job, {name: image for name, image in before.items() if image is not None})

    def _go_to(self, job: Job, images: dict[str, str]) -> dict[str, Any]:
        """Every image first, then every rollout: both are looked at before they are acted on, so this may be repeated."""
        wanted: dict[str, dict[str, str]] = {}
        for name, image in images.items():
            wanted.setdefault(self._by_name[name].deployment, {})[self._by_name[name].container] = image
        changed = [name for deployment, mine in wanted.items() for name in self._ensure(deployment, mine, job)]
        for deployment, mine in wanted.items():
            wait_until(lambda name=deployment, mine=mine: self._missing(name, mine),  # type: ignore[misc]
                       job.deadline, job.every_s, f"deployment {self.plan.namespace}/{deployment}", REMEDY)
        return {"images": images, "changed": changed, **({"could not look": "whether old pods have ended"} if self._blind else {})}

    def _ensure(self, deployment: str, images: dict[str, str], job: Job) -> list[str]:
        """
        Which of the *images* had to be changed. All of one Deployment are one change, so that its pods are replaced once, and no pod
        has the new image in one container beside the old one in another.

        A lost answer or a conflict is followed by another look, never by a blind repeat.
        """
        changed: dict[str, str] = {}

        def once() -> None:
            while True:
                now = self.cluster.deployment(deployment)
                missing = {container: image for container, image in images.items() if _image(now, deployment, container) != image}
                if not missing:
                    return
                changed.update(missing)
                self._gave_up_before[deployment] = _gave_up(now)
                try:
                    self.cluster.set_images(deployment, missing, now.metadata.resource_version)
                except Changed:
                    if job.deadline.passed:
                        raise DeployFailed(f"deployment {self.plan.namespace}/{deployment}",
                                           f"was changed by somebody else all the {job.deadline.seconds:g} s", REMEDY) from None
                    waits.sleep_s(job.every_s)
                    continue
                return

        patiently(once)
        return [f"{deployment}/{container}" for container in images if container in changed]

    def _missing(self, name: str, images: dict[str, str]) -> str | None:
        """
        What the rollout lacks, or None once it is complete: seen by the controller, every replica new and available, no pod ending.

        Raises:
            DeployFailed: the controller gave up, the rollout is paused, somebody changed the image, or a pod can never start.
        """
        now = self._as_we_left_it(name, images)
        subject = f"deployment {self.plan.namespace}/{name}"
        if (now.status.observed_generation or 0) < now.metadata.generation:
            return "the controller has not seen the change yet"
        gave_up = _gave_up(now)
        if gave_up and gave_up != self._gave_up_before.get(name):  # else it speaks of the rollout before ours
            raise DeployFailed(subject, f"gave up (ProgressDeadlineExceeded){self._why(now, images)}", REMEDY)
        left = _replicas_missing(now)
        if left is None:
            return self._ending(now)
        why = self._why(now, images)
        if any(reason in why for reason in HOPELESS):
            raise DeployFailed(subject, f"can never start{why}", REMEDY)
        return left + why

    def _ending(self, deployment: Any) -> str | None:
        """Pods that are told to end count as no replica any more, and go on writing until they have ended."""
        ending = [pod for pod in self._pods(deployment) or [] if pod.metadata.deletion_timestamp]
        return f"{len(ending)} pods are still ending" if ending else None

    def _pods(self, deployment: Any) -> list[Any] | None:
        found = self.cluster.pods(dict(deployment.spec.selector.match_labels or {}))
        self._blind = found is None
        return found

    def _as_we_left_it(self, name: str, images: dict[str, str]) -> Any:
        """The Deployment, which still has our images and is not paused."""
        subject = f"deployment {self.plan.namespace}/{name}"
        try:
            now = self.cluster.deployment(name)
        except DeploySystemAway:
            raise
        except Stopped as gone:
            raise DeployFailed(gone.subject, gone.reason, gone.remedy) from None
        for container, image in images.items():
            other = _images(now).get(container)
            if other != image:
                raise DeployFailed(subject, f"somebody set {container} to {other} while {image} was rolled out", REMEDY)
        if now.spec.paused:
            raise DeployFailed(subject, "is paused, so its rollout would never go on", f"kubectl rollout resume deployment/{name}")
        return now

    def _why(self, deployment: Any, images: dict[str, str]) -> str:
        """Why new pods are not made (a quota, say) or do not start, as far as we may see them."""
        refused = "".join(f"; {condition.reason}: {str(condition.message)[:200]}" for condition in deployment.status.conditions or []
                          if condition.type == "ReplicaFailure" and condition.status == "True")
        pods = self._pods(deployment)
        if pods is None:
            return f"{refused}; its pods could not be looked at"
        stuck: dict[str, int] = {}
        for pod in pods:
            if not any(images.get(container.name) == container.image for container in pod.spec.containers):
                continue
            for status in [*(pod.status.init_container_statuses or []), *(pod.status.container_statuses or [])]:
                waiting = status.state.waiting if status.state else None
                if waiting and waiting.reason in STUCK:
                    text = f"{waiting.reason} of {status.name} ({images.get(status.name, status.image)})"
                    stuck[text] = stuck.get(text, 0) + 1
        return refused + "".join(f"; {count} pods: {text}" for text, count in sorted(stuck.items()))


def _gave_up(deployment: Any) -> str | None:
    """When the controller last gave up a rollout, or None while it has not."""
    return next((str(condition.last_update_time) for condition in deployment.status.conditions or []
                 if condition.type == "Progressing" and condition.reason == "ProgressDeadlineExceeded"), None)


def _images(deployment: Any) -> dict[str, str]:
    return {container.name: str(container.image) for container in deployment.spec.template.spec.containers}


def _image(deployment: Any, name: str, container: str) -> str:
    """
    Raises:
        Stopped: the Deployment has no such container.
    """
    containers = _images(deployment)
    if container not in containers:
        raise Stopped(f"deployment {name}", f"has no container {container}", f"it has {', '.join(containers)}")
    return containers[container]


def _replicas_missing(deployment: Any) -> str | None:
    wanted = 1 if deployment.spec.replicas is None else int(deployment.spec.replicas)
    there, new, ready = (int(count or 0) for count in (
        deployment.status.replicas, deployment.status.updated_replicas, deployment.status.available_replicas))
    if new < wanted:
        return f"{new} of {wanted} replicas are new"
    if there > new:
        return f"{there - new} old replicas are still ending"
    return f"{ready} of {new} new replicas are available" if ready < new else None
