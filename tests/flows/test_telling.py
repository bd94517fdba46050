"""What Prefect missed is told to a real API afterwards, once, with the ledger's names and times, and never a secret."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any
from uuid import uuid4

import pytest

from flows import report
from steps.errors import Stopped
from steps.ledger import Event, Ledger
from steps.rollout import Rollout
from steps.target import ENVIRONMENT
from tests.cli.calling import PLAN, caller
from tests.doubles.api_relay import ApiRelay

NOWHERE = "http://127.0.0.1:9/api"
Rollouts = Callable[..., Rollout]
SECRET = "s3cr3t-in-a-statement"  # planted


@pytest.fixture
def api(prefect_server: None) -> Iterator[Any]:
    """The real server's API, for looking."""
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        yield client


@pytest.fixture
def ledger(rollouts: Rollouts) -> Ledger:
    """A ledger with no run yet."""
    found = rollouts().ledger
    found.create()
    return found


def ran(ledger: Ledger, exit_code: int | None, outcome: str | None, *events: Event, verb: str = "run", **options: Any) -> str:
    """A run on record that ended so; None: it was killed."""
    ledger.run_id = uuid4().hex
    ledger.session.run(
        f"INSERT INTO {ledger.table('run')} VALUES ('{ledger.run_id}', '{ledger.key[0]}', '{ledger.key[1]}', '{ledger.key[2]}', '{verb}', "
        f"'ann', 'CHG-1', 'host', '{json.dumps(options)}', '0', UTC_TIMESTAMP(3) - INTERVAL 1 DAY, "
        f"{'NULL' if outcome is None else 'UTC_TIMESTAMP(3) - INTERVAL 1 HOUR'}, {exit_code if exit_code is not None else 'NULL'}, "
        + ("NULL)" if outcome is None else f"'{outcome}')"))
    for event in events:
        ledger.record(event, age_s=23 * 3600)
    return ledger.run_id


def sync(ledger: Ledger) -> Any:
    from flows import telling

    return telling.sync(report.audit_trail(ledger), at_work=False)


def telling_now(ledger: Ledger) -> Any:
    """While somebody is at work."""
    from flows import telling

    return telling.sync(report.audit_trail(ledger), at_work=True)


def flow_run(api: Any, run_id: str) -> Any:
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterIdempotencyKey

    [found] = api.read_flow_runs(flow_run_filter=FlowRunFilter(idempotency_key=FlowRunFilterIdempotencyKey(any_=[run_id])))
    return found


def tasks(api: Any, flow_run_id: Any) -> dict[str, Any]:
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId

    return {one.name: one for one in api.read_task_runs(flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=[flow_run_id])))}


def pages(api: Any, flow_run_id: Any) -> list[Any]:
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId

    return list(api.read_artifacts(flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=[flow_run_id]))))


WENT = (Event("pre_deploy", "010_add", "done", statement=f"ALTER TABLE t -- {SECRET}", duration_ms=1500, rows=3),
        Event("deploy", "command for v1", "failed", detail={"error": "ended with 3"}),
        Event("deploy", "command for v0", "done", "back", duration_ms=200))


def test_each_run_is_told_with_the_state_that_the_ledger_gives_it(ledger: Ledger, api: Any) -> None:
    ends = {ran(ledger, 0, "done"): ("COMPLETED", "Completed"),
            ran(ledger, 4, "table t: held; wait"): ("FAILED", "Stopped"),
            ran(ledger, 4, "cancelled by SIGTERM"): ("CANCELLED", "Cancelled"),
            ran(ledger, 5, "deploy: ended with 3"): ("FAILED", "RolledBack"),
            ran(ledger, 7, "deploy: and the way back too", verb="rollback"): ("FAILED", "RollbackFailed"),
            ran(ledger, 1, "ValueError: odd"): ("FAILED", "Failed"),
            ran(ledger, None, "never ended: killed or lost"): ("CRASHED", "Crashed")}

    summary = sync(ledger)

    assert (summary.runs, summary.completed, summary.known) == (len(ends), 0, 0)
    for run_id, ending in ends.items():
        told = flow_run(api, run_id)
        assert (told.state.type.value, told.state.name) == ending
    assert told.name == f"rollout {ledger.key[2]} by ann"


