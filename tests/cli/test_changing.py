"""`run` and `rollback` from a shell without a terminal: what they do, what they print, and when they do nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from steps.ownership import lock_name
from steps.target import ENVIRONMENT, Target
from tests.cli.calling import DEPLOYED, PLAN, Call, phases, standing
from tests.conftest import App

ALL = {"pre_deploy": "done", "deploy": "done", "backfill": "done", "verify": "done", "shadow_write": "done"}
IS_PREFECT_LOADED = """
import sys
from flows.cli.app import main
try:
    main()
finally:
    sys.stderr.write(f"prefect={'prefect' in sys.modules}")
"""


def test_a_run_says_what_it_did_and_a_second_one_that_there_is_nothing_to_do(here: Call, begun: App) -> None:
    before = standing(begun)

    again = here("run", PLAN, "--no-prefect", "--json", *DEPLOYED)

    assert again.code == 0
    assert again.document == {"verb": "run", "outcome": "nothing to do", "phases": [], "run_id": None, "warnings": [], "exit_code": 0}
    assert here("run", PLAN, "--no-prefect").text == "nothing to do"
    assert standing(begun) == before


def test_a_run_as_json_names_its_phases_and_its_run(here: Call, seeded: App) -> None:
    document = here("run", PLAN, "--no-prefect", "--json", *DEPLOYED).document

    assert (document["outcome"], document["phases"], document["exit_code"]) == ("done", list(ALL), 0)
    assert seeded.value("SELECT exit_code FROM _rollout_run WHERE run_id = %s", document["run_id"]) == 0
    assert phases(seeded) == ALL


def test_run_through_and_from_go_as_far_as_asked(here: Call, seeded: App) -> None:
    assert here("run", PLAN, "--no-prefect", "--through", "pre_deploy", *DEPLOYED).code == 0
    assert phases(seeded) == {"pre_deploy": "done"}

    assert here("run", PLAN, "--no-prefect", "--from", "deploy", "--through", "backfill", *DEPLOYED).code == 0
    assert phases(seeded) == {"pre_deploy": "done", "deploy": "done", "backfill": "done"}


def test_a_manual_deploy_without_a_terminal_stops_and_prints_the_call_that_continues(here: Call, seeded: App) -> None:
    stopped = here("run", PLAN, "--no-prefect", "--yes", "--json")

    assert stopped.code == 4
    assert stopped.document["kind"] == "WaitingForPerson"
    assert f"rollout run {PLAN} --deployed-by NAME" in stopped.document["remedy"]
    assert phases(seeded) == {"pre_deploy": "done", "deploy": "waiting"}
    assert len(seeded.triggers()) == 2

    assert here("run", PLAN, "--no-prefect", "--yes").code == 4  # --yes never answers for a person
    assert phases(seeded) == {"pre_deploy": "done", "deploy": "waiting"}

    assert here("run", PLAN, "--no-prefect", "--deployed-by", "ben").code == 0
    assert phases(seeded) == ALL
    assert "ben" in str(seeded.value("SELECT detail FROM _rollout_event WHERE step = 'confirmed by hand'"))


def test_a_manual_rollback_waits_for_a_person_before_anything_is_undone(here: Call, begun: App) -> None:
    begun_with = standing(begun)

    waiting = here("rollback", PLAN, "--to", "v0", "--no-prefect", "--yes", "--set", "deploy.command=true")

    assert waiting.code == 4
    assert "--deployed-by" in waiting.text
    now = standing(begun)
    assert now["triggers"] == begun_with["triggers"]
    assert phases(begun) == ALL

    assert here("rollback", PLAN, "--to", "v0", "--no-prefect", "--set", "deploy.command=true", "--deployed-by", "ben").code == 0
    assert phases(begun) == dict.fromkeys(ALL, "undone")
    assert begun.triggers() == []


def test_rollback_to_v0_and_then_drop_added_ends_at_the_baseline(here: Call, seeded: App) -> None:
    baseline = seeded.create_table()
    assert here("run", PLAN, "--no-prefect", *DEPLOYED).code == 0

    kept = here("rollback", PLAN, "--to", "v0", "--no-prefect", "--json", "--by", "ann", *DEPLOYED)
    assert kept.document["phases"] == ["shadow_write", "verify", "backfill", "deploy", "pre_deploy"]
    assert "lifecycleStatus" in seeded.create_table()

    dropped = here("rollback", PLAN, "--to", "v0", "--drop-added", "--no-prefect", "--json", *DEPLOYED)
    assert dropped.document["phases"] == ["pre_deploy"]
    assert seeded.create_table() == baseline

    before = standing(seeded)
    again = here("rollback", PLAN, "--to", "v0", "--drop-added", "--no-prefect", "--json", *DEPLOYED)
    assert (again.code, again.document["outcome"]) == (0, "nothing to do")
    assert standing(seeded) == before
    assert [run["verb"] for run in here("report", PLAN, "--json").document["runs"]] == ["run", "rollback", "rollback"]


def test_a_rollback_of_a_virgin_database_has_nothing_to_do(there: Call, bystander: App) -> None:
    before = standing(bystander)

    for words in (("--to", "v0"), ("--to", "v0", "--drop-added"), ("pre_deploy",), ("verify",), ("--to", "deploy")):
        answer = there("rollback", PLAN, *words, "--no-prefect", "--json")
        assert (answer.code, answer.document["outcome"]) == (0, "nothing to do"), answer.text
    assert there("rollback", PLAN, "--to", "v0", "--no-prefect").text == "nothing to do: nothing of this plan stands on AiAnalysisJob"

    assert standing(bystander) == before


@pytest.mark.parametrize("words", [("run", PLAN), ("rollback", PLAN, "--to", "v0")], ids=" ".join)
def test_a_table_that_another_rollout_holds_is_left_alone(here: Call, seeded: App, database: Target, words: tuple[str, ...]) -> None:
    assert here("run", PLAN, "--no-prefect", "--through", "pre_deploy", *DEPLOYED).code == 0
    other = App(database)
    assert other.value("SELECT GET_LOCK(%s, 0)", lock_name(database.schema, "AiAnalysisJob")) == 1
    before = standing(seeded)

    busy = here(*words, "--no-prefect", "--json", *DEPLOYED)

    assert (busy.code, busy.document["kind"]) == (6, "Busy")
    assert standing(seeded) == before
    other.close()


def test_nothing_to_do_is_found_out_without_importing_prefect(begun: App, url: str) -> None:
    ended = subprocess.run([sys.executable, "-c", IS_PREFECT_LOADED, "run", PLAN, "--json"], capture_output=True, text=True, timeout=60,
                           check=False, env={**os.environ, ENVIRONMENT: url})

    assert ended.returncode == 0
    assert '"outcome": "nothing to do"' in ended.stdout
    assert ended.stderr.endswith("prefect=False")


def test_a_real_process_takes_the_url_from_its_environment_and_keeps_stdout_for_json(seeded: App, url: str) -> None:
    ended = subprocess.run([Path(sys.executable).with_name("rollout"), "run", PLAN, "--no-prefect", "--json", "--through", "pre_deploy"],
                           capture_output=True, text=True, timeout=60, check=False, env={**os.environ, ENVIRONMENT: url})

    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("{")
    assert ended.stdout.rstrip().endswith("}")
    assert "step ended" in ended.stderr
    assert phases(seeded) == {"pre_deploy": "done"}
