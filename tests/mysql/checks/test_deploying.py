"""What a way of deploying needs on this machine is told before phase 1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from steps.checks import deploying
from steps.plan import Plan
from steps.plan_deploy import Deploy
from tests.mysql.checks.conftest import Run

IMAGES = {"v1": "shop/api:1", "v2": "shop/api:2"}


def by(plan: Plan, how: str, section: dict[str, Any]) -> Plan:
    return plan.model_copy(update={"deploy": Deploy.model_validate({"how": how, how: section})})


def http(plan: Plan, **more: Any) -> Plan:
    return by(plan, "http", {"start_url": "https://deploy.example/d", "status_url": "https://deploy.example/d/{id}", "id_at": "id",
                             "status_at": "state", "bodies": {"v1": {}, "v0": {}}, **more})


def compose(plan: Plan, folder: Path, **more: Any) -> Plan:
    return by(plan, "compose", {"folder": str(folder), "files": ["compose.yaml"], "service": [{"name": "api", "images": IMAGES}], **more})


def test_commands_and_persons_need_nothing_here(found: Run) -> None:
    assert found(deploying) == []


def test_a_token_that_is_not_there_is_refused_unless_accepted(found: Run, plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOPE", raising=False)
    [finding] = found(deploying, http(plan, token_env="NOPE"))
    assert (finding.severity, finding.accept, finding.subject) == ("refuse", "deploy-unready", "deploy service")
    assert "the token in NOPE is missing" in finding.what

    monkeypatch.setenv("NOPE", "a-token")
    assert found(deploying, http(plan, token_env="NOPE")) == []


def test_a_compose_project_that_is_not_there_is_refused(found: Run, plan: Plan, tmp_path: Path) -> None:
    assert [f.what for f in found(deploying, compose(plan, tmp_path / "gone"))] == [
        "compose.yaml is not there: the run would stop at the deploy, after phase 1"]

    (tmp_path / "compose.yaml").write_text("services: {}")
    assert found(deploying, compose(plan, tmp_path, program="sh")) == []
    [finding] = found(deploying, compose(plan, tmp_path, program="no-such-program compose"))
    assert "no-such-program is not on the PATH" in finding.what


def test_a_kubeconfig_that_is_not_there_is_refused_and_a_missing_v1_told(found: Run, plan: Plan, tmp_path: Path) -> None:
    section = {"namespace": "shop", "kubeconfig": str(tmp_path / "none"),
               "workload": [{"deployment": "api", "container": "app", "images": {"v2": "shop/api:2"}}]}

    refused, told = found(deploying, by(plan, "kubernetes", section))

    assert (refused.severity, refused.accept, told.severity) == ("refuse", "deploy-unready", "warn")
    assert "no way to a cluster" in refused.what
    assert "does not say what v1 is" in told.what