def test_while_one_without_prefect_is_at_work_all_others_are_told(ledger: Ledger, api: Any) -> None:
    before = ran(ledger, 0, "done")
    ledger.session.run(f"INSERT INTO {ledger.table('run')} (run_id, table_schema, table_name, plan_id, verb, actor, reason, host, options, "
                       "tool_version, started_at) SELECT 'now', table_schema, table_name, plan_id, verb, actor, reason, host, options, "
                       f"tool_version, UTC_TIMESTAMP(3) FROM {ledger.table('run')}")

    summary = telling_now(ledger)

    assert (summary.runs, summary.at_work) == (1, 1)
    assert flow_run(api, before).state.name == "Completed"


def test_a_run_is_told_whole_with_its_own_times_and_a_second_time_nothing_is(ledger: Ledger, api: Any) -> None:
    from steps import masking

    masking.remember(SECRET)
    run_id = ran(ledger, 5, "deploy: ended with 3", *WENT, through="shadow_write", settings=["deploy.command=x"])

    first = sync(ledger)
    told = flow_run(api, run_id)
    known = tasks(api, told.id)

    assert (first.runs, first.events, first.known) == (1, 3, 0)
    assert told.parameters == {"request": {"through": "shadow_write", "settings": ["deploy.command=x"], "plan": ledger.key[2], "by": "ann",
                                           "reason": "CHG-1"}}
    assert set(told.tags) == {"mysql-rollout", "told-later"}
    [run] = ledger.runs()
    assert told.expected_start_time == datetime.fromisoformat(run["started_at"])
    assert run["started_at"] in told.state.message
    assert {name: one.state.name for name, one in known.items()} == {
        "1. pre_deploy": "Completed", "010_add": "Completed", "2. deploy": "Failed", "command for v1": "Failed",
        "rollback of deploy": "Completed", "command for v0": "Completed"}
    event = ledger.events()[0]
    assert known["010_add"].end_time == datetime.fromisoformat(event["at"])
    assert known["010_add"].total_run_time.total_seconds() == 1.5
    assert [one.id for one in known["010_add"].task_inputs["__parents__"]] == [known["1. pre_deploy"].id]
    assert [one.id for one in known["2. deploy"].task_inputs["wait_for"]] == [known["1. pre_deploy"].id]
    [page] = pages(api, told.id)
    assert "| 010_add | done | 1,500 | 3 |" in page.data
    assert "ALTER TABLE t -- ***" in page.data
    assert SECRET not in json.dumps([page.data, told.parameters, told.state.message], default=str)

    second = sync(ledger)

    assert (second.runs, second.completed, second.events, second.known) == (0, 0, 0, 1)
    assert tasks(api, told.id).keys() == known.keys()
    assert len(pages(api, told.id)) == 1
    assert len(api.read_flow_run_states(told.id)) == 2


@pytest.mark.parametrize("requests", [3, 5])
def test_an_api_that_dies_while_it_is_told_is_told_the_rest_the_next_time_and_nothing_twice(
        ledger: Ledger, api: Any, requests: int) -> None:
    from prefect.settings import PREFECT_API_URL, PREFECT_CLIENT_MAX_RETRIES, temporary_settings

    run_id = ran(ledger, 0, "done", *WENT[:1])
    with ApiRelay(str(PREFECT_API_URL.value()), most=requests) as relay, temporary_settings(
            {PREFECT_API_URL: relay.url, PREFECT_CLIENT_MAX_RETRIES: 0}), \
            pytest.raises(Stopped, match="0 runs were told before that") as stopped:
        sync(ledger)
    assert (stopped.value.exit_code, relay.url in stopped.value.subject) == (4, True)
    assert "nothing is told twice" in stopped.value.remedy

    assert sync(ledger).runs == 1

    told = flow_run(api, run_id)
    assert told.state.name == "Completed"
    assert tasks(api, told.id).keys() == {"1. pre_deploy", "010_add"}
    assert len(pages(api, told.id)) == 1


