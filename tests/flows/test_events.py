"""What the event stream hears of a rollout: every transition in order, with table, phase, who and why, and never a secret or a row."""

from __future__ import annotations

import json
from typing import Any, Self

import pytest

from flows.params import CheckRequest, LookRequest, RollbackRequest, RunRequest, Through
from flows.watching import WatchRequest
from steps.rollout import Rollout
from tests.flows.deploy_stage import CLEANUP, Stage
from tests.flows.stream import as_a_worker_has_it, told

SOAKED = Through.SHADOW_WRITE
PHASES = ["1. pre_deploy", "2. deploy", "3. backfill", "4. verify", "5. shadow_write"]


@pytest.fixture
def served(prefect_server: None, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """The stage's database as a worker has it."""
    return as_a_worker_has_it(stage, monkeypatch)


def request(stage: Stage, **more: Any) -> RunRequest:
    return RunRequest(plan=str(stage.folder), by="ann", reason="CHG-1", through=SOAKED, **more)


def heard(stage: Stage, wanted: int) -> list[dict[str, Any]]:
    return told("mysql-rollout.", f"mysql-rollout.{stage.target.schema}.job", wanted)


def names(events: list[dict[str, Any]]) -> list[str]:
    return [event["event"].removeprefix("mysql-rollout.") for event in events]


def test_a_rollout_and_its_watch_tell_every_transition_in_order(served: Stage) -> None:
    from flows import deployments, parity_watch

    state = deployments.rollout(request(served), return_state=True)
    parity_watch.parity_watch(WatchRequest(plan=str(served.folder), by="bob", reason="the soak"), return_state=True)
    deployments.rollback_shadow_write(RollbackRequest(plan=str(served.folder), by="ann", reason="CHG-2"), return_state=True)

    events = heard(served, 16)
    forward = [name for _ in PHASES for name in ("phase.started", "phase.ended")]
    assert names(events) == [*forward, "completed", "parity.clean", "gate.opened", "phase.started", "phase.ended", "taken-back"]
    assert [event["payload"]["phase"] for event in events[:10:2]] == PHASES
    first = events[0]
    assert (first["payload"]["by"], first["payload"]["reason"], first["payload"]["plan"]) == ("ann", "CHG-1", "small")
    related = {one["prefect.resource.role"]: one["prefect.resource.id"] for one in first["related"]}
    assert related["flow-run"] == f"prefect.flow-run.{state.state_details.flow_run_id}"
    assert first["payload"]["text"] == (f"rollout of table {served.target.schema}.job (plan small), 1. pre_deploy: has begun. "
                                        "By ann: CHG-1")
    assert events[11]["payload"]["by"] == "bob"


def test_a_look_leaves_how_far_the_soak_is_and_parity_over_time(served: Stage) -> None:
    from prefect.client.orchestration import get_client

    from flows import deployments, parity_watch

    served.plan(command="true", rollback_command="true", cleanup=CLEANUP + "[gates]\nsoak = { shadow_write = 86400 }\n")
    deployments.rollout(request(served), return_state=True)
    state = parity_watch.parity_watch(WatchRequest(plan=str(served.folder), by="bob", reason="the soak"), return_state=True)

    with get_client(sync_client=True) as client:
        asked = {"limit": 20, "artifacts": {"flow_run_id": {"any_": [str(state.state_details.flow_run_id)]}}}
        left = {one["key"]: one for one in client.request("POST", "/artifacts/filter", json=asked).json()}
    page, progress = left["small-parity-watch"], left["small-soak-progress"]
    assert "Parity over time" in page["data"]
    assert (progress["type"], 0 <= float(progress["data"]) < 1) == ("progress", True)
    assert "soak of small: " in progress["description"]
    assert ": clean" in progress["description"]


def test_the_page_of_a_look_that_found_something_says_so_and_so_does_the_soak(served: Stage) -> None:
    from prefect.client.orchestration import get_client

    from flows import deployments, parity_watch

    deployments.rollout(request(served), return_state=True)
    served.app.run("UPDATE job SET status = 'completed', state = 'locked' WHERE id = 'b'")
    state = parity_watch.parity_watch(WatchRequest(plan=str(served.folder), by="bob", reason="the soak"), return_state=True)

    with get_client(sync_client=True) as client:
        asked = {"limit": 20, "artifacts": {"flow_run_id": {"any_": [str(state.state_details.flow_run_id)]}}}
        left = {one["key"]: one for one in client.request("POST", "/artifacts/filter", json=asked).json()}
        tags = client.read_flow_run(state.state_details.flow_run_id).tags
    page = left["small-parity-watch"]
    assert "**Parity is lost: 1 rows differ. 2 rows looked at.**" in page["data"]
    assert "| ended | parity lost |" in page["data"]
    assert "| took | " in page["data"]
    assert "| took | 0 ms " not in page["data"]
    assert page["description"] == f"Parity is lost: 1 rows differ. 2 rows looked at. Table {served.target.schema}.job"
    assert "not over while parity is lost" in left["small-soak-progress"]["description"]
    assert {f"table:{served.target.schema}.job", "plan:small", "look"} <= set(tags)


@pytest.mark.parametrize("name", ["check", "plan", "rehearse"])
def test_a_look_is_found_by_its_plan_and_table_as_a_run_is(served: Stage, name: str) -> None:
    from prefect.client.orchestration import get_client

    from flows import looking

    kind = CheckRequest if name == "check" else LookRequest
    state = getattr(looking, name)(kind(plan=str(served.folder), by="ann"), return_state=True)

    with get_client(sync_client=True) as client:
        tags = client.read_flow_run(state.state_details.flow_run_id).tags
    assert {f"table:{served.target.schema}.job", "plan:small", "mysql-rollout", "look"} <= set(tags)


def test_a_flow_run_bears_table_plan_and_phase_as_labels(served: Stage) -> None:
    from prefect.client.orchestration import get_client

    from flows import deployments

    state = deployments.rollout(request(served), return_state=True)

    with get_client(sync_client=True) as client:
        flow_run = client.read_flow_run(state.state_details.flow_run_id)
    labels = flow_run.labels
    assert "mysql-rollout" in flow_run.tags
    assert {key.removeprefix("mysql-rollout."): value for key, value in labels.items() if key.startswith("mysql-rollout.")} == {
        "phase": "5. shadow_write", "table": f"{served.target.schema}.job", "plan": "small"}


@pytest.mark.parametrize(("deploy", "ends", "says"), [
    ({"command": "exit 3", "rollback_command": "true"}, "rolled-back", "failed and was rolled back: "),
    ({"how": "manual"}, "waiting", "waits: "),
])
def test_how_a_run_ended_is_told_with_what_to_do(served: Stage, deploy: dict[str, str], ends: str, says: str) -> None:
    from flows import deployments

    served.plan(**deploy)
    deployments.rollout(request(served), return_state=True)

    events = heard(served, 5)
    assert names(events) == ["phase.started", "phase.ended", "phase.started", "phase.failed", ends]
    last = events[-1]["payload"]
    assert says in last["text"]
    assert f"What to do: {last['remedy']}. By ann: CHG-1" in last["text"]
    assert (last["phase"], bool(last["remedy"]), bool(last["what"])) == ("2. deploy", True, True)


def test_a_refusal_is_told_before_any_phase(served: Stage) -> None:
    from flows import deployments

    served.app.run("ALTER TABLE job DROP PRIMARY KEY")
    deployments.rollout(request(served), return_state=True)

    events = heard(served, 1)
    assert names(events) == ["refused"]
    assert (events[0]["payload"]["exit_code"], events[0]["payload"]["phase"]) == (3, "")


def test_lost_parity_is_told_by_key_and_never_by_content(served: Stage) -> None:
    from flows import deployments, parity_watch

    deployments.rollout(request(served), return_state=True)
    served.app.run("UPDATE job SET status = 'completed', state = 'locked' WHERE id = 'a'")
    state = parity_watch.parity_watch(WatchRequest(plan=str(served.folder), by="bob", reason="the soak"), return_state=True)

    assert (state.type, state.name) == ("FAILED", "ParityLost")
    events = heard(served, 12)
    assert names(events)[11:] == ["parity.lost"]
    assert events[-1]["payload"]["keys"] == ["a"]
    assert "locked" not in json.dumps(events)


def test_secrets_are_masked_in_what_is_told(served: Stage) -> None:
    from flows import deployments
    from steps import masking

    masking.remember("s3cret-word")
    served.plan(command="echo s3cret-word; exit 3", rollback_command="true")
    deployments.rollout(request(served).model_copy(update={"reason": "CHG s3cret-word"}), return_state=True)

    text = json.dumps(heard(served, 5))
    assert "s3cret-word" not in text
    assert "CHG ***" in text


def test_an_api_that_never_answers_does_not_hold_up_a_transition(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    from flows import api, events

    monkeypatch.setattr(events, "TELL_WITHIN_S", 0.05)

    class Silent:
        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None:
            return None

        def request(self, *_: object, **_more: object) -> None:
            import threading
            threading.Event().wait(5)

    monkeypatch.setattr(api, "client", lambda _seconds: Silent())
    stage.plan(command="true", rollback_command="true")
    rollout = stage.rollout()
    done: list[Rollout] = []

    with events.telling(rollout), events.phase_told("1. pre_deploy", rollout):
        done.append(rollout)

    assert done == [rollout]
