"""
A team's installation: Prefect's server on PostgreSQL, every deployment of `deploy/prefect.yaml` deployed from the wheel, a process worker.

One journey through it is made once, every run of it started over the API; the tests look at what it left behind.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from deploy import postgres_server
from flows import prefect_yaml, served
from flows.cli.options import NO_REASON
from flows.one_at_a_time import tags_of
from steps import __version__, plan_loader
from steps.phase import Phase
from steps.rollout import Person, opened
from steps.target import ENVIRONMENT_FILE, Target
from tests.conftest import App
from tests.packaging.conftest import call
from tests.team.prefect_installation import POOL, Api, prefect_server, started, until

pytestmark = pytest.mark.timeout(600)  # of which most is a dozen Pythons that import Prefect

PLAN, TABLE = "ai_analysis_job", "AiAnalysisJob"
PHASES = [phase.value for phase in Phase]


@dataclass
class Journey:
    """What the runs left behind, by their names here."""

    runs: dict[str, dict[str, Any]] = field(default_factory=dict)
    pages: dict[str, str] = field(default_factory=dict)
    tasks: list[str] = field(default_factory=list)
    refused: dict[str, tuple[int, str]] = field(default_factory=dict)
    phases: dict[str, str] = field(default_factory=dict)
    tags: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("team")


@pytest.fixture(scope="module")
def api(installed: Path, folder: Path) -> Iterator[Api]:
    """A Prefect server on PostgreSQL to which everything was deployed as `deploy/prefect.yaml` says."""
    python, (site,) = installed / "python", installed.parent.glob("lib/python*/site-packages")
    with postgres_server.provide() as database, prefect_server(python, folder, database) as found:
        environment = {"PATH": str(installed), "PREFECT_API_URL": found.url, "PREFECT_HOME": str(folder), "DO_NOT_TRACK": "1"}
        for words in (["work-pool", "create", POOL, "--type", "process"],
                      ["--no-prompt", "deploy", "--all", "--prefect-file", site / "deploy" / "prefect.yaml"]):
            done = call(python, "-m", "prefect", *words, env=environment, cwd=folder)
            assert done.returncode == 0, done.stdout + done.stderr
        yield found


@pytest.fixture(scope="module")
def worker(api: Api, installed: Path, folder: Path, old: Target) -> Iterator[None]:
    """A process worker that has the database's URL in a file."""
    secret = folder / "database_url"
    secret.write_text(old.url.render_as_string(hide_password=False) + "\n")
    with started([installed / "python", "-m", "prefect", "worker", "start", "--pool", POOL, "--type", "process"], folder / "worker.log",
                 PREFECT_API_URL=api.url, PREFECT_HOME=str(folder), PREFECT_WORKER_QUERY_SECONDS="1",
                 **{ENVIRONMENT_FILE: str(secret)}):
        yield


def asked(**more: Any) -> dict[str, Any]:
    return {"plan": PLAN, "by": "ann", **more}


@pytest.fixture(scope="module")
def journey(api: Api, worker: None, old: Target, folder: Path) -> Journey:
    """Three looks at once; a rollout beside the remains of a killed one, another while it works and one while a third waits; then back."""
    found, app = Journey(), App(old)
    for name, body in (("no reason", asked()), ("no such phase", asked(reason="due", through="later")),
                       ("a URL", asked(reason="due", database="mysql://u:p@h/d"))):
        path = f"/deployments/{api.deployment('rollout')['id']}/create_flow_run"
        found.refused[name] = api.refused("POST", path, {"parameters": {"request": body}})
    looks = {name: api.start(name, asked()) for name in ("check", "plan", "rehearse")}
    found.runs = {name: api.ended(flow_run) for name, flow_run in looks.items()}
    with opened(plan_loader.load(PLAN), old, Person("a", NO_REASON)) as desk:
        found.tags = tags_of(desk)

    def other(kind: str) -> str:
        """A flow run of the same table that Prefect takes for being in this state."""
        made = api.ask("POST", "/flow_runs/", {"flow_id": api.deployment("rollout")["flow_id"], "name": f"the {kind} one",
                                               "tags": [*found.tags, "forward"]})
        api.ask("POST", f"/flow_runs/{made['id']}/set_state", {"state": {"type": kind}, "force": True})
        return str(made["id"])

    other("RUNNING")  # killed long ago: nobody holds the table
    waiting = other("PAUSED")
    begun, go = folder / "begun", folder / "go"
    quick = [f"deploy.command=touch {begun}; while [ ! -e {go} ]; do sleep 0.05; done", "deploy.rollback_command=true",
             "cleanup.deploy=true", "cleanup.rollback_deploy=true", *(f"cleanup.{wait}_s=0" for wait in ("min_age", "observe", "cooling"))]
    request = asked(reason="CHG-1", settings=quick, through="cleanup", accept=["cleanup", "cleanup-unseen"])
    found.runs["beside a waiting one"] = api.ended(api.start("rollout", request))
    api.ask("POST", f"/flow_runs/{waiting}/set_state", {"state": {"type": "CANCELLED"}, "force": True})
    first = api.start("rollout", request)
    until(begun.exists)
    found.runs["beside a working one"] = api.ended(api.start("rollout", request | {"by": "bob"}))
    found.runs["back beside a working one"] = api.ended(api.start("rollback", asked(reason="CHG-2", to="v0")))
    go.touch()
    found.runs["rollout"] = api.ended(first)
    found.phases = {str(phase): str(state) for phase, state in app.rows("SELECT phase, state FROM _rollout_phase")}
    chosen = {"flow_runs": {"id": {"any_": [first]}}}
    wanted = {phase.label for phase in Phase}

    def told() -> list[str] | None:
        names = [task["name"] for task in api.ask("POST", "/task_runs/filter", chosen) if task["state_type"] == "COMPLETED"]
        return names if wanted <= set(names) else None

    found.tasks = until(told)
    for page in api.ask("POST", "/artifacts/filter", {"limit": 200}):
        found.pages[page["key"]] = page["data"]
    found.runs["look at the end"] = api.ended(api.start("check", asked(database="secret:nobody")))
    app.close()
    return found


