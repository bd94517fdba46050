"""`deploy/prefect.yaml` is made of the one list of deployments, and its forms read well."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from flows import prefect_yaml, served
from flows.desk import ACCEPT_KEYS, UNSEEN
from flows.params import HOW, CheckRequest, LookRequest, Request, RollbackRequest, RunRequest, Through


def test_the_file_is_what_the_list_makes() -> None:
    assert prefect_yaml.FILE.read_text() == prefect_yaml.render(), "run python -m flows.prefect_yaml"


def test_the_file_names_every_flow_of_the_list_and_pulls_nothing() -> None:
    document = yaml.safe_load(prefect_yaml.FILE.read_text())

    assert document["pull"] == []
    assert [each["name"] for each in document["deployments"]] == [each.name for each in served.DEPLOYED]
    for each in document["deployments"]:
        assert each["work_pool"]["job_variables"]["stream_output"] is False
        assert each["work_pool"]["job_variables"]["env"]["PREFECT_FLOWS_HEARTBEAT_FREQUENCY"] == "30"
        assert "concurrency_limit" not in each


def test_a_schedule_and_its_parameters_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    one = served.Deployed(served.DEPLOYED[0].flow, served.LOOK, cron="17 * * * *", parameters={"request": {"plan": "p"}})
    monkeypatch.setattr(served, "DEPLOYED", (one,))

    (found,) = yaml.safe_load(prefect_yaml.render())["deployments"]

    assert found["schedules"] == [{"cron": "17 * * * *", "timezone": "UTC", "active": False}]
    assert found["parameters"] == {"request": {"plan": "p"}}


@pytest.mark.parametrize("each", served.DEPLOYED, ids=lambda each: each.name)
def test_every_form_asks_who_and_every_change_why(each: served.Deployed) -> None:
    schema = each.flow.parameters.model_dump()
    (form,) = [found for name, found in schema["definitions"].items() if "properties" in found]
    changes = each.direction != served.LOOK

    assert {"plan", "by", *(["reason"] if changes else [])} <= set(form["required"])
    for name, shown in form["properties"].items():
        assert shown["title"] != name.title().replace("_", " ") or name in ("plan", "database")
        assert shown["description"]
        assert "anyOf" not in shown, f"{name}: two pages for one field"
    assert each.flow.description.strip().startswith("**")
    assert "password" not in json.dumps(schema).lower()


@pytest.mark.parametrize("model", [Request, RunRequest, RollbackRequest, LookRequest])
def test_what_is_wanted_stands_above_how_it_is_done(model: type[Request]) -> None:
    shown = model.model_json_schema()["properties"]
    order = sorted(shown, key=lambda name: shown[name]["position"])

    assert order[:2] == ["plan", "by"]
    assert [name for name in order if name in HOW] == [name for name in HOW if name in order]
    assert order[-1] in HOW


def test_a_choice_left_out_and_one_given_as_null_are_the_same() -> None:
    given = {"plan": "p", "by": "ann", "reason": "due"}

    assert RollbackRequest.model_validate({**given, "phase": None, "to": None}) == RollbackRequest.model_validate(given)
    assert RunRequest.model_validate(given).first is None


def test_a_phases_own_way_back_is_asked_no_more_than_it_uses() -> None:
    def fields(name: str) -> set[str]:
        (found,) = [each for each in served.DEPLOYED if each.name == name]
        forms: dict[str, Any] = found.flow.parameters.model_dump()["definitions"]
        return set().union(*(form.get("properties", {}) for form in forms.values()))

    for phase in Through:
        assert not fields(f"rollback_{phase.value}") & {"phase", "to"}
        assert ("drop_added" in fields(f"rollback_{phase.value}")) == (phase is Through.PRE_DEPLOY)
    assert {"phase", "to", "drop_added"} <= fields("rollback")


def test_keys_to_accept_are_chosen_from_all_that_a_run_takes() -> None:
    for model in (Request, CheckRequest):
        assert set(model.model_json_schema()["properties"]["accept"]["items"]["enum"]) == ACCEPT_KEYS | UNSEEN
