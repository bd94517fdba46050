"""
Who ran which SQL on which table when, and why was phase 4 rolled back? Answered from each place alone: `rollout report` as text, JSON
and HTML, and Prefect's artifacts over its API.
"""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from flows.markdown import LONGEST_BYTES
from flows.params import RunRequest
from steps.target import ENVIRONMENT, Target
from tests.cli.calling import PLAN
from tests.conftest import App

WHO, WHY = "ann", "CHG-1234: new lifecycle"
FAULT = "1 of 9 rows disagree"
KEY = "c000002"
PLANTED = "UPDATE AiAnalysisJob SET status = 'completed', lifecycleStatus = 'locked' WHERE id = 'c000002'"
STATES = {"pre_deploy": "done", "deploy": "undone", "backfill": "undone", "verify": "undone"}


@dataclass
class Record:
    """What is left behind: each of them by itself has to answer."""

    artifacts: dict[str, dict[str, Any]]
    table: str
    text: str
    document: dict[str, Any]
    page: str


@pytest.fixture(scope="module")
def record(prefect_server: None, old: Target, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Record]:
    """A rollout in which V1, once it is out, writes a row that only a fault could make."""
    from flows import deployments

    url, folder = old.url.render_as_string(hide_password=False), tmp_path_factory.mktemp("audit")
    planted = folder / "v1.py"
    planted.write_text(f"import pymysql\nfrom sqlalchemy import make_url\nurl = make_url({url!r})\n"
                       "db = pymysql.connect(host=url.host, port=url.port, user=url.username, password=url.password or '', "
                       f"database=url.database, autocommit=True)\ndb.cursor().execute({PLANTED!r})\n")
    request = RunRequest(plan=PLAN, by=WHO, reason=WHY, database="env",
                         settings=[f"deploy.command={sys.executable} {planted}", "deploy.rollback_command=true"])
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(ENVIRONMENT, url)
        state = deployments.rollout(request, return_state=True)
        assert (state.type, state.name) == ("FAILED", "RolledBack"), state.message
        app = App(old)
        assert {str(p): str(s) for p, s in app.rows("SELECT phase, state FROM _rollout_phase")} == STATES
        app.close()
        page = folder / "report.html"
        text, document = reported(), json.loads(reported("--json"))
        reported("--html", str(page))
        yield Record(left_by(str(state.state_details.flow_run_id)), f"{old.schema}.AiAnalysisJob", text, document, page.read_text())


def reported(*words: str) -> str:
    """What the console script prints, in a process of its own."""
    ended = subprocess.run([Path(sys.executable).with_name("rollout"), "report", PLAN, *words], capture_output=True, text=True, timeout=60,
                           check=True)
    return ended.stdout


def left_by(flow_run: str) -> dict[str, dict[str, Any]]:
    """Every artifact of the flow run by its key, from Prefect's API."""
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        asked = {"limit": 200, "artifacts": {"flow_run_id": {"any_": [flow_run]}}}
        return {one["key"]: one for one in client._client.post("/artifacts/filter", json=asked).json()}


def told(markup: str) -> str:
    """The page's words without its marks."""
    return " ".join(html.unescape(re.sub(r"<(style|svg).*?</\1>|<[^>]*>", " ", markup, flags=re.DOTALL)).split())


