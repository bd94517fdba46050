"""The files of a team's installation: valid, without secrets, and of one mind with the image and the list of deployments."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.client import models

from flows import prefect_yaml
from flows.readiness import API
from steps import __version__
from steps.target import ENVIRONMENT_FILE

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
WORKER = list(yaml.safe_load_all((DEPLOY / "kubernetes" / "worker.yaml").read_text()))
DOCKERFILE = (DEPLOY / "Dockerfile").read_text()
PLAIN = {"str": str, "int": int, "bool": bool, "float": float, "object": object}


def faults(value: Any, kind: str, where: str = "") -> list[str]:
    """What the official client's model *kind* does not know, or knows to be of another type, or to be required."""
    if kind.startswith("dict("):
        inner = kind[5:-1].partition(", ")[2]
        return [fault for key, item in value.items() for fault in faults(item, inner, f"{where}.{key}")]
    if kind.startswith("list["):
        if not isinstance(value, list):
            return [f"{where}: no list"]
        return [fault for number, item in enumerate(value) for fault in faults(item, kind[5:-1], f"{where}[{number}]")]
    if kind in PLAIN:
        return [] if isinstance(value, PLAIN[kind]) else [f"{where}: {value!r} is no {kind}"]
    model = getattr(models, kind)
    known = {name: attribute for attribute, name in model.attribute_map.items()}
    if not isinstance(value, dict):
        return [f"{where}: no {kind}"]
    found = [f"{where}.{key}: not known to {kind}" for key in value if key not in known]
    given = {known[key]: None if isinstance(item, (dict, list)) and not item else item for key, item in value.items() if key in known}
    try:
        model(**{name: item if item is not None else [] for name, item in given.items()})
    except ValueError as missing:
        found.append(f"{where}: {missing}")
    return found + [fault for key, item in value.items() if key in known
                    for fault in faults(item, model.openapi_types[known[key]], f"{where}.{key}")]


@pytest.mark.parametrize("document", WORKER, ids=lambda each: each["kind"])
def test_every_kubernetes_object_is_one_of_the_official_models(document: dict[str, Any]) -> None:
    assert faults(document, f"V1{document['kind']}") == []


def test_the_models_would_see_a_misspelled_key_a_wrong_type_and_a_missing_one() -> None:
    spec = {"selector": {"matchLabels": {}}, "template": {"spec": {"containers": [{"name": "a", "comand": ["x"]}]}}, "replicas": "1"}

    assert faults({"spec": spec}, "V1Deployment") == [
        ".spec.template.spec.containers[0].comand: not known to V1Container", ".spec.replicas: '1' is no int"]
    assert "must not be `None`" in faults({"rules": [{"verbs": None}]}, "V1Role")[0] or faults({"spec": {}}, "V1Deployment")


def test_the_kinds_are_all_there_and_names_meet() -> None:
    by_kind = {document["kind"]: document for document in WORKER}

    assert set(by_kind) == {"ServiceAccount", "ConfigMap", "Job", "Deployment", "Role", "RoleBinding", "NetworkPolicy"}
    pod = by_kind["Deployment"]["spec"]["template"]
    account = by_kind["ServiceAccount"]["metadata"]
    assert pod["spec"]["serviceAccountName"] == account["name"]
    assert by_kind["RoleBinding"]["subjects"] == [{"kind": "ServiceAccount", **account}]
    assert by_kind["RoleBinding"]["roleRef"]["name"] == by_kind["Role"]["metadata"]["name"]
    assert by_kind["Role"]["metadata"]["namespace"] == by_kind["RoleBinding"]["metadata"]["namespace"]
    labels = pod["metadata"]["labels"]
    assert by_kind["Deployment"]["spec"]["selector"]["matchLabels"] == labels
    assert by_kind["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"].items() <= labels.items()
    assert pod["spec"]["containers"][0]["envFrom"] == [{"configMapRef": {"name": by_kind["ConfigMap"]["metadata"]["name"]}}]
    settings = by_kind["ConfigMap"]["data"]
    assert settings[API].endswith(":4200/api")
    mounts = {mount["name"]: mount["mountPath"] for mount in pod["spec"]["containers"][0]["volumeMounts"]}
    assert settings[ENVIRONMENT_FILE] == f"{mounts['database']}/url"


def test_the_role_is_what_the_readme_says_and_nothing_cluster_wide() -> None:
    (role,) = [document for document in WORKER if document["kind"] == "Role"]

    assert [(rule["resources"], rule["verbs"]) for rule in role["rules"]] == [(["deployments"], ["get", "patch"]), (["pods"], ["list"])]
    assert not {"ClusterRole", "ClusterRoleBinding", "Secret"} & {document["kind"] for document in WORKER}


