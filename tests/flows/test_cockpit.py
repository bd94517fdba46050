"""
What Prefect is told: states, run graph, artifacts, logs and parameters, and never a secret.

One journey of one table through every flow is made once; the tests look at what it left behind.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from httpx import HTTPError
from sqlalchemy import make_url

from deploy.mysql_server import Server
from flows import report, report_page
from flows.params import RollbackRequest, RunRequest, Through
from flows.params import Target as Where
from steps import plan_loader
from steps.ledger import TABLES
from steps.ownership import lock_name
from steps.rollout import Person, opened
from steps.target import Target
from tests.conftest import SHIPPED, App, add_jobs, statements

PASSWORD = "p@ss%w0rd'x"
FORMS = (PASSWORD, quote(PASSWORD, safe=""), PASSWORD.replace("'", "''"), PASSWORD.replace("'", "\\'"))
WAIT_S, BEGUN_TRIES = 15, 3
PHASES = ["pre_deploy", "deploy", "backfill", "verify", "shadow_write"]
ALL_DONE = dict.fromkeys(PHASES, "done")


@dataclass
class Leg:
    """One flow run: how it ended, and what the ledger said then."""

    state: Any
    phases: dict[str, str]
    triggers: list[str]


@dataclass
class Journey:
    """Everything that came of it."""

    legs: dict[str, Leg] = field(default_factory=dict)
    runs: list[Any] = field(default_factory=list)
    tasks: list[Any] = field(default_factory=list)
    artifacts: list[Any] = field(default_factory=list)
    logs: list[Any] = field(default_factory=list)
    graph: dict[str, Any] = field(default_factory=dict)
    ledger: str = ""
    printed: str = ""
    reports: str = ""


@pytest.fixture(scope="module")
def planted(server: Server) -> Iterator[Target]:
    """A seeded schema and an account whose password looks different in every notation."""
    name = f"t_{uuid.uuid4().hex[:20]}"
    base = Target(make_url(server.url).set(database=name))
    admin = App(base, "")
    admin.run(f"CREATE DATABASE `{name}`")
    admin.run(f"CREATE USER `{name}`@'%%' IDENTIFIED BY %s", PASSWORD)
    admin.run(f"GRANT ALL ON *.* TO `{name}`@'%'")
    app = App(base)
    for statement in statements((SHIPPED / "baseline.sql").read_text()):
        app.run(statement)
    app.run("INSERT INTO `User` (id, email, updatedAt) VALUES ('u1', 'u1@example.org', UTC_TIMESTAMP(3))")
    add_jobs(app, 9)
    app.close()
    yield Target(base.url.set(username=name, password=PASSWORD))
    admin.run(f"DROP DATABASE `{name}`")
    admin.run(f"DROP USER `{name}`@'%'")
    admin.close()


@pytest.fixture(scope="module")
def journey(prefect_server: None, planted: Target, tmp_path_factory: pytest.TempPathFactory) -> Journey:
    """Forward, forward again, every way back, and each way to fail; the database is a Secret block, the commands tell it to all."""
    from prefect.blocks.system import Secret

    from flows import deployments

    url = planted.url.render_as_string(hide_password=False)
    Secret(value=url).save("planted", overwrite=True)  # type: ignore[call-arg]
    told = tmp_path_factory.mktemp("told") / "secret.txt"
    told.write_text("\n".join((url, *FORMS)))
    found, app = Journey(), App(planted)

    def request(kind: type, *settings: str, **more: object) -> Any:
        known = (f"deploy.command=cat {told}", f"deploy.rollback_command=cat {told}", f"verify.command=cat {told}")
        given = {"plan": "ai_analysis_job", "by": "ann", "reason": "it is due", "database": "secret:planted"}
        return kind(**{**given, "settings": [*known, *settings], **more})

    def leg(name: str, flow: Callable[..., Any], asked: Any) -> None:
        state = begun(flow, asked)
        phases = {str(p): str(s) for p, s in app.rows("SELECT phase, state FROM _rollout_phase")}
        found.legs[name] = Leg(state, phases, app.triggers())

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        leg("forward", deployments.rollout, request(RunRequest))
        leg("again", deployments.rollout, request(RunRequest))
        leg("below", deployments.rollback_verify, request(RollbackRequest))
        leg("command fails", deployments.rollback, request(RollbackRequest, f"deploy.rollback_command=cat {told}; exit 9", to=Where.V0))
        for phase in reversed(PHASES[:2]):
            leg(f"back {phase}", getattr(deployments, f"rollback_{phase}"), request(RollbackRequest))
        leg("deploy fails", deployments.rollout, request(RunRequest, f"deploy.command=cat {told}; exit 3"))
        leg("no answer", deployments.rollout, request(RunRequest, f"verify.command=cat {told}; no-such-program"))
        other = App(planted)
        other.value("SELECT GET_LOCK(%s, 0)", lock_name(planted.schema, "AiAnalysisJob"))
        try:
            leg("busy", deployments.rollback, request(RollbackRequest, to=Where.V0))
        finally:
            other.close()
        leg("forward again", deployments.rollout, request(RunRequest))
        for phase in reversed(PHASES):
            leg(f"undo {phase}", getattr(deployments, f"rollback_{phase}"), request(RollbackRequest))
        leg("undo again", deployments.rollback_pre_deploy, request(RollbackRequest))
        leg("unknown block", deployments.rollout, request(RunRequest, database="secret:nobody"))
        leg("command line", deployments.rollout, request(RunRequest, database="command line"))
    found.printed = printed.getvalue()
    gather(found)
    found.ledger = everything(app)
    with opened(plan_loader.load("ai_analysis_job"), planted, Person("a", "b")) as rollout:
        trail = report.audit_trail(rollout.ledger)
        found.reports = json.dumps(trail, default=str) + report.text(trail) + report_page.page(trail, rollout)
    app.close()
    return found


def begun(flow: Callable[..., Any], asked: Any) -> Any:
    """The state that *flow* ended in. Prefect's server on SQLite may not take a new flow run while it is busy: it is asked again."""
    for _ in range(BEGUN_TRIES):
        with contextlib.suppress(HTTPError):
            return flow(asked, return_state=True)
        time.sleep(1)
    return flow(asked, return_state=True)


