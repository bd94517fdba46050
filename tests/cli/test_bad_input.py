"""Bad input: one clear message, the documented exit code, one JSON document where asked for, and nothing changed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import make_url

from steps.errors import EXIT_CODES
from steps.target import ENVIRONMENT
from tests.cli.calling import DEPLOYED, PLAN, Call, phases, standing
from tests.conftest import SHIPPED, App

RUN = ("run", PLAN, "--no-prefect", "--yes", *DEPLOYED)
PASSWORD = "p@ss%w0rd'x"
ENCODED = "p%40ss%25w0rd%27x"


def refused(call: Call, app: App, words: tuple[str, ...], code: int, *said: str) -> None:
    """Both forms of the answer have *code* and say every one of *said*; the schema is as it was."""
    before = standing(app)

    for answer in (call(*words), call(*words, "--json")):
        assert answer.code == code, answer.text
        for each in said:
            assert each in answer.text
        assert "Traceback" not in answer.text
        assert standing(app) == before
    document = answer.document
    assert document["exit_code"] == code
    assert document["outcome"] == EXIT_CODES[code]
    for each in said:
        assert each in " ".join(document["error"].split())


def own_plan(folder: Path, old: str, new: str) -> Path:
    """The shipped plan, copied, with one line changed."""
    copy = folder / "plan"
    shutil.copytree(SHIPPED, copy)
    text = (copy / "plan.toml").read_text()
    assert old in text
    (copy / "plan.toml").write_text(text.replace(old, new, 1))
    return copy


@pytest.mark.parametrize("verb", ["check", "plan", "rehearse", "run", "status", "report"])
def test_an_unknown_plan_names_the_shipped_ones(here: Call, app: App, verb: str) -> None:
    refused(here, app, (verb, "ai_analysis_jobs"), 2, "ai_analysis_jobs", "shipped plans: ai_analysis_job")


def test_an_unknown_plan_key_is_named_with_file_and_line(here: Call, app: App, tmp_path: Path) -> None:
    copy = own_plan(tmp_path, "max_stall_ms = 1000", "max_stal_ms = 1000")
    line = (copy / "plan.toml").read_text().splitlines().index("max_stal_ms = 1000") + 1

    refused(here, app, ("run", str(copy), "--no-prefect"), 2, f"plan.toml:{line}", "max_stal_ms", "unknown key")


def test_a_plan_that_is_not_toml_is_named_with_its_line(here: Call, app: App, tmp_path: Path) -> None:
    copy = own_plan(tmp_path, 'how = "manual"', "how = manual")

    refused(here, app, ("run", str(copy), "--no-prefect"), 2, "plan.toml", "is not TOML", "line")


@pytest.mark.parametrize("name", ["030_add_lifecycle.up.sql", "030_add_lifecycle.down.sql"])
def test_a_missing_sql_file_is_named(here: Call, app: App, tmp_path: Path, name: str) -> None:
    copy = own_plan(tmp_path, "ADR-002", "ADR-002")
    (copy / name).unlink()

    refused(here, app, ("run", str(copy), "--no-prefect"), 2, name, "missing")


@pytest.mark.parametrize(("url", "said"), [
    ("nonsense", "is not a MySQL URL"),
    ("postgresql://u:{0}@localhost/db", "is not a MySQL URL"),
    ("mysql://u:{0}@localhost:port/db", "is malformed"),
    ("mysql://u:p@ss@localhost/db", "unescaped @"),
    ("mysql://u:{0}@localhost:3306", "names no database"),
    ("mysql://u:{0}@localhost:3306/", "names no database"),
    ("mysql://u:{0}@/db", "names no host"),
    ("mysql://u:{0}@localhost/db?sslmode=on", "sslmode"),
])
def test_a_url_that_does_not_fit_is_wrong_usage_and_never_echoed(call: Call, app: App, url: str, said: str) -> None:
    words = (*RUN, "--database-url", url.format(ENCODED))

    refused(call, app, words, 2, "--database-url", said)
    answer = call(*words)
    assert PASSWORD not in answer.text
    assert ENCODED not in answer.text


@pytest.mark.parametrize("verb", ["check", "plan", "rehearse", "run", "status", "report"])
def test_without_any_url_the_message_says_how_to_give_one(call: Call, app: App, verb: str) -> None:
    refused(call, app, (verb, PLAN), 2, ENVIRONMENT, "--database-url", "mysql://USER:PASSWORD@HOST:PORT/DATABASE")


@pytest.mark.parametrize("verb", ["check", "run", "status"])
def test_an_unreachable_server_is_refused_by_name(call: Call, app: App, verb: str) -> None:
    refused(call, app, (verb, PLAN, "--database-url", "mysql://u:secret-word@127.0.0.1:1/db"), 3, "127.0.0.1:1/db", "Can't connect")


@pytest.mark.parametrize("verb", ["check", "run", "status"])
def test_a_wrong_password_is_refused_and_not_shown(call: Call, app: App, url: str, verb: str) -> None:
    wrong = make_url(url).set(password=PASSWORD).render_as_string(hide_password=False)
    words = (verb, PLAN, "--database-url", wrong)

    refused(call, app, words, 3, "1045", "Access denied")
    for form in (PASSWORD, ENCODED, make_url(wrong).render_as_string(hide_password=False).partition("@")[0]):
        assert form not in call(*words).text


def test_a_missing_database_is_refused_by_name(call: Call, app: App, url: str) -> None:
    refused(call, app, (*RUN, "--database-url", make_url(url).set(database="nowhere").render_as_string(hide_password=False)), 3, "nowhere")


@pytest.mark.parametrize("verb", ["check", "plan", "rehearse", "run"])
def test_a_missing_table_is_refused_with_the_nearest_name(here: Call, app: App, tmp_path: Path, verb: str) -> None:
    app.run("RENAME TABLE AiAnalysisJob TO AiAnalysisJobs")
    before = {str(row[0]) for row in app.rows("SHOW TABLES")}

    answer = here(verb, PLAN)

    assert answer.code == 3, answer.text
    assert "AiAnalysisJob does not exist" in answer.text or "table AiAnalysisJob: does not exist" in answer.text
    assert "AiAnalysisJobs" in answer.text
    assert {str(row[0]) for row in app.rows("SHOW TABLES")} == before


def test_a_table_that_drifted_after_the_start_is_refused_with_the_difference(here: Call, seeded: App) -> None:
    assert here(*RUN, "--through", "pre_deploy").code == 0
    seeded.run("ALTER TABLE AiAnalysisJob DROP COLUMN queueName")

    refused(here, seeded, RUN, 3, "queueName")
    assert phases(seeded) == {"pre_deploy": "done"}


def test_a_table_that_stands_on_no_stair_before_the_start_is_refused_with_the_difference(here: Call, app: App) -> None:
    app.run("ALTER TABLE AiAnalysisJob ADD COLUMN lifecycleStatus INT NULL")

    refused(here, app, RUN, 3, "lifecycleStatus")


@pytest.mark.parametrize("setting", ['cleanup.drop=["status"]', "table=AiAnalysisResult"])
def test_a_contradicting_set_after_the_first_run_is_wrong_usage(here: Call, seeded: App, setting: str) -> None:
    assert here(*RUN, "--through", "pre_deploy").code == 0
    before = standing(seeded)

    answer = here(*RUN, "--set", setting)

    assert answer.code in (2, 3), answer.text
    assert standing(seeded) == before
    if setting.startswith("cleanup"):
        refused(here, seeded, (*RUN, "--set", setting), 2, "differs in drop")
        refused(here, seeded, ("rollback", PLAN, "--to", "v0", "--no-prefect", "--set", setting), 2, "differs in drop")


@pytest.mark.parametrize(("setting", "said"), [
    ("max_stal_ms=5", "max_stal_ms"), ("deploy.comand=true", "deploy.comand"), ("nonsense", "is not KEY=VALUE"),
    ("max_stall_ms=much", "max_stall_ms"), ("verify.on_fail=panic", "verify.on_fail"), ("plan.id.x=1", "plan.id.x"), ("=1", "KEY=VALUE"),
])
def test_a_set_that_does_not_fit_is_wrong_usage_and_named(here: Call, app: App, setting: str, said: str) -> None:
    refused(here, app, ("run", PLAN, "--no-prefect", "--set", setting), 2, "--set", said)


@pytest.mark.parametrize(("words", "said"), [
    (("run", PLAN, "--nonsense"), "--nonsense"),
    (("run",), "PLAN"),
    (("explode", PLAN), "explode"),
    (("run", PLAN, "--through", "cleanup"), "cleanup"),
    (("run", PLAN, "--through", "everything"), "everything"),
    (("rollback", PLAN, "everything"), "everything"),
    (("rollback", PLAN, "--to", "shadow_write"), "shadow_write"),
    (("run", PLAN, "--from", "verify", "--through", "deploy", "--no-prefect"), "--from verify: comes after --through deploy"),
    (("rollback", PLAN, "--no-prefect"), "needs a phase or --to"),
    (("rollback", PLAN, "verify", "--to", "v0", "--no-prefect"), "and not both"),
    (("rollback", PLAN, "--to", "verify", "--drop-added", "--no-prefect"), "--drop-added"),
    (("rollback", PLAN, "deploy", "--drop-added", "--no-prefect"), "--drop-added"),
    (("run", PLAN, "--no-prefect", "--by", ""), ""),
])
def test_words_that_do_not_fit_are_wrong_usage(here: Call, app: App, words: tuple[str, ...], said: str) -> None:
    if words[-1] == "":
        pytest.skip("an empty --by means the user's name")
    refused(here, app, words, 2, said)


@pytest.mark.parametrize("words", [("--by", "x" * 501), ("--reason", " "), ("--reason", ""), ("--accept", " "), ("--deployed-by", " ")])
def test_words_that_are_empty_or_too_long_are_wrong_usage(here: Call, app: App, words: tuple[str, str]) -> None:
    refused(here, app, (*RUN, *words), 2, words[0])


def test_from_a_phase_whose_forerunner_is_not_done_is_refused(here: Call, app: App) -> None:
    refused(here, app, (*RUN, "--from", "backfill"), 3, "pre_deploy, which is not done")


def test_a_rollback_of_a_phase_below_a_standing_one_is_refused(here: Call, begun: App) -> None:
    refused(here, begun, ("rollback", PLAN, "deploy", "--no-prefect", *DEPLOYED), 3, "shadow_write stands, which comes later", "--to pre_deploy")


def test_an_html_file_that_cannot_be_written_is_wrong_usage(here: Call, begun: App, tmp_path: Path) -> None:
    refused(here, begun, ("report", PLAN, "--html", str(tmp_path / "no" / "where.html")), 2, "where.html", "cannot be written")


def test_as_a_real_process_the_code_and_the_streams_are_the_same(url: str, app: App) -> None:
    before = standing(app)
    environment = {**os.environ, ENVIRONMENT: make_url(url).set(password=PASSWORD).render_as_string(hide_password=False)}

    ended = subprocess.run([Path(sys.executable).with_name("rollout"), "run", PLAN, "--no-prefect", "--json"],
                           env=environment, capture_output=True, text=True, timeout=60, check=False)

    assert ended.returncode == 3
    assert '"exit_code": 3' in ended.stdout
    assert ended.stdout.startswith("{")
    assert "Access denied" in ended.stderr
    assert PASSWORD not in ended.stdout + ended.stderr
    assert standing(app) == before