def test_every_container_of_ours_runs_the_pinned_image_as_nobody_special() -> None:
    user = int(re.search(r"^USER (\d+):\1$", DOCKERFILE, re.MULTILINE)[1])  # type: ignore[index]

    for document in WORKER:
        if document["kind"] in ("Deployment", "Job"):
            spec = document["spec"]["template"]["spec"]
            assert (spec["securityContext"]["runAsNonRoot"], spec["securityContext"]["runAsUser"]) == (True, user)
            for container in spec["containers"]:
                assert container["image"] == f"mysql-rollout:{__version__}"
                assert container["securityContext"]["allowPrivilegeEscalation"] is False
    assert COMPOSE["services"]["worker"]["image"] == f"${{ROLLOUT_IMAGE:-mysql-rollout:{__version__}}}"


def test_compose_has_a_health_check_a_restart_policy_and_an_order_for_everything() -> None:
    services = COMPOSE["services"]

    assert set(services) == {"mysql", "postgres", "server", "deployments", "worker"}
    for name, service in services.items():
        assert service["restart"] == ("no" if name == "deployments" else "unless-stopped")
        waits = service.get("depends_on", {})
        assert set(waits) <= set(services)
        assert all(wait["condition"] in ("service_healthy", "service_completed_successfully") for wait in waits.values())
    assert all("test" in services[name]["healthcheck"] for name in ("mysql", "postgres", "server"))
    assert "healthcheck" not in services["worker"]  # the image's own
    assert {volume for service in services.values() for volume in service.get("volumes", [])} == {
        "mysql:/var/lib/mysql", "postgres:/var/lib/postgresql/data", "worker:/var/lib/rollout", "${ROLLOUT_PLANS:-./plans}:/plans:ro"}


def test_secrets_are_files_that_a_service_names_and_none_is_written_down() -> None:
    named = {secret for service in COMPOSE["services"].values() for secret in service.get("secrets", [])}

    assert named == set(COMPOSE["secrets"])
    assert all(secret["file"].startswith("${ROLLOUT_SECRETS:-") for secret in COMPOSE["secrets"].values())
    for service in COMPOSE["services"].values():
        for key, value in service.get("environment", {}).items():
            assert not re.search("PASSWORD|AUTH|TOKEN", key) or (key.endswith("_FILE") and value.startswith("/run/secrets/")), key
    texts = [(DEPLOY / "compose.yaml").read_text(), *((DEPLOY / "kubernetes").glob("*.yaml"))]
    for text in (each if isinstance(each, str) else each.read_text() for each in texts):
        lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
        assert not re.search(r"://[^/\s]+:[^$/\s]+@", "\n".join(lines))


def test_prefects_pages_are_published_to_loopback_only() -> None:
    assert [port for service in COMPOSE["services"].values() for port in service.get("ports", [])] == ["127.0.0.1:4200:4200"]


def test_image_compose_and_kubernetes_ask_the_pool_that_the_deployments_are_in() -> None:
    pool = f"--pool {prefect_yaml.POOL} --type process --with-healthcheck"
    command = " ".join(re.search(r"^CMD \[(\"prefect\".*)\]$", DOCKERFILE, re.MULTILINE)[1].replace('"', "").split(", "))  # type: ignore[index]
    (worker,) = [document for document in WORKER if document["kind"] == "Deployment"]

    assert pool in command
    assert pool in COMPOSE["services"]["worker"]["command"][-1]
    assert pool in " ".join(worker["spec"]["template"]["spec"]["containers"][0]["args"])
    for text in ((DEPLOY / "compose.yaml").read_text(), (DEPLOY / "kubernetes" / "worker.yaml").read_text()):
        assert "deploy --all --prefect-file /opt/rollout/share/rollout/prefect.yaml" in text
    assert "/opt/rollout/share/rollout" in DOCKERFILE


def test_the_chart_of_the_server_is_given_the_prefect_that_is_pinned() -> None:
    values = yaml.safe_load((DEPLOY / "kubernetes" / "prefect-server.yaml").read_text())
    pinned = re.search(r"^prefect==(.+)$", (DEPLOY.parent / "constraints.txt").read_text(), re.MULTILINE)

    assert pinned
    assert values["global"]["prefect"]["image"]["prefectTag"].startswith(f"{pinned[1]}-")
    assert values["server"]["basicAuth"]["existingSecret"] == "prefect-login"
    assert values["secret"] == {"create": False, "name": "prefect-database"}