def test_the_command_says_which_api_is_away_and_that_the_same_command_tells_it_later(
        ledger: Ledger, url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from prefect.settings import PREFECT_API_URL, temporary_settings

    ran(ledger, 0, "done")
    monkeypatch.setenv(ENVIRONMENT, url)
    with temporary_settings({PREFECT_API_URL: NOWHERE}):
        answer = caller(monkeypatch, capsys)("report", PLAN, "--sync", "--json")

    assert (answer.code, answer.document["subject"], len(answer.document["runs"])) == (4, f"Prefect API {NOWHERE}", 1)
    assert "correct PREFECT_API_URL, then run the same command again" in answer.document["remedy"]


def test_a_run_at_work_is_told_when_it_has_ended(ledger: Ledger, api: Any) -> None:
    from flows import telling

    ran(ledger, None, None)

    summary = telling.sync(report.audit_trail(ledger), at_work=True)

    assert (summary.runs, summary.known, summary.at_work) == (0, 0, 1)
    assert "1 still at work" in summary.text()


def test_what_prefect_saw_of_a_run_is_told_to_its_end(ledger: Ledger, api: Any) -> None:
    """As a process leaves it that was killed with its API: a flow run that runs, with one phase done and one that runs."""
    from prefect import flow, task
    from prefect.context import FlowRunContext

    @flow(name="rollout", persist_result=False)
    def cut_short() -> None:
        context = FlowRunContext.get()
        assert context
        assert context.flow_run
        seen.append(context.flow_run.id)
        task(name="1. pre_deploy", task_run_name="1. pre_deploy", persist_result=False)(lambda: None)()

    seen: list[Any] = []
    cut_short()
    from prefect.states import Running

    api.set_flow_run_state(seen[0], Running(), force=True)
    until = time.monotonic() + 60
    while "1. pre_deploy" not in tasks(api, seen[0]):  # the server's recorder takes a moment
        assert time.monotonic() < until
        time.sleep(0.1)
    ran(ledger, 0, "done", *WENT[:1], Event("backfill", "closing pass", "done"), flow_run=str(seen[0]))

    summary = sync(ledger)

    assert (summary.runs, summary.completed, summary.known) == (0, 1, 0)
    assert api.read_flow_run(seen[0]).state.name == "Completed"
    known = tasks(api, seen[0])
    assert known.keys() == {"1. pre_deploy", "3. backfill", "closing pass"}
    assert all(one.state.is_completed() for one in known.values())
    assert len(pages(api, seen[0])) == 1
    assert sync(ledger).known == 1


def test_a_run_that_waits_at_a_gate_or_goes_on_after_it_or_was_cancelled_is_left_as_it_is(ledger: Ledger, api: Any) -> None:
    from prefect import flow
    from prefect.states import Cancelled, Running, Scheduled, Suspended

    deployment = api.create_deployment(flow_id=api.create_flow(flow(lambda: None, name="rollout")), name=uuid4().hex)
    states = [Running(), Scheduled(name="Resuming"), Suspended(timeout_seconds=3600), Cancelled(message="not today")]
    runs = [api.create_flow_run_from_deployment(deployment).id for _ in states]
    for run, state in zip(runs, states, strict=True):
        api.set_flow_run_state(run, state, force=True)
        ran(ledger, 4, "phase deploy: a person has to approve", Event("deploy", "gate", "waiting", detail={
            "gate": str(run), "until": "2026-01-01T00:00:00+00:00"}), flow_run=str(run))

    summary = sync(ledger)

    assert (summary.runs, summary.completed, summary.known) == (0, 0, 4)
    assert [api.read_flow_run(run).state.name for run in runs] == ["Running", "Resuming", "Suspended", "Cancelled"]


def test_a_flow_run_that_went_on_after_its_gate_is_not_told_the_end_of_its_first_life(ledger: Ledger, api: Any) -> None:
    from prefect import flow
    from prefect.states import Running

    from flows import telling

    run = api.create_flow_run(flow(lambda: None, name="rollout"))
    api.set_flow_run_state(run.id, Running(), force=True)
    ran(ledger, 4, "phase deploy: a person has to approve", flow_run=str(run.id))
    ran(ledger, None, None, flow_run=str(run.id))

    summary = telling.sync(report.audit_trail(ledger), at_work=True)

    assert (summary.runs, summary.completed, summary.at_work) == (0, 0, 1)
    assert api.read_flow_run(run.id).state.name == "Running"
