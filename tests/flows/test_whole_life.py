"""Cleanup and its way back at every point, and the ADR's own order, on a real server."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from flows import actions
from flows.conductor import PlainConductor
from flows.params import RollbackRequest, RunRequest, Target, Through
from steps import cleanup, plan_loader
from steps.errors import RolledBack, Stopped, WaitingForPerson
from steps.phase import Phase
from steps.plan import Plan
from steps.rollout import Rollout
from tests.conftest import BY_COMMAND, STATUSES, App

QUICK = (*BY_COMMAND, "cleanup.deploy=true", "cleanup.rollback_deploy=true", "cleanup.min_age_s=0", "cleanup.observe_s=0",
         "cleanup.cooling_s=0")
ACCEPTED = frozenset({"cleanup", "cleanup-unseen", "rename-in-place"})
Rollouts = Callable[..., Rollout]


def quick(*more: str) -> Plan:
    return plan_loader.load("ai_analysis_job", (*QUICK, *more))


def run(rollouts: Rollouts, plan: Plan, through: Through = Through.CLEANUP) -> actions.Result:
    request = RunRequest(plan="ai_analysis_job", by="tester", reason="because", database="command line", through=through)
    return actions.run(rollouts(plan=plan, accepted=ACCEPTED), request, PlainConductor())


def back(rollouts: Rollouts, plan: Plan, accepted: frozenset[str] = ACCEPTED, **what: object) -> actions.Result:
    request = RollbackRequest(plan="ai_analysis_job", by="tester", reason="because", database="command line", **what)  # type: ignore[arg-type]
    return actions.rollback(rollouts(plan=plan, accepted=accepted), request, PlainConductor())


def jobs(app: App) -> list[tuple[object, ...]]:
    return app.rows("SELECT id, status, sessionId, answerId, completedAt, errorMessage FROM AiAnalysisJob ORDER BY id")


def test_both_paths_end_in_the_same_table_after_cleanup(rollouts: Rollouts, seeded: App) -> None:
    run(rollouts, quick())
    default_path = seeded.create_table()
    back(rollouts, quick(), to=Target.V0, drop_added=True)

    adr = quick("path=adr")
    run(rollouts, adr)

    assert seeded.create_table() == default_path
    for gone in ("`status`", "`sessionId`", "`answerId`", "`completedAt`", "`errorMessage`", "_gone_"):
        assert gone not in default_path
    assert seeded.triggers() == []


@pytest.mark.parametrize("path", ["zero_downtime", "adr"])
def test_from_after_the_drop_back_to_the_baseline_with_every_value(rollouts: Rollouts, seeded: App, path: str) -> None:
    seeded.run("UPDATE AiAnalysisJob SET sessionId = CONCAT('s', id), answerId = 'a' WHERE id < 'c000005'")
    before, baseline = jobs(seeded), seeded.create_table()
    plan = quick(f"path={path}")
    run(rollouts, plan)
    assert "status" not in seeded.create_table()

    back(rollouts, plan, to=Target.V0, drop_added=True)

    assert seeded.create_table() == baseline
    assert jobs(seeded) == before


def test_every_statement_that_changes_rows_is_on_record_without_a_key_of_theirs(rollouts: Rollouts, seeded: App) -> None:
    run(rollouts, quick())
    back(rollouts, quick(), to=Target.V0)

    said = {str(step): str(statement) for step, statement in seeded.rows(
        "SELECT step, statement FROM _rollout_event WHERE step LIKE 'pace of pass %' OR step LIKE '%archive%'")}
    table, some = f"`{seeded.value('SELECT DATABASE()')}`.`AiAnalysisJob`", "(/* the keys of a chunk */)"
    assert {"archive table", "archive", "restore from the archive"} <= set(said)
    assert said["archive table"].startswith("CREATE TABLE IF NOT EXISTS ")
    assert (said["archive"].startswith("INSERT INTO "), said["archive"].endswith(f" FROM {table} WHERE (`id`) IN {some}")) == (True, True)
    assert said["restore from the archive"].startswith(f"UPDATE {table} AS t JOIN ")
    passes = [statement for step, statement in said.items() if step.startswith("pace of pass ")]
    assert passes
    for statement in passes:
        assert (statement.startswith(f"UPDATE {table} SET "), statement.endswith(f" WHERE (`id`) IN {some}")) == (True, True)
    assert not [statement for statement in said.values() if "c00000" in statement]


def test_what_v2_wrote_is_what_v0_sees_after_the_way_back(rollouts: Rollouts, seeded: App) -> None:
    plan = quick()
    run(rollouts, plan)
    seeded.run("UPDATE AiAnalysisJob SET lifecycleStatus = 'succeeded', finishedAt = '2026-03-03 03:03:03.003' WHERE id = 'c000000'")
    seeded.run("UPDATE AiAnalysisJob SET lifecycleStatus = 'locked' WHERE id = 'c000001'")
    seeded.run("INSERT INTO AiAnalysisJob (id, userId, jobType, lifecycleStatus, updatedAt) VALUES "
               "('v2a', 'u1', 'x', 'cancelled', NOW(3)), ('v2b', 'u1', 'x', 'running', NOW(3))")

    back(rollouts, plan, phase=Through.CLEANUP)

    rows = dict(seeded.rows("SELECT id, CONCAT(status, '/', lifecycleStatus) FROM AiAnalysisJob"))
    assert rows["c000000"] == "completed/succeeded"
    assert rows["c000001"] == "processing/locked"  # no mapping decides: the archived value, which agrees
    assert rows["v2a"] == "failed/cancelled"
    assert rows["v2b"] == "processing/running"
    assert str(seeded.value("SELECT completedAt FROM AiAnalysisJob WHERE id = 'c000000'")) == "2026-03-03 03:03:03.003000"
    assert seeded.triggers() == ["rollout_ai_analysis_job_bi", "rollout_ai_analysis_job_bu"]


def test_a_drop_that_is_not_due_ends_well_and_comes_later(rollouts: Rollouts, seeded: App) -> None:
    waiting = quick("cleanup.cooling_s=3600")

    assert run(rollouts, waiting).outcome == "done"
    assert rollouts().ledger.phase_state(Phase.CLEANUP) == "cooling"
    assert "`_gone_status`" in seeded.create_table()
    assert seeded.triggers() == []
    seeded.run("INSERT INTO AiAnalysisJob (id, userId, jobType, lifecycleStatus, updatedAt) VALUES ('v2', 'u1', 'x', 'failed', NOW(3))")

    back(rollouts, waiting, phase=Through.CLEANUP)

    assert "_gone_" not in seeded.create_table()
    assert seeded.value("SELECT status FROM AiAnalysisJob WHERE id = 'v2'") == "failed"


def archived(app: App) -> str:
    """The archive's name; killed just before the drop, it is there and full."""
    return str(app.value("SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name LIKE "
                         "'_rollout_archive_%'"))


