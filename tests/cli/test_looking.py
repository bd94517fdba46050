"""`check`, `plan`, `rehearse`, `status` and `report`: what they print, and that they leave everything as it is."""

from __future__ import annotations

import html
import json
import os
import re
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from flows.cli.app import app as commands
from steps.checks import blockers
from steps.scratch import scratch_name
from steps.target import ENVIRONMENT, Target
from tests.cli.calling import DEPLOYED, PLAN, Call, phases, standing
from tests.conftest import App

PHASES = ["pre_deploy", "deploy", "backfill", "verify", "shadow_write", "cleanup"]
AT_ONCE_S = 5
STEPS = 11  # of phase 1; the ladder may reach further


def fresh(*words: str, url: str = "") -> subprocess.CompletedProcess[str]:
    """The console script in a process of its own."""
    return subprocess.run([Path(sys.executable).with_name("rollout"), *words], capture_output=True, text=True, timeout=60, check=False,
                          env={**os.environ, ENVIRONMENT: url})


@pytest.mark.parametrize("words", [
    ("check", PLAN, "--json"), ("plan", PLAN, "--json"), ("plan", PLAN, "--sql"), ("rehearse", PLAN, "--json"), ("status", PLAN),
    ("status", PLAN, "--json"), ("report", PLAN), ("report", PLAN, "--json")], ids=" ".join)
def test_looking_at_a_virgin_database_succeeds_and_changes_nothing(there: Call, bystander: App, words: tuple[str, ...]) -> None:
    before = standing(bystander)

    answer = there(*words)

    assert answer.code == 0, answer.text
    if "--json" in words:
        assert answer.document["exit_code"] == 0
    assert standing(bystander) == before


def test_stdout_of_a_real_process_is_one_document_and_stderr_holds_the_rest(bystander_url: str) -> None:
    ended = fresh("rehearse", PLAN, "--json", url=bystander_url)

    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["exit_code"] == 0
    assert "rehearsed" in ended.stderr


