"""A whole life on a server whose every setting is another than one would like (cases C77, C81, C85, C87, C99)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import make_url

from deploy.mysql_server import Server, provide
from steps.target import ENVIRONMENT
from tests.cli.calling import DEPLOYED, PLAN, Call
from tests.conftest import App
from tests.servers.conftest import seeded_on

OPTIONS = ("--lower-case-table-names=1", "--performance-schema=OFF", "--sql-require-primary-key=ON",
           "--sql-generate-invisible-primary-key=ON", "--default-storage-engine=MyISAM", "--autocommit=0", "--completion-type=CHAIN",
           "--sql-mode=ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT", "--transaction-isolation=SERIALIZABLE",
           "--character-set-server=latin1")
WORDS = (PLAN, "--no-prefect", "--by", "ann", "--reason", "it is due", *DEPLOYED, "--set", "cleanup.deploy=true", "--set",
         "cleanup.rollback_deploy=true", "--set", "cleanup.min_age_s=0", "--set", "cleanup.observe_s=0", "--set", "cleanup.cooling_s=0")
BLIND = ("--accept", "no-gap")


@pytest.fixture(scope="module")
def odd() -> Iterator[Server]:
    with provide(options=OPTIONS) as server:
        yield server


@pytest.fixture
def job(odd: Server) -> Iterator[App]:
    """The schema's name has capitals, as the plan's table has."""
    with seeded_on(odd, "MyShop") as app:
        yield app


@pytest.fixture
def here(call: Call, job: App, odd: Server, monkeypatch: pytest.MonkeyPatch) -> Call:
    monkeypatch.setenv(ENVIRONMENT, make_url(odd.url).set(database="MyShop").render_as_string(hide_password=False))
    return call


def test_a_whole_life_ends_as_it_began(here: Call, job: App, odd: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    before, rows = job.create_table(), job.rows("SELECT * FROM AiAnalysisJob ORDER BY id")

    blind = here("run", *WORDS)
    assert (blind.code, "performance_schema is off" in blind.text) == (3, True), blind.text
    assert job.create_table() == before

    assert here("run", *WORDS, *BLIND).code == 0
    assert sorted(job.triggers()) == ["rollout_ai_analysis_job_bi", "rollout_ai_analysis_job_bu"]
    monkeypatch.setenv(ENVIRONMENT, make_url(odd.url).set(database="MYSHOP").render_as_string(hide_password=False))
    again = here("run", *WORDS, *BLIND)
    assert (again.code, "nothing to do" in again.text) == (0, True), "another spelling is the same rollout"
    assert job.rows("SELECT DISTINCT table_schema, table_name FROM _rollout_plan") == [("myshop", "aianalysisjob")]

    gone = here("run", *WORDS, *BLIND, "--through", "cleanup", "--accept", "cleanup", "--accept", "cleanup-unseen")
    assert gone.code == 0, gone.text
    assert "`sessionId`" not in job.create_table()

    back = here("rollback", *WORDS, *BLIND, "--to", "v0", "--drop-added", "--accept", "discard-added")
    assert back.code == 0, back.text
    assert job.create_table() == before
    assert job.triggers() == []
    assert job.rows("SELECT * FROM AiAnalysisJob ORDER BY id") == rows


def test_status_plan_check_and_report_know_the_table_by_its_folded_name(here: Call, job: App) -> None:
    looks = (("status", PLAN, "--json"), ("plan", PLAN, "--json"), ("check", PLAN, *BLIND, "--json"), ("report", PLAN, "--json"))
    for words in looks:
        answer = here(*words)
        assert answer.code == 0, answer.text

    assert here("run", *WORDS, *BLIND).code == 0
    for words in looks:
        answer = here(*words)
        assert answer.code == 0, answer.text
    now = here("status", PLAN, "--json").document
    assert (now["table"], now["contract"]) == ("myshop.aianalysisjob", [])
    assert len(here("report", PLAN, "--json").document["runs"]) == 1
    job.run("ALTER TABLE AiAnalysisJob DROP FOREIGN KEY AiAnalysisJob_parentJobId_fkey")
    assert any("AiAnalysisJob_parentJobId_fkey: is missing" in line for line in here("status", PLAN, "--json").document["contract"])
