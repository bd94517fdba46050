"""`[deploy]` and `[fleet]` of a plan: what is refused, and that nothing of it changes what a plan is."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from steps.plan_deploy import Deploy, Fleet

KUBERNETES: dict[str, Any] = {"namespace": "shop", "workload": [{"deployment": "api", "container": "app", "images": {"v1": "shop/api:1"}}]}
COMPOSE: dict[str, Any] = {"files": ["compose.yaml"], "service": [{"name": "api", "images": {"v1": "shop/api:1"}}]}
HTTP: dict[str, Any] = {"start_url": "https://deploy.example/deploys", "status_url": "https://deploy.example/deploys/{id}",
                        "bodies": {"v1": {"version": "1"}}}


def deploy(how: str, section: dict[str, Any] | None = None, **more: Any) -> Deploy:
    return Deploy.model_validate({"how": how, **({how: section} if section else {}), **more})


@pytest.mark.parametrize(("how", "section"), [("kubernetes", KUBERNETES), ("compose", COMPOSE), ("http", HTTP)])
def test_each_way_takes_its_section_and_needs_it(how: str, section: dict[str, Any]) -> None:
    assert deploy(how, section).how == how
    with pytest.raises(ValidationError, match=rf'how = "{how}" needs \[deploy\.{how}\]'):
        deploy(how)
    with pytest.raises(ValidationError, match="exclude each other"):
        deploy(how, section, command="true")


@pytest.mark.parametrize(("how", "section", "reason"), [
    ("kubernetes", {**KUBERNETES, "workload": KUBERNETES["workload"] * 2}, "a container is named twice"),
    ("kubernetes", {**KUBERNETES, "in_cluster": True, "context": "prod"}, "exclude each other"),
    ("kubernetes", {**KUBERNETES, "namespace": "Shop/../x"}, "should match pattern"),
    ("kubernetes", {**KUBERNETES, "workload": [{"deployment": "a", "container": "b", "images": {"v3": "x"}}]}, "'v0', 'v1' or 'v2'"),
    ("kubernetes", {**KUBERNETES, "workload": [{"deployment": "a", "container": "b", "images": {"v1": "x y"}}]}, "should match pattern"),
    ("compose", {**COMPOSE, "service": COMPOSE["service"] * 2}, "a service is named twice"),
    ("compose", {**COMPOSE, "override": "compose.yaml"}, "is written by us"),
    ("compose", {**COMPOSE, "service": [{"name": "--all", "images": {"v1": "x"}}]}, "should match pattern"),
    ("http", {**HTTP, "start_url": "http://deploy.example/deploys"}, "would travel in clear"),
    ("http", {**HTTP, "start_url": "file:///etc/passwd"}, "no http or https address"),
    ("http", {**HTTP, "start_url": "https://ci:secret@deploy.example/"}, "a plan never holds any"),
    ("http", {**HTTP, "status_url": "https://deploy.example/deploys"}, "need {id}"),
    ("http", {**HTTP, "token_env": "A", "token_file": "b"}, "exclude each other"),
    ("http", {**HTTP, "failed": ["over"], "done": ["over"]}, "both failed and done"),
    ("http", {**HTTP, "token": "secret"}, "Extra inputs are not permitted")])
def test_what_cannot_be_meant_is_refused(how: str, section: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        deploy(how, section)


@pytest.mark.parametrize(("url", "fine"), [("http://api.shop.svc:8080/ready", True), ("https://a.example/", True), ("ftp://x/", False),
                                           ("http://u:p@x/", False)])
def test_a_health_address_may_be_plain_http_because_no_token_goes_there(url: str, fine: bool) -> None:
    try:
        deploy("manual", health_url=url)
        taken = True
    except ValidationError:
        taken = False

    assert taken is fine


@pytest.mark.parametrize(("rule", "reason"), [
    ({}, "needs user, or attribute and value"), ({"attribute": "program_name"}, "go together"),
    ({"user": "a", "value": "x"}, "go together")])
def test_a_generation_is_told_by_account_or_attribute(rule: dict[str, str], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        Fleet.model_validate({"v0": rule})

    assert list(Fleet.model_validate({"v1": {"user": "app"}, "v0": {"attribute": "a", "value": "b"}}).generations()) == ["v0", "v1"]
