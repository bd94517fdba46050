"""`rollout watch`, and what `rollout status` and `rollout report` tell of it: exit codes, words, JSON, nothing but the ledger changed."""

from __future__ import annotations

from tests.cli.calling import PLAN, Call, standing
from tests.conftest import App

WHO = ("--by", "ann", "--reason", "the soak")
FAULT = "UPDATE AiAnalysisJob SET status = 'completed', lifecycleStatus = 'locked' WHERE id = 'c000002'"


def watched(app: App) -> list[str]:
    return [str(row[0]) for row in app.rows("SELECT outcome FROM _rollout_event WHERE step = 'parity watch' ORDER BY id")]


def test_a_clean_look_exits_0_and_says_what_cleanup_waits_for(here: Call, begun: App) -> None:
    before = standing(begun)

    answer = here("watch", PLAN, *WHO, "--no-prefect", "--json")

    found = answer.document
    assert (answer.code, found["outcome"], found["exit_code"]) == (0, "clean", 0)
    assert (found["rows_examined"], found["complete"], found["differing"], found["triggers"]) == (9, True, 0, "on")
    assert found["conditions_unmet"][0].startswith("verify passed at ")
    assert found["days_since"].keys() == {"verify", "shadow_write"}
    after = standing(begun)
    ours = {table for table in after["rows"] if after["rows"][table] != before["rows"].get(table)}
    assert ours == {"_rollout_event", "_rollout_pass", "_rollout_pace"}
    assert after["triggers"] == before["triggers"]
    assert after["tables"]["AiAnalysisJob"] == before["tables"]["AiAnalysisJob"]


def test_status_and_report_tell_of_the_looks(here: Call, begun: App) -> None:
    here("watch", PLAN, *WHO, "--no-prefect")

    assert "parity watch: clean, " in here("status", PLAN).text
    assert here("status", PLAN, "--json").document["parity_watch"]["outcome"] == "clean"
    told = here("report", PLAN).text
    assert "parity watch: clean" in told
    assert "by = ann" in told
    assert "counters" not in told


def test_lost_parity_exits_4_with_the_rows_key_and_the_remedy(here: Call, begun: App) -> None:
    begun.run(FAULT)

    plain = here("watch", PLAN, *WHO, "--no-prefect")
    answer = here("watch", PLAN, *WHO, "--no-prefect", "--json")

    found = answer.document
    assert (plain.code, answer.code) == (4, 4)
    assert "keys: c000002" in plain.text
    assert "say by key which side of these rows is right" in plain.text
    assert "locked" not in plain.text + answer.text
    assert (found["kind"], found["keys"], found["differing"], found["exit_code"]) == ("ParityLost", ["c000002"], 1, 4)
    assert watched(begun) == ["found", "found"]
    assert begun.rows("SELECT status, lifecycleStatus FROM AiAnalysisJob WHERE id = 'c000002'") == [("completed", "locked")]


def test_run_and_status_tell_of_parity_that_was_found_lost_until_a_look_is_clean(here: Call, begun: App) -> None:
    begun.run(FAULT)
    here("watch", PLAN, *WHO, "--no-prefect")
    run = ("run", PLAN, *WHO, "--no-prefect")

    answer, told = here(*run, "--json"), here(*run).text

    (warning,) = answer.document["warnings"]
    assert (answer.code, answer.document["outcome"], warning["check"]) == (0, "nothing to do", "parity")
    assert "warning [parity] table AiAnalysisJob: the parity watch of " in told
    assert "found 1 rows that differ, and none was clean since" in here("status", PLAN, "--json").document["next"]
    begun.run("UPDATE AiAnalysisJob SET lifecycleStatus = 'succeeded' WHERE id = 'c000002'")
    here("watch", PLAN, *WHO, "--no-prefect")
    assert here(*run, "--json").document["warnings"] == []
    assert here("status", PLAN, "--json").document["next"].startswith("cleanup, when the old application is gone")


def test_before_a_rollout_there_is_nothing_to_watch_and_no_ledger_is_made(here: Call, seeded: App) -> None:
    before = standing(seeded)

    answer = here("watch", PLAN, *WHO, "--json")

    assert (answer.code, answer.document["outcome"], answer.document["why"]) == (
        0, "nothing to do", f"plan {PLAN} was never begun on this table")
    assert standing(seeded) == before


def test_a_budget_that_is_no_time_at_all_is_wrong_usage(here: Call) -> None:
    assert here("watch", PLAN, *WHO, "--budget-s", "0").code == 2
    assert here("watch", PLAN, *WHO, "--budget-s", "3601").code == 2
