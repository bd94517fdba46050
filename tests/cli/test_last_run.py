"""What status says once a run or a way back has ended otherwise than well: how, and what goes on with it; never a way that leads away."""

from __future__ import annotations

import pytest

from flows.demo.traffic.generations import TABLE
from tests.cli.calling import DEPLOYED, PLAN, Call, phases
from tests.conftest import App

BY_HAND = ("--no-prefect", "--yes", "--by", "ben", "--reason", "CHG-7")
MANUAL = ("--set", "deploy.command=true")
"""With nothing that takes it back."""


def test_a_way_back_that_waits_for_a_person_is_what_comes_next(here: Call, begun: App) -> None:
    assert here("rollback", PLAN, "--to", "v0", *BY_HAND, *MANUAL).code == 4

    now = here("status", PLAN, "--json").document
    assert now["next"].startswith("the way back that ben asked for waits: a person has to confirm that the old generation (V0) is back")
    assert "then call: the same rollback once more with --deployed-by NAME" in now["next"]
    assert "…" not in now["next"]
    assert f"next: {now['next']}" in here("status", PLAN).text

    assert here("rollback", PLAN, "--to", "v0", *BY_HAND, *MANUAL, "--deployed-by", "ben").code == 0
    assert here("status", PLAN, "--json").document["next"] == f"pre_deploy: rollout run {PLAN}"


def test_a_failed_verify_whose_way_back_waits_leads_back(here: Call, seeded: App) -> None:
    assert here("run", PLAN, "--through", "backfill", *BY_HAND, *MANUAL).code == 0
    seeded.run("SET foreign_key_checks = 0")
    seeded.run(f"UPDATE {TABLE} SET userId = 'nobody' WHERE id = 'c000001'")

    failed = here("run", PLAN, *BY_HAND, *MANUAL)

    assert (failed.code, phases(seeded)["verify"]) == (4, "fail")
    status = here("status", PLAN)
    assert "next: the way back: " in status.text
    assert "rollout rollback ai_analysis_job --to pre_deploy --deployed-by NAME" in status.text.partition("next: ")[2]
    assert "last run: run by ben of " in status.text
    assert "exit 4 at " in status.text


def test_a_run_that_ended_well_needs_no_words(here: Call, begun: App) -> None:
    assert here("status", PLAN, "--json").document["last_run"] | {"started_at": "", "ended_at": ""} == {
        "verb": "run", "actor": "ann", "reason": "it is due", "started_at": "", "ended_at": "", "exit_code": 0, "outcome": "done"}
    assert "last run" not in here("status", PLAN).text


@pytest.mark.parametrize(("option", "mark"), [("--by", "NAME"), ("--reason", "WHY"), ("--deployed-by", "NAME")])
def test_what_is_printed_to_be_filled_in_is_not_taken_as_it_is(here: Call, seeded: App, option: str, mark: str) -> None:
    words = {"--by": "ben", "--reason": "CHG-7", "--deployed-by": "ben"} | {option: mark}

    refused = here("run", PLAN, "--no-prefect", *DEPLOYED, *(word for pair in words.items() for word in pair))

    assert (refused.code, f"{option} {mark}: stands for yours" in refused.text) == (2, True)
    assert "_rollout_phase" not in {row[0] for row in seeded.rows("SHOW TABLES")}