@pytest.fixture
def before_the_drop(rollouts: Rollouts, seeded: App) -> App:
    """Nine rows with every old value, archived; the drop did not come."""
    seeded.run("UPDATE AiAnalysisJob SET sessionId = CONCAT('s', id), answerId = 'a'")
    seeded.run("ALTER TABLE AiAnalysisJob MODIFY answerId VARCHAR(191) NULL COMMENT 'it''s set ON UPDATE CURRENT_TIMESTAMP, INVISIBLE'")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(cleanup, "_drop", killed)
        with pytest.raises(Stopped, match="killed"):
            run(rollouts, quick())
    assert seeded.value(f"SELECT COUNT(*) FROM {archived(seeded)} WHERE sessionId = CONCAT('s', id)") == 9
    return seeded


def killed(_: Rollout) -> None:
    raise Stopped("tool", "killed")


def test_an_archive_that_somebody_took_away_is_filled_anew_before_anything_is_dropped(rollouts: Rollouts, before_the_drop: App) -> None:
    before_the_drop.run(f"DROP TABLE {archived(before_the_drop)}")

    run(rollouts, quick())

    assert "_gone_" not in before_the_drop.create_table()
    assert before_the_drop.value(f"SELECT COUNT(*) FROM {archived(before_the_drop)} WHERE sessionId = CONCAT('s', id)") == 9


