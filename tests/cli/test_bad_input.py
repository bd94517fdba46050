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
    assert {"kind", "subject", "reason", "remedy"} <= set(document)
    for each in said:
        assert each in " ".join(document["error"].split())


def own_plan(folder: Path, old: str = "ADR-002", new: str = "ADR-002") -> Path:
    """The shipped plan, copied, with one text of its plan.toml replaced."""
    copy = folder / "plan"
    shutil.copytree(SHIPPED, copy)
    text = (copy / "plan.toml").read_text()
    assert old in text
    (copy / "plan.toml").write_text(text.replace(old, new, 1))
    return copy


@pytest.mark.parametrize("verb", ["check", "plan", "rehearse", "run", "status", "report"])
def test_an_unknown_plan_names_the_shipped_ones(there: Call, bystander: App, verb: str) -> None:
    refused(there, bystander, (verb, "ai_analysis_jobs"), 2, "ai_analysis_jobs", "shipped plans: ai_analysis_job")


def test_an_unknown_plan_key_is_named_with_file_and_line(there: Call, bystander: App, tmp_path: Path) -> None:
    copy = own_plan(tmp_path, "max_stall_ms = 1000", "max_stal_ms = 1000")
    line = (copy / "plan.toml").read_text().splitlines().index("max_stal_ms = 1000") + 1

    refused(there, bystander, ("run", str(copy), "--no-prefect"), 2, f"plan.toml:{line}", "max_stal_ms", "unknown key")


def test_a_plan_that_is_not_toml_is_named_with_its_line(there: Call, bystander: App, tmp_path: Path) -> None:
    copy = own_plan(tmp_path, 'how = "manual"', "how = manual")

    refused(there, bystander, ("run", str(copy), "--no-prefect"), 2, "plan.toml", "is not TOML", "line")


@pytest.mark.parametrize("name", ["030_add_lifecycle.up.sql", "030_add_lifecycle.down.sql"])
def test_a_missing_sql_file_is_named(there: Call, bystander: App, tmp_path: Path, name: str) -> None:
    copy = own_plan(tmp_path)
    (copy / name).unlink()

    refused(there, bystander, ("run", str(copy), "--no-prefect"), 2, name, "missing")


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
def test_a_url_that_does_not_fit_is_wrong_usage_and_never_echoed(call: Call, bystander: App, url: str, said: str) -> None:
    words = (*RUN, "--database-url", url.format(ENCODED))

    refused(call, bystander, words, 2, "--database-url", said)
    answer = call(*words)
    assert PASSWORD not in answer.text
    assert ENCODED not in answer.text


@pytest.mark.parametrize("verb", ["check", "plan", "rehearse", "run", "status", "report"])
def test_without_any_url_the_message_says_how_to_give_one(call: Call, bystander: App, verb: str) -> None:
    refused(call, bystander, (verb, PLAN), 2, ENVIRONMENT, "--database-url", "mysql://USER:PASSWORD@HOST:PORT/DATABASE")


@pytest.mark.parametrize("verb", ["check", "run", "status"])
def test_an_unreachable_server_is_refused_by_name(call: Call, bystander: App, verb: str) -> None:
    refused(call, bystander, (verb, PLAN, "--database-url", "mysql://u:secret-word@127.0.0.1:1/db"), 3,
            "127.0.0.1:1/db", "Can't connect")


@pytest.mark.parametrize("verb", ["check", "run", "status"])
def test_a_wrong_password_is_refused_and_not_shown(call: Call, bystander: App, bystander_url: str, verb: str) -> None:
    wrong = make_url(bystander_url).set(password=PASSWORD).render_as_string(hide_password=False)
    words = (verb, PLAN, "--database-url", wrong)

    refused(call, bystander, words, 3, "1045", "Access denied")
    for form in (PASSWORD, ENCODED, wrong.partition("://")[2].partition("@")[0]):
        assert form not in call(*words).text


def test_a_missing_database_is_refused_by_name(call: Call, bystander: App, bystander_url: str) -> None:
    elsewhere = make_url(bystander_url).set(database="nowhere").render_as_string(hide_password=False)

    refused(call, bystander, (*RUN, "--database-url", elsewhere), 3, "nowhere")


@pytest.mark.parametrize("words", [("check",), ("plan",), ("rehearse",), ("run", "--no-prefect"), ("run",)])
def test_a_missing_table_is_refused_with_the_nearest_name(there: Call, bystander: App, words: tuple[str, ...]) -> None:
    bystander.run("RENAME TABLE AiAnalysisJob TO AiAnalysisJobs")
    try:
        before = standing(bystander)
        answer = there(words[0], PLAN, *words[1:])

        assert answer.code == 3, answer.text
        assert "table AiAnalysisJob: does not exist" in answer.text
        assert "AiAnalysisJobs does" in answer.text
        assert there(words[0], PLAN, *words[1:], "--json").document["exit_code"] == 3
        assert standing(bystander) == before
    finally:
        bystander.run("RENAME TABLE AiAnalysisJobs TO AiAnalysisJob")


