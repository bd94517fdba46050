"""`backfill`: what a person may ask of a pass, and where it is told."""

from __future__ import annotations

import pytest

from steps.ownership import lock_name
from tests.cli.calling import PLAN, Call
from tests.conftest import App


def test_what_was_never_begun_cannot_be_steered(here: Call, seeded: App) -> None:
    answer = here("backfill", PLAN, "pause")

    assert answer.code == 3
    assert "was never begun on this table" in answer.text
    assert [row[0] for row in seeded.rows("SHOW TABLES LIKE '\\_rollout%%'")] == []


@pytest.mark.parametrize("words", [("limit",), ("pause", "5"), ("limit", "-1"), ("limit", "9" * 20), ("faster",)])
def test_words_that_do_not_fit_are_wrong_usage(here: Call, begun: App, words: tuple[str, ...]) -> None:
    assert here("backfill", PLAN, *words).code == 2
    assert begun.value("SELECT COUNT(*) FROM _rollout_control") == 0


def test_wishes_are_recorded_with_who_and_why_and_shown(here: Call, begun: App) -> None:
    assert here("backfill", PLAN, "limit", "500", "--by", "ann", "--reason", "busy hour").code == 0
    paused = here("backfill", PLAN, "pause", "--by", "bob", "--reason", "lunch", "--json")
    assert (paused.code, paused.document["wanted"], paused.document["rows_per_s"]) == (0, "pause", 500)
    assert here("backfill", PLAN, "limit", "400", "--by", "carol", "--reason", "slower").code == 0
    assert begun.rows("SELECT wanted, rows_per_s, actor, reason FROM _rollout_control") == [("pause", 400, "bob", "lunch")]
    report = here("report", PLAN).text
    for said in ("asked to limit", "by = ann; why = busy hour; rows per s = 500", "asked to pause", "by = bob; why = lunch"):
        assert said in report

    assert here("backfill", PLAN, "resume").code == 0
    assert here("backfill", PLAN, "limit", "0").code == 0
    assert begun.rows("SELECT wanted, rows_per_s FROM _rollout_control") == [("run", None)]
    planned = here("backfill", PLAN, "resume", "--set", "backfill.rows_per_s=7", "--json")
    assert (planned.code, planned.document["rows_per_s"]) == (0, 7)


def test_a_stop_needs_somebody_who_works(here: Call, begun: App) -> None:
    answer = here("backfill", PLAN, "stop")

    assert answer.code == 3
    assert "nobody works on it" in answer.text


def somebody_works(begun: App) -> None:
    begun.run("SELECT GET_LOCK(%s, 0)", lock_name(begun.value("SELECT DATABASE()"), "AiAnalysisJob"))
    begun.run("INSERT INTO _rollout_owner VALUES (DATABASE(), 'AiAnalysisJob', 'token', %s, 'bob', 'here', 1, CONNECTION_ID(), "
              "UTC_TIMESTAMP(3), UTC_TIMESTAMP(3))", PLAN)


def test_status_tells_of_each_pass(here: Call, begun: App) -> None:
    begun.run("UPDATE _rollout_pass SET finished_at = NULL, rows_examined = 6, rows_changed = 5 WHERE `pass` = 'first'")
    begun.run("INSERT INTO _rollout_pace VALUES (DATABASE(), 'AiAnalysisJob', %s, 'first', 1000, 0, 306, 2.5, 'paused: bob: lunch', "
              "UTC_TIMESTAMP(3)) ON DUPLICATE KEY UPDATE rows_estimated = 306, rows_per_s = 2.5, paused_for = 'paused: bob: lunch'", PLAN)
    begun.run("INSERT INTO _rollout_quarantine (table_schema, table_name, plan_id, `pass`, `key`, error, at) VALUES (DATABASE(), "
              "'AiAnalysisJob', %s, 'first', '[{\"s\": \"c7\"}]', 'sealed', UTC_TIMESTAMP(3))", PLAN)

    nobody = "pass first: 6 rows seen, 5 filled, about 300 left; the server refused 1 rows: c7 (sealed)"
    assert nobody in here("status", PLAN).text
    somebody_works(begun)
    told = "pass first: 6 rows seen, 5 filled, about 300 left; paused: bob: lunch; the server refused 1 rows: c7 (sealed)"
    assert told in here("status", PLAN).text
    [row] = here("status", PLAN, "--json").document["passes"]
    assert (row["rows_left"], row["eta_s"], row["paused_for"], row["refused"]) == (
        300, 120, "paused: bob: lunch", [{"key": "c7", "error": "sealed"}])

    begun.run("UPDATE _rollout_pace SET paused_for = NULL")
    assert "about 300 left, 2 rows/s, 2 min to go" in here("status", PLAN).text


def test_the_audit_trail_tells_rate_and_chunk_times(here: Call, begun: App) -> None:
    text = here("report", PLAN).text
    assert "pace of pass first: done" in text
    assert "chunk times = up to" in text