def test_a_row_that_the_archive_lacks_stops_the_drop_unless_it_was_born_since(rollouts: Rollouts, before_the_drop: App) -> None:
    before_the_drop.run("UPDATE _rollout_pass SET finished_at = NULL, `cursor` = %s WHERE pass = 'archive'",
                        json.dumps([{"s": "c000008"}]))  # killed before it was compared
    before_the_drop.run("INSERT INTO AiAnalysisJob (id, userId, jobType, updatedAt) VALUES ('a0', 'u1', 'x', NOW(3))")
    before_the_drop.run(f"DELETE FROM {archived(before_the_drop)} WHERE id = 'c000003'")

    with pytest.raises(Stopped, match="1 rows differ from the table") as unequal:
        run(rollouts, quick())

    assert "_gone_status" in before_the_drop.create_table()
    before_the_drop.run(unequal.value.remedy.partition("; ")[2].partition(",")[0])  # as it says
    run(rollouts, quick())
    assert "_gone_" not in before_the_drop.create_table()
    assert before_the_drop.value(f"SELECT COUNT(*) FROM {archived(before_the_drop)} WHERE sessionId = CONCAT('s', id)") == 9


def test_a_row_that_v2_replaced_since_it_was_archived_is_archived_as_it_is_now(rollouts: Rollouts, before_the_drop: App) -> None:
    before_the_drop.run("UPDATE _rollout_pass SET finished_at = NULL, `cursor` = %s WHERE pass = 'archive'",
                        json.dumps([{"s": "zzz"}]))  # copied, and killed before it was compared
    before_the_drop.run("REPLACE INTO AiAnalysisJob (id, userId, jobType, updatedAt) VALUES ('c000003', 'u1', 'x', NOW(3))")
    before_the_drop.run(f"UPDATE {archived(before_the_drop)} SET sessionId = 'tampered' WHERE id = 'c000004'")

    with pytest.raises(Stopped, match="1 rows differ from the table"):  # the one that nobody bore again
        run(rollouts, quick())
    before_the_drop.run(f"UPDATE {archived(before_the_drop)} SET sessionId = CONCAT('s', id) WHERE id = 'c000004'")
    run(rollouts, quick())

    assert "_gone_" not in before_the_drop.create_table()
    kept = dict(before_the_drop.rows(f"SELECT id, sessionId FROM {archived(before_the_drop)}"))
    assert (kept.pop("c000003"), len(kept), {*kept.values()}) == (None, 8, {f"s{job}" for job in kept})


def test_cleanup_waits_for_its_confirmation_and_for_verify_to_be_old_enough(rollouts: Rollouts, seeded: App) -> None:
    run(rollouts, quick(), Through.SHADOW_WRITE)
    before = seeded.create_table()
    request = RunRequest(plan="ai_analysis_job", by="tester", reason="because", database="command line", through=Through.CLEANUP)

    with pytest.raises(WaitingForPerson, match="--accept cleanup"):
        actions.run(rollouts(plan=quick()), request, PlainConductor())
    with pytest.raises(Stopped, match="min_age_s"):
        run(rollouts, quick("cleanup.min_age_s=3600"))

    assert seeded.create_table() == before


def test_a_trigger_on_an_old_column_stops_cleanup_and_nothing_before_it(rollouts: Rollouts, seeded: App) -> None:
    seeded.run("CREATE TABLE lg (id VARCHAR(191), s VARCHAR(40))")
    seeded.run("CREATE TRIGGER tg AFTER UPDATE ON AiAnalysisJob FOR EACH ROW INSERT INTO lg VALUES (NEW.id, NEW.status)")
    run(rollouts, quick(), Through.SHADOW_WRITE)
    before, triggers = seeded.create_table(), sorted(seeded.triggers())

    with pytest.raises(Stopped, match=r"before cleanup: trigger tg names status.*nothing was taken away") as raised:
        run(rollouts, quick())

    assert raised.value.exit_code == 4
    assert (seeded.create_table(), sorted(seeded.triggers())) == (before, triggers)
    assert "tg" in triggers
    seeded.run("DROP TRIGGER tg")
    assert run(rollouts, quick()).outcome == "done"
    assert "`status`" not in seeded.create_table()