def everything(app: App) -> str:
    tables = [str(row[0]) for row in app.rows("SHOW TABLES LIKE '%%rollout%%'") if str(row[0]).startswith("_rollout_")]
    assert len(tables) == len(TABLES)
    return "\n".join(repr(row) for table in tables for row in app.rows(f"SELECT * FROM `{table}`"))


def gather(found: Journey) -> None:
    """Ask Prefect's API for all that it knows, once its recorder has written it down."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId

    with get_client(sync_client=True) as client:
        run_id = found.legs["forward"].state.state_details.flow_run_id
        mine = FlowRunFilter(id=FlowRunFilterId(any_=[run_id]))
        until = time.monotonic() + WAIT_S
        while time.monotonic() < until:
            tasks = client.read_task_runs(flow_run_filter=mine)
            logs = logs_of(client)
            if {"parity", "5. shadow_write"} <= {t.name for t in tasks if t.state and t.state.is_completed()} and any(
                    "parity" in log["message"] for log in logs):
                break
            time.sleep(0.2)
        found.graph = client._client.get(f"/flow_runs/{run_id}/graph-v2").json()
        found.runs = [client.read_flow_run(leg.state.state_details.flow_run_id) for leg in found.legs.values()]
        found.tasks = client.read_task_runs()
        found.artifacts = artifacts_of(client, [str(run.id) for run in found.runs])
        found.logs = logs_of(client)


def artifacts_of(client: Any, runs: list[str]) -> list[dict[str, Any]]:
    """Of these runs alone: other tests leave theirs on the same server."""
    left: list[dict[str, Any]] = []
    while True:
        page = client._client.post("/artifacts/filter", json={"limit": 200, "offset": len(left), "sort": "CREATED_DESC", "artifacts": {
            "flow_run_id": {"any_": runs}}}).json()
        left += page
        if len(page) < 200:
            return left


def logs_of(client: Any) -> list[dict[str, Any]]:
    logs: list[dict[str, Any]] = []
    while True:
        page = client._client.post("/logs/filter", json={"limit": 200, "offset": len(logs)}).json()
        logs += page
        if len(page) < 200:
            return logs


def test_the_rollout_flow_ends_completed_with_all_phases_done(journey: Journey) -> None:
    forward = journey.legs["forward"]

    assert (forward.state.type, forward.state.name) == ("COMPLETED", "Completed"), forward.state.message
    assert forward.state.message == f"done: {', '.join(PHASES)}"
    assert forward.phases == ALL_DONE
    assert len(forward.triggers) == 2


@pytest.mark.parametrize(("leg", "kind", "name", "says"), [
    ("again", "COMPLETED", "NothingToDo", "nothing to do"),
    ("below", "FAILED", "Refused", "shadow_write stands"),
    ("command fails", "FAILED", "RollbackFailed", "what stands: deploy, pre_deploy"),
    ("deploy fails", "FAILED", "RolledBack", "ended with 3"),
    ("no answer", "FAILED", "Stopped", "could not be started"),
    ("busy", "FAILED", "Busy", "is held by another rollout"),
    ("undo again", "COMPLETED", "NothingToDo", "nothing to do"),
    ("command line", "FAILED", "Failed", "use env or secret:NAME"),
])
def test_a_list_of_runs_can_be_read_by_the_names_of_their_states(journey: Journey, leg: str, kind: str, name: str, says: str) -> None:
    state = journey.legs[leg].state

    assert (state.type, state.name) == (kind, name)
    assert says in state.message


def test_a_run_that_refused_or_found_nothing_to_do_changed_nothing(journey: Journey) -> None:
    for leg in ("again", "below"):
        assert journey.legs[leg].phases == ALL_DONE
        assert len(journey.legs[leg].triggers) == 2


def test_each_rollback_flow_undoes_its_phase_and_only_that(journey: Journey) -> None:
    expected = dict(ALL_DONE)
    assert journey.legs["forward again"].phases == expected
    for phase in reversed(PHASES):
        leg = journey.legs[f"undo {phase}"]
        expected[phase] = "undone"
        assert (leg.state.type, leg.state.name, leg.state.message) == ("COMPLETED", "Completed", f"done: {phase}")
        assert leg.phases == expected
        assert len(leg.triggers) == (0 if phase == "pre_deploy" else 2)


def test_the_run_graph_shows_the_phases_as_a_chain_with_their_steps_inside(journey: Journey) -> None:
    nodes = {node["id"]: node for _, node in journey.graph["nodes"]}
    outer = [node for node in nodes.values() if not node["encapsulating"]]
    chain = ["pre-checks", *(f"{number}. {phase}" for number, phase in enumerate(PHASES, 1))]

    assert sorted(node["label"] for node in outer) == sorted(chain)
    label = {node["id"]: node["label"] for node in outer}
    before = {node["label"]: [label[parent["id"]] for parent in node["parents"]] for node in outer}
    assert before == {"pre-checks": [], **{after: [first] for first, after in itertools.pairwise(chain)}}
    inside = {node["label"]: {label[one["id"]] for one in node["encapsulating"]} for node in nodes.values()}
    for step, phase in (("expand", "1. pre_deploy"), ("put the new generation out", "2. deploy"), ("closing pass", "3. backfill"),
                        ("verify", "4. verify"), ("parity", "5. shadow_write")):
        assert inside[step] == {phase}


def test_a_pass_shows_its_progress_and_afterwards_its_pace(journey: Journey) -> None:
    progress = [artifact for artifact in journey.artifacts if artifact["key"] == "ai-analysis-job-1-pre-deploy-progress"]
    assert progress
    assert {artifact["type"] for artifact in progress} == {"progress"}
    assert "first pass: " in progress[0]["description"]
    first = "".join(a["data"] for a in journey.artifacts if a["key"] == "ai-analysis-job-1-pre-deploy")
    assert "pace of pass first" in first
    assert "chunk times = up to" in first


def test_every_phase_leaves_an_artifact_with_sql_actor_and_reason(journey: Journey) -> None:
    by_key = {artifact["key"]: artifact["data"] for artifact in reversed(journey.artifacts)}

    for number, phase in enumerate(PHASES, 1):
        page = by_key[f"ai-analysis-job-{number}-{phase.replace('_', '-')}"]
        assert "By **ann**: it is due" in page
        assert "| step | outcome | ms | rows |" in page
    first = "".join(a["data"] for a in journey.artifacts if a["key"] == "ai-analysis-job-1-pre-deploy")
    assert "ALTER TABLE `AiAnalysisJob`" in first
    assert "CREATE" in first
    assert any(a["key"] == "ai-analysis-job-rollback-of-pre-deploy" for a in journey.artifacts)


def test_the_run_log_holds_the_engines_events(journey: Journey) -> None:
    run_id = str(journey.legs["forward"].state.state_details.flow_run_id)
    mine = [log for log in journey.logs if log["flow_run_id"] == run_id and log["name"] == "rollout"]

    assert any("010_widen_job_type" in log["message"] for log in mine)
    assert any("first pass" in log["message"] and "rows=6" in log["message"] for log in mine)
    assert any(log["task_run_id"] for log in mine)


def test_parameters_name_the_database_and_hold_no_credentials(journey: Journey) -> None:
    for run in journey.runs:
        assert run.parameters["request"]["database"] in ("secret:planted", "secret:nobody", "command line")
        assert "://" not in json.dumps(run.parameters)
        assert run.name.endswith("ai_analysis_job by ann")


def test_the_password_is_nowhere_in_anything_produced(journey: Journey) -> None:
    produced = {
        "flow runs": " ".join(f"{run.name} {run.parameters} {run.state} {run.state.message}" for run in journey.runs),
        "task runs": " ".join(f"{run.name} {run.task_inputs} {run.state} {run.state and run.state.message}" for run in journey.tasks),
        "states": " ".join(f"{leg.state} {leg.state.message} {leg.state.data}" for leg in journey.legs.values()),
        "artifacts": json.dumps(journey.artifacts), "logs": json.dumps(journey.logs), "ledger": journey.ledger,
        "streams": journey.printed, "reports": journey.reports,
    }

    assert all(len(text) > 500 for text in produced.values()), {name: len(text) for name, text in produced.items()}
    assert "***" in produced["ledger"]  # the commands did tell it
    for name, text in produced.items():
        for form in FORMS:
            assert form not in text, name


def test_an_unknown_secret_block_is_refused_by_name(journey: Journey) -> None:
    state = journey.legs["unknown block"].state

    assert (state.type, state.name) == ("FAILED", "Failed")
    assert "secret:nobody" in state.message


def test_every_flow_can_be_served_and_asks_for_who_and_why(prefect_server: None) -> None:
    from prefect.flows import load_flow_from_entrypoint

    from flows import served

    looks = [each.name for each in served.DEPLOYED if each.direction == served.LOOK]
    changes = [each for each in served.DEPLOYED if each.direction != served.LOOK]
    assert {"check", "plan", "rehearse"} <= set(looks)
    assert [each.name for each in changes] == ["rollout", "rollback", *(f"rollback_{phase.value}" for phase in Through)]
    made_of = {made.name: made for made in served.served()}
    for each in changes:
        made = made_of[each.name]
        assert made.concurrency_limit is None  # its lease takes a healthy flow down when the API is away
        schema = made._parameter_openapi_schema.model_dump()
        (definition,) = [d for d in schema["definitions"].values() if "properties" in d]
        assert {"plan", "by", "reason"} <= set(definition["required"])
        assert made.entrypoint == each.entrypoint
        assert load_flow_from_entrypoint(made.entrypoint).name == each.name


def test_the_environment_switches_telemetry_off_before_prefect_is_imported() -> None:
    assert (os.environ["PREFECT_SERVER_ANALYTICS_ENABLED"], os.environ["DO_NOT_TRACK"]) == ("false", "1")
    assert Path(os.environ["PREFECT_HOME"]).name.startswith("rollout-prefect-")