def test_what_is_deployed_is_what_serve_serves_from_one_list(api: Api) -> None:
    for each, made in zip(served.DEPLOYED, served.served(), strict=True):
        there = api.deployment(each.name)
        assert (there["entrypoint"], sorted(there["tags"]), there["version"]) == (each.entrypoint, sorted(each.tags), __version__)
        assert (made.entrypoint, sorted(made.tags), made.version) == (each.entrypoint, sorted(each.tags), __version__)
        assert there["description"] == made.description == each.flow.description
        assert there["parameter_openapi_schema"] == made._parameter_openapi_schema.model_dump(exclude_none=True)
        assert there["enforce_parameter_schema"]
        assert there["concurrency_limit"] is None  # its lease takes a healthy flow down when the API is away
        assert there["work_pool_name"] == POOL
        assert there["job_variables"]["stream_output"] is False
        assert there["job_variables"]["env"] == prefect_yaml.ENVIRONMENT
        assert not there["pull_steps"]
    assert len(api.ask("POST", "/deployments/filter", {})) == len(served.DEPLOYED)


def test_a_form_that_says_too_little_or_too_much_is_refused_before_a_run_exists(journey: Journey) -> None:
    for name, says in (("no reason", "reason"), ("no such phase", "later"), ("a URL", "database")):
        code, text = journey.refused[name]
        assert code in (409, 422), text
        assert says in text


@pytest.mark.parametrize(("name", "state", "says"), [
    ("check", ("COMPLETED", "ToKnow"), "0 refuse"),
    ("plan", ("COMPLETED", "Planned"), "from stair 0"),
    ("rehearse", ("COMPLETED", "Rehearsed"), "go up and come back"),
    ("look at the end", ("FAILED", "Failed"), "secret:nobody"),
    ("beside a waiting one", ("FAILED", "Busy"), "'the PAUSED one'"),
    ("beside a working one", ("FAILED", "Busy"), "flow run 'rollout ai_analysis_job by ann'"),
    ("back beside a working one", ("FAILED", "Busy"), "flow run 'rollout ai_analysis_job by ann'"),
    ("rollout", ("COMPLETED", "Completed"), f"done: {', '.join(PHASES)}"),
])
def test_each_run_ends_with_a_name_that_a_list_can_be_read_by(journey: Journey, name: str, state: tuple[str, str], says: str) -> None:
    run = journey.runs[name]

    assert (run["state_type"], run["state_name"]) == state, run["state"]["message"]
    assert says in run["state"]["message"]


def test_a_run_started_over_the_api_went_through_six_phases(journey: Journey) -> None:
    assert journey.phases == dict.fromkeys(PHASES, "done")
    assert {phase.label for phase in Phase} <= set(journey.tasks)


def test_a_run_is_found_by_its_table_and_read_by_its_name(journey: Journey) -> None:
    run = journey.runs["rollout"]

    assert run["name"] == "rollout ai_analysis_job by ann"
    assert set(run["tags"]) == {"mysql-rollout", "forward", *journey.tags}
    assert journey.tags[0] == "plan:ai_analysis_job"
    assert journey.tags[1].endswith(f".{TABLE}")


def test_each_look_leaves_a_page_with_its_answer_and_lists(journey: Journey) -> None:
    check, plan, rehearsal = (journey.pages[f"ai-analysis-job-{kind}"] for kind in ("check", "plan", "rehearsal"))

    assert "0 refuse" in check
    assert "  Remedy: " in check
    assert "- **010_widen_job_type**" in plan
    assert "ALTER TABLE `AiAnalysisJob`" in plan
    assert "CREATE" in plan
    assert "each landing exactly one stair lower" in rehearsal
    assert rehearsal.count("  Back, ") == rehearsal.count("  Forward, ") > 5