def test_every_source_by_itself_answers_who_ran_what_where_when_and_why_it_went_back(record: Record) -> None:
    began = record.document["runs"][0]["started_at"]
    day = began[:10]

    text = " ".join(record.text.split())
    assert record.table in text
    assert f"{began} run by {WHO} on " in text
    assert re.search(r"\d\d:\d\d:\d\d\.\d{3} pre_deploy \S+: done \(\S+ ms\) ALTER TABLE", text)
    assert re.search(f"verify was rolled back because: table AiAnalysisJob: {FAULT} .*{KEY}", text)

    [run] = record.document["runs"]
    assert (record.document["table"], run["actor"], run["reason"], run["exit_code"]) == (record.table, WHO, WHY, 5)
    statements = [event for event in run["events"] if event["statement"] and "ALTER TABLE" in event["statement"]]
    assert len(statements) == 11
    assert all(event["at"].startswith(day) and event["at"].endswith("Z") for event in statements)
    went_back = {back["phase"]: back["why"] for back in run["went_back"]}
    assert FAULT in went_back["verify"]
    assert KEY in went_back["verify"]

    page = told(record.page)
    assert re.search(f"Run: failed, and rolled back as the plan says .*{FAULT}", page)
    assert f"verify was rolled back because: table AiAnalysisJob: {FAULT}" in page
    assert re.search(rf"{day} \d\d:\d\d:\d\d\.\d{{3}} {WHO} on \S+ \(run 1\) {re.escape(record.table)} 1\. pre_deploy", page)
    for event in statements:
        assert " ".join(event["statement"].split()) in page


def test_prefects_artifacts_alone_answer_it_too(record: Record) -> None:
    pages = {key: str(one["data"]) for key, one in record.artifacts.items() if one["type"] == "markdown"}
    expand, verify = pages["ai-analysis-job-1-pre-deploy"], pages["ai-analysis-job-4-verify"]
    back, summary = pages["ai-analysis-job-rollback-of-verify"], pages["ai-analysis-job-summary"]

    for page in (expand, verify, back, summary, pages["ai-analysis-job-plan"]):
        assert f"`{record.table}`" in page
        assert f"By **{WHO}**: {WHY}" in page
        assert len(page.encode()) <= LONGEST_BYTES
    assert len(re.findall("```sql\n(?:-- .*\n)*ALTER TABLE", expand)) == 11
    assert re.search(r"\| \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} \| ", expand)  # when, by the step
    assert verify.splitlines()[2].startswith(f"**Failed: {FAULT}") or FAULT in verify.splitlines()[2]
    assert KEY in verify
    assert f"**Because:** 4. verify: table AiAnalysisJob: {FAULT}" in back
    assert summary.startswith("# run: failed, and rolled back as the plan says")
    assert FAULT in summary
    assert f"**Next:** deploy: rollout run {PLAN}" in summary
    assert "![Timeline of " in summary
    assert "(data:image/svg+xml;base64," in summary


def test_the_summary_leads_to_the_page_of_each_phase(record: Record) -> None:
    from flows.artifacts import key_of

    summary = str(record.artifacts["ai-analysis-job-summary"]["data"])
    links = dict(re.findall(r"\[([^\]!]+)\]\(\.\./artifact/([0-9a-f-]{36})\)", summary))

    ids = {one["id"]: key for key, one in record.artifacts.items()}
    assert {name.replace("\\", ""): ids[found] for name, found in links.items()} == {name: key_of(PLAN, name) for name in (
        "1. pre_deploy", "2. deploy", "3. backfill", "4. verify", "rollback of verify", "rollback of backfill", "rollback of deploy")}


def test_the_plan_tells_before_the_first_change_what_will_happen(record: Record) -> None:
    plan = record.artifacts["ai-analysis-job-plan"]
    first = min(record.artifacts.values(), key=lambda one: str(one["created"]))

    assert first["key"] == "ai-analysis-job-plan"
    for said in ("# What this run will do", "1. pre_deploy", "5. shadow_write", "## Schema steps", "010_widen_job_type",
                 "First pass over about", "ALTER TABLE", "CREATE DEFINER"):
        assert said in str(plan["data"])
    assert plan["description"].startswith("what will happen: pre")
    findings = record.artifacts["ai-analysis-job-findings"]
    assert findings["type"] == "table"
    rows = json.loads(findings["data"]) if isinstance(findings["data"], str) else findings["data"]
    assert {"severity", "check", "subject", "what", "remedy", "accept key"} == set(rows[0])


def test_a_seeded_row_of_the_application_is_in_no_page(record: Record) -> None:
    everything = json.dumps(list(record.artifacts.values())) + record.text + record.page + json.dumps(record.document, default=str)

    assert "boom é" not in everything