def test_a_table_that_drifted_after_the_start_is_refused_with_the_difference(here: Call, seeded: App) -> None:
    assert here(*RUN, "--through", "pre_deploy").code == 0
    seeded.run("ALTER TABLE AiAnalysisJob DROP COLUMN queueName")

    refused(here, seeded, RUN, 3, "queueName")
    assert phases(seeded) == {"pre_deploy": "done"}


def test_a_table_that_stands_on_no_stair_before_the_start_is_refused_with_the_difference(here: Call, app: App) -> None:
    app.run("ALTER TABLE AiAnalysisJob ADD COLUMN lifecycleStatus INT NULL")

    refused(here, app, RUN, 3, "lifecycleStatus")


def test_a_contradicting_set_after_the_first_run_is_wrong_usage(here: Call, seeded: App) -> None:
    assert here(*RUN, "--through", "pre_deploy").code == 0
    contradiction = ("--set", 'cleanup.drop=["status"]')

    refused(here, seeded, (*RUN, *contradiction), 2, "differs in drop", "from the one this table began with")
    refused(here, seeded, ("rollback", PLAN, "--to", "v0", "--no-prefect", *contradiction), 2, "differs in drop")
    assert here(*RUN, "--set", "max_stall_ms=900").code == 0  # an operational key may change


@pytest.mark.parametrize(("setting", "said"), [
    ("max_stal_ms=5", "max_stal_ms"), ("deploy.comand=true", "deploy.comand"), ("nonsense", "is not KEY=VALUE"),
    ("max_stall_ms=much", "max_stall_ms"), ("verify.on_fail=panic", "verify.on_fail"), ("plan.id.x=1", "plan.id.x"), ("=1", "KEY=VALUE"),
])
def test_a_set_that_does_not_fit_is_wrong_usage_and_named(there: Call, bystander: App, setting: str, said: str) -> None:
    refused(there, bystander, ("run", PLAN, "--no-prefect", "--set", setting), 2, "--set", said)


@pytest.mark.parametrize(("words", "said"), [
    (("run", PLAN, "--nonsense"), "--nonsense"),
    (("run",), "PLAN"),
    (("explode", PLAN), "explode"),
    (("run", PLAN, "--through", "everything"), "everything"),
    (("rollback", PLAN, "everything"), "everything"),
    (("rollback", PLAN, "--to", "v9"), "v9"),
    (("run", PLAN, "--from", "verify", "--through", "deploy", "--no-prefect"), "--from verify: comes after --through deploy"),
    (("rollback", PLAN, "--no-prefect"), "needs a phase or --to"),
    (("rollback", PLAN, "verify", "--to", "v0", "--no-prefect"), "and not both"),
    (("rollback", PLAN, "--to", "verify", "--drop-added", "--no-prefect"), "--drop-added"),
    (("rollback", PLAN, "deploy", "--drop-added", "--no-prefect"), "--drop-added"),
    ((*RUN, "--by", "x" * 501), "--by"),
    ((*RUN, "--reason", " "), "--reason"),
    ((*RUN, "--reason", ""), "--reason"),
    ((*RUN, "--accept", " "), "--accept"),
    ((*RUN, "--deployed-by", " "), "--deployed-by"),
], ids=lambda value: " ".join(value)[:60] if isinstance(value, tuple) else "")
def test_words_that_do_not_fit_are_wrong_usage(there: Call, bystander: App, words: tuple[str, ...], said: str) -> None:
    refused(there, bystander, words, 2, said)


def test_from_a_phase_whose_forerunner_is_not_done_is_refused(there: Call, bystander: App) -> None:
    refused(there, bystander, (*RUN, "--from", "backfill"), 3, "pre_deploy, which is not done")


def test_a_rollback_of_a_phase_below_a_standing_one_is_refused(here: Call, begun: App) -> None:
    refused(here, begun, ("rollback", PLAN, "deploy", "--no-prefect", *DEPLOYED), 3, "shadow_write stands, which comes later",
            "--to pre_deploy")


def test_an_html_file_that_cannot_be_written_is_wrong_usage(there: Call, bystander: App, tmp_path: Path) -> None:
    refused(there, bystander, ("report", PLAN, "--html", str(tmp_path / "no" / "where.html")), 2, "where.html", "cannot be written")


def test_as_a_real_process_the_code_and_the_streams_are_the_same(bystander: App, bystander_url: str) -> None:
    before = standing(bystander)
    wrong = make_url(bystander_url).set(password=PASSWORD).render_as_string(hide_password=False)

    ended = subprocess.run([Path(sys.executable).with_name("rollout"), "run", PLAN, "--no-prefect", "--json"],
                           env={**os.environ, ENVIRONMENT: wrong}, capture_output=True, text=True, timeout=60, check=False)

    assert ended.returncode == 3
    assert ended.stdout.startswith("{")
    assert '"exit_code": 3' in ended.stdout
    assert "Access denied" in ended.stderr
    assert PASSWORD not in ended.stdout + ended.stderr
    assert standing(bystander) == before
