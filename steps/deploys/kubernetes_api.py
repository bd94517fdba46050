"""
The three requests to a Kubernetes API server that a deploy needs, with its answers as our errors.

`get` and `patch` on `deployments`, and `list` on `pods`, to see old ones end and to name why a new one does not start; all in one
namespace. The client is the official one, imported at its first use: it is an optional extra, and slow to load.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

from steps.deploys.way import patiently
from steps.errors import DeployFailed, DeploySystemAway, Stopped
from steps.plan_deploy import Kubernetes

T = TypeVar("T")
TIMEOUTS_S = (5, 30)
DENIED = (401, 403)
NOT_FOUND = 404
CONFLICT = 409
TOO_MANY = 429
MOST_PODS = 500
SERVER_FAULT = 500


class Changed(Exception):
    """409: somebody else changed the object since we looked."""


class Cluster:
    """One namespace of one cluster."""

    def __init__(self, plan: Kubernetes) -> None:
        """
        Raises:
            Stopped: the client is not installed, or there is no configuration that leads to a cluster.
        """
        try:
            import kubernetes  # noqa: PLC0415  # an optional extra
        except ImportError:
            raise Stopped("kubernetes", "the official client is not installed", "install the extra: mysql-rollout[kubernetes]") from None
        self.plan = plan
        configuration = kubernetes.client.Configuration()
        try:
            if plan.in_cluster:
                kubernetes.config.load_incluster_config(client_configuration=configuration)
            else:
                kubernetes.config.load_kube_config(plan.kubeconfig, plan.context, configuration, persist_config=False)
        except (kubernetes.config.ConfigException, OSError) as error:
            raise Stopped("kubernetes", f"no way to a cluster: {str(error)[:200]}",
                          "set deploy.kubernetes.kubeconfig and context, or in_cluster = true") from None
        configuration.retries = 0  # also: no redirects
        client = kubernetes.client.ApiClient(configuration)
        self._apps, self._core = kubernetes.client.AppsV1Api(client), kubernetes.client.CoreV1Api(client)
        self._failure: type[Exception] = kubernetes.client.ApiException

    def deployment(self, name: str) -> Any:
        """The Deployment as it is now. Raises Stopped: there is none, or we may not look."""
        return patiently(lambda: self._asked(name, "get", lambda: self._apps.read_namespaced_deployment(
            name, self.plan.namespace, _request_timeout=TIMEOUTS_S)))

    def set_images(self, name: str, images: dict[str, str], version: str) -> None:
        """
        Change the images of containers in one request, so that one rollout follows, if the Deployment is still as it was at *version*.

        Raises:
            Changed: it is not.
            DeployFailed: the server refuses the change.
            DeploySystemAway: nobody knows whether it was made.
        """
        containers = [{"name": container, "image": image} for container, image in images.items()]
        body = {"metadata": {"resourceVersion": version}, "spec": {"template": {"spec": {"containers": containers}}}}
        try:
            self._asked(name, "patch", lambda: self._apps.patch_namespaced_deployment(
                name, self.plan.namespace, body, field_manager=self.plan.field_manager, _request_timeout=TIMEOUTS_S))
        except DeploySystemAway:
            raise
        except Stopped as refused:
            raise DeployFailed(refused.subject, refused.reason, refused.remedy) from None

    def pods(self, selector: dict[str, str]) -> list[Any] | None:
        """The pods with these labels, or None where we may not see them or nobody answers."""
        labels = ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
        try:
            return list(self._core.list_namespaced_pod(self.plan.namespace, label_selector=labels, limit=MOST_PODS,
                                                       _request_timeout=TIMEOUTS_S).items)
        except Exception:  # noqa: BLE001  # a look at pods that fails must not hide what the Deployment says
            return None

    def _asked(self, name: str, verb: str, request: Callable[[], T]) -> T:
        subject = f"deployment {self.plan.namespace}/{name}"
        try:
            return request()
        except self._failure as error:
            status = int(getattr(error, "status", 0) or 0)
            said = _said(error)
        except Exception as error:  # noqa: BLE001  # network, TLS, timeout: whatever the client's transport raises
            raise DeploySystemAway(subject, f"the API server gave no answer to {verb}: {type(error).__name__}",
                                   "run the same command again once it does") from None
        if status == CONFLICT:
            raise Changed
        if status in DENIED:
            raise Stopped(subject, f"{verb} was denied ({status}): {said}",
                          f"give the account a Role with {verb} on deployments in namespace {self.plan.namespace}")
        if status == NOT_FOUND:
            raise Stopped(subject, "there is no such Deployment (404)", "correct deploy.kubernetes in the plan, or the context")
        if status == 0 or status >= SERVER_FAULT or status == TOO_MANY:
            raise DeploySystemAway(subject, f"the API server answered {verb} with {status or 'nothing'}: {said}",
                                   "run the same command again once it answers")
        raise Stopped(subject, f"{verb} was refused ({status}): {said}", "correct the plan")


def _said(error: Any) -> str:
    """The message of the server's Status object; never the whole body."""
    try:
        return str(json.loads(error.body)["message"])[:300]
    except (TypeError, ValueError, KeyError):
        return str(getattr(error, "reason", "") or "no reason given")[:300]
