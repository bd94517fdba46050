"""`rollout approve`, `reject` and `resume` from a shell: exit codes, JSON, and what the status, the report and the table say."""

from __future__ import annotations

import pytest

from steps.target import Target
from tests.cli.calling import DEPLOYED, PLAN, Call, phases
from tests.conftest import App

pytestmark = pytest.mark.usefixtures("remembered_rehearsals")
RUN = ("run", PLAN, "--no-prefect", "--by", "ann", "--reason", "CHG-1", *DEPLOYED, "--set", "gates.approve=['verify']")
BEN = ("--by", "ben", "--reason", "looked at it")
UP_TO = {"pre_deploy": "done", "deploy": "done", "backfill": "done"}


def test_a_gate_is_seen_answered_and_reported_from_a_shell(here: Call, seeded: App) -> None:
    waits = here(*RUN, "--json")

    assert (waits.code, waits.document["kind"], waits.document["gate"]["phase"]) == (4, "ApprovalMissing", "verify")
    assert phases(seeded) == UP_TO
    call = f"rollout approve {PLAN} verify --by NAME --reason WHY"
    status = here("status", PLAN)
    assert (f"next: gate of verify: {call}" in status.text, "gate of verify: waits for an approval, asked by ann" in status.text) == (
        True, True)

    said = here("approve", PLAN, "verify", *BEN, "--json")

    assert (said.code, said.document["outcome"]) == (0, "approved")
    assert (said.document["gate"]["answered_by"], said.document["gate"]["answered_why"]) == ("ben", "looked at it")
    assert phases(seeded) == UP_TO
    assert here("approve", PLAN, "verify", *BEN, "--json").document["outcome"] == "nothing to do"
    assert here(*RUN).code == 0
    assert phases(seeded) == UP_TO | {"verify": "done", "shadow_write": "done"}
    report = here("report", PLAN).text
    assert "approved by ben: looked at it, asked by ann; the phase has begun" in report
    (gate,) = here("report", PLAN, "--json").document["gates"]
    assert (gate["phase"], gate["state"], gate["asked_by"], gate["asked_why"], gate["answered_by"]) == (
        "verify", "opened", ["ann"], "CHG-1", "ben")


def test_resume_goes_on_with_the_last_runs_options_and_opens_no_gate(here: Call, seeded: App) -> None:
    assert here(*RUN, "--through", "verify").code == 4

    refused = here("resume", PLAN, *BEN, "--no-prefect", "--json")
    assert (refused.code, "waits for an approval, which this is not" in refused.document["reason"]) == (3, True)
    assert phases(seeded) == UP_TO

    assert here("approve", PLAN, "verify", *BEN).code == 0
    assert here("resume", PLAN, *BEN, "--no-prefect").code == 0
    assert phases(seeded) == UP_TO | {"verify": "done"}  # as far as the last run was to go
    assert seeded.rows("SELECT actor, reason FROM _rollout_run ORDER BY started_at DESC LIMIT 1") == [("ben", "looked at it")]
    assert here("resume", PLAN, *BEN, "--no-prefect", "--json").document["outcome"] == "nothing to do"


def test_a_rejection_ends_it_until_somebody_asks_anew(here: Call, seeded: App) -> None:
    assert here(*RUN).code == 4

    assert here("reject", PLAN, "verify", *BEN).code == 0
    late = here("approve", PLAN, "verify", *BEN, "--json")
    assert (late.code, "was rejected: by ben" in late.document["reason"]) == (3, True)
    assert phases(seeded) == UP_TO
    assert here("resume", PLAN, *BEN, "--no-prefect").code == 4  # asks anew
    assert here("approve", PLAN, "verify", *BEN).code == 0


def test_nobody_has_asked_and_nothing_was_run(here: Call, seeded: App) -> None:
    for words in (("approve", PLAN, "deploy"), ("reject", PLAN, "deploy"), ("resume", PLAN)):
        answer = here(*words, *BEN, "--json")
        assert (answer.code, answer.document["kind"]) == (3, "Refused"), answer.text
    assert seeded.rows("SHOW TABLES LIKE '\\_rollout%'") == []


@pytest.mark.parametrize("verb", [("approve", PLAN, "verify"), ("reject", PLAN, "verify"), ("resume", PLAN)])
def test_a_reason_is_asked_for(there: Call, verb: tuple[str, ...]) -> None:
    assert there(*verb, "--by", "ben").code == 2
    assert there(*verb, "--by", "ben", "--reason", " ").code == 2


def test_resume_does_not_run_what_the_ledger_has_only_masked(here: Call, seeded: App, database: Target) -> None:
    secret = str(database.url.password or "")
    assert here(*RUN, "--set", f"deploy.health_command=echo {secret}").code == 4

    assert here("approve", PLAN, "verify", *BEN).code == 0

    refused = here("resume", PLAN, *BEN, "--no-prefect", "--json")
    assert refused.code == 3
    assert "--set deploy.health_command holds a secret" in refused.document["reason"]
    assert phases(seeded) == UP_TO


def test_a_word_that_somebody_has_given_once_is_not_given_again(here: Call, seeded: App) -> None:
    cleanup = (*RUN[:-2], "--through", "cleanup", "--set", "cleanup.min_age_s=0", "--set", "cleanup.observe_s=0", "--set",
               "gates.window.not_after='2026-01-01T00:00:00'", "--set", "gates.window.phases=['cleanup']", "--accept", "cleanup",
               "--accept", "cleanup-unseen", "--deployed-by", "ann")
    assert here(*cleanup).code == 4
    before = seeded.create_table()

    resumed = here("resume", PLAN, *BEN, "--no-prefect", "--json")

    assert (resumed.code, resumed.document["kind"]) == (4, "ApprovalMissing")
    assert seeded.create_table() == before
