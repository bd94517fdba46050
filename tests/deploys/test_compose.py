"""By Compose, against a command line of ours: the override file, one service after the other, and every way in which it can go wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from steps.deploys.compose import Compose
from steps.errors import DeployFailed, Stopped
from steps.plan_deploy import Compose as Section
from tests.deploys.conftest import Ledger
from tests.doubles.compose_project import BEFORE, Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def way(project: Project, **more: Any) -> Compose:
    return Compose(Section.model_validate(project.section(**more)))


def test_there_and_back_service_by_service(project: Project, ledger: Ledger) -> None:
    found = ledger.put_out(way(project))

    assert project.images() == {"api": "shop/api:1", "worker": "shop/worker:1"}
    assert found["changed"] == ["api", "worker"]
    assert ledger.kept == BEFORE
    assert json.loads(project.override.read_text()) == {"services": {"api": {"image": "shop/api:1"}, "worker": {"image": "shop/worker:1"}}}
    assert json.loads((project.folder / "compose.yaml").read_text())["services"]["api"]["image"] == "shop/api:0"

    assert ledger.put_out(way(project))["changed"] == []
    ledger.take_back(way(project))

    assert project.images() == BEFORE
    assert project.state["ups"] == [["api", "shop/api:1"], ["worker", "shop/worker:1"], ["api", "shop/api:0"], ["worker", "shop/worker:0"]]
    assert not project.override.with_name("compose.rollout.json.new").exists()


def test_a_migration_that_ran_in_a_container_of_the_service_is_no_part_of_it(project: Project, ledger: Ledger) -> None:
    one_off = {"Service": "api", "Image": "shop/api:0", "State": "exited", "Labels": "a=b,com.docker.compose.oneoff=True"}
    project.set(containers=[*project.state["containers"], one_off], keeps_exited=True)

    assert ledger.put_out(way(project))["changed"] == ["api", "worker"]

    assert one_off in project.state["containers"]
    assert ledger.kept == BEFORE


@pytest.mark.parametrize(("how", "said"), [
    ("fails", "service api: up with shop/api:1 ended with 18: Error response from daemon: manifest for shop/api:1 not found"),
    ("unhealthy", "service api: up with shop/api:1 ended with 1"), ("hangs", r"service api: did not come with shop/api:1 within 1 s")])
def test_a_service_that_does_not_come_is_named_and_taken_back(project: Project, ledger: Ledger, how: str, said: str) -> None:
    project.set(next=how)

    with pytest.raises(DeployFailed, match=said):
        ledger.put_out(way(project), deadline_s=1 if how == "hangs" else 30)

    project.set(next="well")
    ledger.take_back(way(project))
    assert project.images() == BEFORE


def test_continued_after_one_service_it_brings_up_only_the_other(project: Project, ledger: Ledger) -> None:
    ledger.keep(way(project).look("v1", {}))
    project.override.write_text(json.dumps({"services": {"api": {"image": "shop/api:1"}, "worker": {"image": "shop/worker:1"}}}))
    project.set(containers=[{**container, "Image": "shop/api:1"} if container["Service"] == "api" else container
                            for container in project.state["containers"]])

    ledger.put_out(way(project))

    assert project.state["ups"] == [["worker", "shop/worker:1"]]
    assert ledger.kept == BEFORE


def test_an_engine_that_is_away_stops_before_anything_is_changed(project: Project, ledger: Ledger) -> None:
    project.set(away=True)

    with pytest.raises(Stopped, match="ended with 1: Cannot connect to the Docker daemon") as stopped:
        ledger.put_out(way(project))

    assert (stopped.value.exit_code, ledger.kept, project.override.exists()) == (4, {}, False)


@pytest.mark.parametrize(("change", "said"), [
    ({"program": "no-such-compose"}, "no-such-compose cannot be started: No such file"),
    ({"service": [{"name": "gone", "images": {"v1": "x:1"}}]}, "service gone: has no container")])
def test_what_is_not_there_is_named(project: Project, ledger: Ledger, change: dict[str, Any], said: str) -> None:
    with pytest.raises(Stopped, match=said):
        ledger.put_out(way(project, **change))


def test_an_override_that_is_not_ours_is_left_alone(project: Project, ledger: Ledger) -> None:
    project.override.write_text("services:\n  api:\n    image: theirs\n")

    with pytest.raises(Stopped):
        ledger.put_out(way(project))

    assert project.override.read_text() == "services:\n  api:\n    image: theirs\n"
    assert project.state["ups"] == []