def test_the_adr_path_reconciles_what_each_generation_wrote_alone(rollouts: Rollouts, seeded: App) -> None:
    adr = quick("path=adr")
    run(rollouts, adr, Through.BACKFILL)
    seeded.run("UPDATE AiAnalysisJob SET lifecycleStatus = 'running', updatedAt = NOW(3) WHERE id = 'c000000'")  # V1 alone
    for number, status in enumerate(STATUSES):  # V0 alone
        seeded.run("INSERT INTO AiAnalysisJob (id, userId, jobType, status, updatedAt) VALUES (%s, 'u1', 'x', %s, NOW(3))",
                   f"late{number:06}", status)

    run(rollouts, adr, Through.SHADOW_WRITE)

    pairs = dict(seeded.rows("SELECT id, CONCAT(status, '/', lifecycleStatus) FROM AiAnalysisJob WHERE id LIKE 'late%' OR id = 'c000000'"))
    assert pairs == {
        "c000000": "processing/running", "late000000": "pending/pending", "late000001": "processing/running",
        "late000002": "completed/succeeded", "late000003": "failed/failed"}
    assert seeded.triggers() == ["rollout_ai_analysis_job_bi", "rollout_ai_analysis_job_bu"]


def test_what_v1_wrote_on_the_adr_path_before_the_backfill_is_expected_to_differ(rollouts: Rollouts, seeded: App) -> None:
    adr = quick("path=adr")
    run(rollouts, adr, Through.DEPLOY)
    seeded.run("UPDATE AiAnalysisJob SET lifecycleStatus = 'running', updatedAt = NOW(3) WHERE id = 'c000000'")  # V1 alone

    assert run(rollouts, adr, Through.VERIFY).outcome == "done"
    assert rollouts(adr).ledger.phases()[Phase.VERIFY]["detail"]["expected to differ"] == 1
    run(rollouts, adr, Through.SHADOW_WRITE)
    assert seeded.rows("SELECT status, lifecycleStatus FROM AiAnalysisJob WHERE id = 'c000000'") == [("processing", "running")]


def test_a_job_without_its_user_that_the_server_takes_beside_the_unique_index_fails_verify(rollouts: Rollouts, seeded: App) -> None:
    run(rollouts, quick(), Through.BACKFILL)
    seeded.run("INSERT INTO AiAnalysisJob (id, userId, jobType, status, updatedAt) VALUES ('orphan', 'nobody', 'x', 'pending', NOW(3))")

    with pytest.raises(RolledBack, match="035_users_exist"):
        run(rollouts, quick(), Through.VERIFY)


def test_a_row_that_both_moved_stops_the_adr_path_until_the_plan_decides(rollouts: Rollouts, seeded: App) -> None:
    run(rollouts, quick("path=adr"), Through.VERIFY)
    seeded.run("UPDATE AiAnalysisJob SET status = 'completed', lifecycleStatus = 'failed', updatedAt = NOW(3) WHERE id = 'c000000'")

    with pytest.raises(Stopped, match="c000000"):
        run(rollouts, quick("path=adr"), Through.SHADOW_WRITE)
    run(rollouts, quick("path=adr", "reconcile.conflict=new"), Through.SHADOW_WRITE)

    assert seeded.value("SELECT status FROM AiAnalysisJob WHERE id = 'c000000'") == "failed"


def test_the_adr_path_goes_back_phase_by_phase_with_both_renames_reversed(rollouts: Rollouts, seeded: App) -> None:
    adr, before = quick("path=adr"), jobs(seeded)
    run(rollouts, adr, Through.SHADOW_WRITE)
    assert "`finishedAt`" in seeded.create_table()
    assert "`completedAt`" not in seeded.create_table()

    for phase in ("shadow_write", "verify", "backfill", "deploy", "pre_deploy"):
        assert back(rollouts, adr, phase=Through(phase)).did == [phase]

    assert jobs(seeded) == before
    assert seeded.triggers() == []
    assert "`completedAt`" in seeded.create_table()
    assert run(rollouts, adr, Through.SHADOW_WRITE).outcome == "done"