def test_log_lines_are_of_utc_wherever_one_sits_and_say_so(there: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Asia/Kathmandu")
        time.tzset()
        before = datetime.now(UTC).replace(microsecond=0)
        said = there("rehearse", PLAN).err
        after = datetime.now(UTC)
    time.tzset()

    stamps = re.findall(r"(?m)^(\d\d:\d\d:\d\d)Z \S", said)
    assert stamps
    assert {f"{before + timedelta(seconds=n):%H:%M:%S}" for n in range(int((after - before).total_seconds()) + 1)} >= set(stamps)


def test_status_of_a_virgin_database_says_that_nothing_has_begun(there: Call) -> None:
    now = there("status", PLAN, "--json").document
    text = there("status", PLAN).text

    assert [row["phase"] for row in now["phases"]] == PHASES
    assert {row["state"] for row in now["phases"]} == {"not begun"}
    assert now["next"] == f"pre_deploy: rollout run {PLAN}"
    assert (now["sync"], now["passes"], now["working_on_it"]) == ("off", [], None)
    assert (now["stair"], now["stairs"], now["pre_deploy_stairs"]) == (None, None, STEPS)  # only a rehearsal can count them
    assert "1. pre_deploy" in text
    assert f"next: pre_deploy: rollout run {PLAN}" in text


def test_status_after_all_phases_tells_stair_sync_passes_and_what_is_next(here: Call, begun: App) -> None:
    now = here("status", PLAN, "--json").document

    assert {row["phase"]: row["state"] for row in now["phases"]} == {**dict.fromkeys(PHASES, "done"), "cleanup": "not begun"}
    planned = here("plan", PLAN, "--json").document
    assert now["stair"] == now["pre_deploy_stairs"] == planned["pre_deploy_stairs"] == STEPS
    assert now["stairs"] == planned["stairs"] > STEPS
    assert now["sync"] == "on"
    assert now["same_plan_as_begun"] is True
    assert [each["rows_examined"] for each in now["passes"]] == [9]
    assert "cleanup" in now["next"]
    assert re.search(rf"stair {STEPS} of \d+; sync triggers: on", here("status", PLAN).text)


@pytest.mark.parametrize("started", [False, True])
def test_status_answers_at_once_while_somebody_holds_the_table(here: Call, seeded: App, started: bool,
                                                              request: pytest.FixtureRequest) -> None:
    if started:
        request.getfixturevalue("begun")
    seeded.run("LOCK TABLES AiAnalysisJob WRITE")
    began = time.monotonic()

    answer = here("status", PLAN, "--json")

    assert time.monotonic() - began < AT_ONCE_S
    assert answer.code == 0, answer.text
    assert answer.document["next"].startswith("cleanup" if started else "pre_deploy")
    seeded.run("UNLOCK TABLES")


def test_status_and_report_say_what_a_drifted_or_missing_table_looks_like(here: Call, begun: App) -> None:
    begun.run("ALTER TABLE AiAnalysisJob DROP COLUMN queueName")
    drifted = here("status", PLAN, "--json")
    begun.run("RENAME TABLE AiAnalysisJob TO Gone")
    gone = here("status", PLAN, "--json")

    assert drifted.code == gone.code == here("report", PLAN).code == 0
    assert "queueName" in drifted.document["drift"]
    assert gone.document["stair"] is None
    assert gone.document["drift"]


def test_check_lists_every_finding_with_its_remedy_and_key(there: Call, bystander: App) -> None:
    bystander.run("UPDATE AiAnalysisJob SET status = 'odd' WHERE id = 'c000001'")
    try:
        answer = there("check", PLAN, "--json")
        text = there("check", PLAN)
    finally:
        bystander.run("UPDATE AiAnalysisJob SET status = 'processing' WHERE id = 'c000001'")

    assert answer.code == text.code == 3
    found = answer.document["findings"]
    assert answer.document["refused"] == sum(f["severity"] == "refuse" for f in found) == 1
    assert {"check", "severity", "subject", "what", "remedy", "accept", "could_not_look"} <= set(found[0])
    assert "refuse [statuses]" in text.text
    assert "1 refuse" in text.text


def sql_of(groups: list[dict[str, Any]]) -> list[str]:
    return [line for group in groups for step in group["steps"] for line in step["sql"]]


def test_plan_with_sql_prints_every_statement_that_a_run_records(here: Call, seeded: App) -> None:
    printed = here("plan", PLAN, "--sql").text
    steps = here("plan", PLAN, "--json").document

    assert here("run", PLAN, "--no-prefect", *DEPLOYED).code == 0
    ran = [str(row[0]) for row in seeded.rows("SELECT statement FROM _rollout_event WHERE statement LIKE 'ALTER TABLE%'")]
    assert len(ran) == STEPS
    for statement in ran:
        assert " ".join(statement.split()) in printed
    assert "CREATE " in printed
    assert "TRIGGER `rollout_ai_analysis_job_bu`" in printed
    assert "UPDATE `AiAnalysisJob` SET" in printed
    assert "FORCE INDEX (`idx_lifecycleStatus_createdAt`)" in printed
    assert steps["stair"] == 0
    assert len([step for group in steps["groups"] for step in group["steps"]]) == STEPS
    assert [step["algorithm"] for group in steps["groups"] for step in group["steps"]].count("INSTANT") >= 6
    left = here("plan", PLAN, "--json").document
    assert left["groups"] == []
    assert sql_of(left["cleanup"]) == sql_of(steps["cleanup"]) != []  # a run does not go there unless it is asked to


def test_rehearse_names_every_step_with_both_ways(there: Call) -> None:
    document = there("rehearse", PLAN, "--json").document
    text = there("rehearse", PLAN).text

    assert document["stairs"][0]["step"] == "010_widen_job_type"
    assert len(document["stairs"]) >= STEPS
    assert all(stair["up"] and stair["down"] for stair in document["stairs"])
    assert "each landing exactly one stair lower" in text
    widening = document["steps"][0]
    assert (widening["step"], widening["phase"]) == ("010_widen_job_type", "pre_deploy")
    for side in ("up", "down"):
        assert (widening[side]["algorithm"], widening[side]["rebuilds"], widening[side]["locks"]) == ("COPY", True, "shared")
        assert "60 ms + 0.02 ms × 9 estimated rows" in widening[side]["basis"]
    assert (document["sample"]["rows"], document["sample"]["rows_changed"], document["sample"]["queries_run"]) == (9, 6, 5)
    assert "60 ms + 0.02 ms" in text
    assert "9 sampled rows went up and came back; the first pass changed 6 of them" in text
    assert "…" not in text


def test_plan_and_rehearse_call_the_same_thing_by_the_same_name(there: Call) -> None:
    planned, rehearsed = there("plan", PLAN).text, there("rehearse", PLAN).text

    for text in (planned, rehearsed):
        assert "others" in text
        assert "meet" in text
        assert "lock" not in text.split("060_")[0]
    assert " way " in rehearsed


def test_plan_tells_each_ways_basis_and_what_the_first_pass_takes(there: Call) -> None:
    document = there("plan", PLAN, "--json").document
    text = there("plan", PLAN).text

    told = [step for group in (*document["groups"], *document["cleanup"]) for step in group["steps"]]
    assert [step["rebuilds"] for step in told] == [True] + [False] * (len(told) - 1)
    assert all(step["basis"] and step["back"]["basis"] and step["back"]["estimate_ms"] > 0 for step in told)
    assert document["first_pass_estimate"]["estimate_ms"] > 0
    assert "as if every row disagreed" in document["first_pass_estimate"]["basis"]  # nine rows tell too little
    assert "first pass: about 0.0 s (0.7 ms × 9 estimated rows" in text


def test_rehearse_beside_somebody_who_holds_the_table_names_him_and_changes_nothing(here: Call, seeded: App) -> None:
    before = standing(seeded)
    seeded.run("LOCK TABLES AiAnalysisJob WRITE")

    answer = here("rehearse", PLAN, "--json")

    assert (answer.code, answer.document["kind"]) == (3, "Refused")
    assert f"AiAnalysisJob is held by connection {seeded.value('SELECT CONNECTION_ID()')} " in answer.document["reason"]
    assert here("rehearse", PLAN, "--set", "rehearsal.sample_rows=0").code == 0
    seeded.run("UNLOCK TABLES")
    assert standing(seeded) == before


def test_status_tells_what_a_killed_rehearsal_left_and_uninstall_removes_it(here: Call, seeded: App, database: Target) -> None:
    left = scratch_name(database, "AiAnalysisJob")
    assert "killed rehearsal" not in here("status", PLAN).text
    seeded.run(f"CREATE DATABASE {left}")

    assert here("status", PLAN, "--json").document["rehearsal_left"] == left
    assert f"left by a killed rehearsal: schema {left}" in here("status", PLAN).text
    assert here("uninstall", PLAN, "--yes", "--json").document["removed"] == [f"schema {left}, left by a killed rehearsal"]
    assert seeded.rows("SHOW DATABASES LIKE %s", left) == []


def test_report_tells_who_why_what_and_how_it_ended_in_three_forms(here: Call, begun: App, tmp_path: Path) -> None:
    page = tmp_path / "report.html"

    document = here("report", PLAN, "--json").document
    text = here("report", PLAN).text
    assert here("report", PLAN, "--html", str(page)).code == 0

    (run,) = document["runs"]
    assert (run["actor"], run["reason"], run["verb"], run["exit_code"]) == ("ann", "it is due", "run", 0)
    assert run["started_at"] < run["ended_at"]
    assert {event["phase"] for event in run["events"]} == set(PHASES) - {"cleanup"}
    assert sum(1 for event in run["events"] if event["statement"]) >= 14
    assert next(event["row_count"] for event in run["events"] if event["step"] == "first pass") == 6
    for form in (text, page.read_text()):
        for fact in ("ann", "it is due", "010_widen_job_type", "first pass", "CREATE", "true"):
            assert fact in form
    [migration] = document["repository"]["migrations"]
    for form in (text, " ".join(html.unescape(page.read_text()).split())):
        assert "In the application's repository" in form
        assert f"prisma migrate resolve --applied {migration['name']}" in form
        assert " ".join(migration["sql"].split()) in form
        assert '+ lifecycleStatus String @default("pending")' in form
    assert "<script" not in page.read_text()
    assert "http" not in page.read_text().replace("http-equiv", "")


def test_report_tells_what_was_accepted_and_what_was_found(here: Call, seeded: App, database: Target, tmp_path: Path,
                                                            monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blockers, "OLD_S", 0)
    holder, page = App(database), tmp_path / "report.html"
    number = holder.value("SELECT CONNECTION_ID()")
    run = ("run", PLAN, "--no-prefect", "--by", "ann", "--set", "gap_wait_s=1", *DEPLOYED)
    holder.run("LOCK TABLES AiAnalysisJob READ")
    try:
        codes = here(*run).code, here(*run, "--accept", "blockers").code
    finally:
        holder.close()

    assert codes == (3, 4)
    (told,) = here("report", PLAN, "--json").document["runs"]
    [event] = [event for event in told["events"] if event["outcome"] == "accepted"]
    assert (event["step"], event["phase"], event["detail"]["check"], event["detail"]["by"]) == (
        "accepted: blockers", "pre_deploy", "blockers", "ann")
    assert f"connection {number}" in event["detail"]["found"]
    assert here("report", PLAN, "--html", str(page)).code == 0
    for form in (here("report", PLAN).text, page.read_text()):
        assert "; accepted: blockers" in form
        assert "accepted: blockers" in form.replace("; accepted: blockers", "")
        assert form.count(f"connection {number}") >= 2  # as it was found, and as it kept the run from a gap
        assert "( ms)" not in form


def test_report_of_a_virgin_database_says_that_nothing_is_on_record(there: Call) -> None:
    assert "nothing is on record" in there("report", PLAN).text
    document = there("report", PLAN, "--json").document
    assert (document["runs"], document["repository"]) == ([], None)


def test_a_reason_with_markup_is_shown_and_not_obeyed(here: Call, seeded: App, tmp_path: Path) -> None:
    reason = "<script>alert(1)</script> [red]x[/red] 100 %s"
    assert here("run", PLAN, "--no-prefect", "--through", "pre_deploy", "--reason", reason, *DEPLOYED).code == 0

    assert reason in here("report", PLAN).text
    assert here("report", PLAN, "--html", str(tmp_path / "r.html")).code == 0
    assert "<script>" not in (tmp_path / "r.html").read_text()
    assert phases(seeded) == {"pre_deploy": "done"}


def test_every_command_has_help_and_names_its_exit_codes() -> None:
    for command in commands.registered_commands:
        assert command.callback is not None
        assert command.callback.__doc__
    ended = fresh("--help")
    assert ended.returncode == 0
    assert "another rollout holds this table" in " ".join(ended.stdout.replace("│", "").split())


def test_status_and_check_say_that_sync_is_broken_and_what_repairs_it(here: Call, seeded: App) -> None:
    assert here("run", PLAN, "--no-prefect", "--set", "deploy.command=true").code == 0
    seeded.run("DROP TRIGGER rollout_ai_analysis_job_bu")

    assert here("status", PLAN, "--json").document["next"].startswith("repair: sync is broken")
    found = here("check", PLAN, "--json").document["findings"]
    assert [f["check"] for f in found if "sync is broken" in f["what"]] == ["sync"]
    assert here("run", PLAN, "--no-prefect", "--set", "deploy.command=true").code == 0
    assert len(seeded.triggers()) == 2


def test_an_accept_key_that_nobody_has_is_wrong_usage(here: Call, seeded: App) -> None:
    answer = here("check", PLAN, "--accept", "blabla", "--json")

    assert (answer.code, answer.document["subject"]) == (2, "--accept blabla")
