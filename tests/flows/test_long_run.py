"""What happens to a rollout over months: leaves that become due, other plans, changed text, an upgraded tool, and the end of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from flows import actions, report
from flows.conductor import PlainConductor
from flows.params import RollbackRequest, RunRequest, Target, Through
from flows.standing import standing
from steps import plan_loader, uninstall
from steps.errors import Refused, WrongUsage
from steps.phase import Phase
from steps.plan import Plan
from steps.rollout import Person, Rollout, opened
from steps.target import Target as Database
from tests.conftest import BY_COMMAND, SHIPPED, App

Rollouts = Callable[..., Rollout]
QUICK = (*BY_COMMAND, "cleanup.deploy=true", "cleanup.rollback_deploy=true", "cleanup.min_age_s=0", "cleanup.observe_s=0",
         "cleanup.cooling_s=0")
ACCEPTED = frozenset({"cleanup", "cleanup-unseen"})
LEDGER_V1 = Path(__file__).parents[1] / "fixtures" / "ledger_v1.sql"


def quick(*more: str) -> Plan:
    return plan_loader.load("ai_analysis_job", (*QUICK, *more))


def run(rollouts: Rollouts, plan: Plan, through: Through = Through.SHADOW_WRITE, accepted: frozenset[str] = ACCEPTED) -> actions.Result:
    request = RunRequest(plan=plan.id, by="tester", reason="because", database="command line", through=through)
    return actions.run(rollouts(plan=plan, accepted=accepted), request, PlainConductor())


def back(rollouts: Rollouts, plan: Plan, **what: object) -> actions.Result:
    request = RollbackRequest(plan=plan.id, by="tester", reason="because", database="command line", **what)  # type: ignore[arg-type]
    return actions.rollback(rollouts(plan=plan, accepted=ACCEPTED), request, PlainConductor())


def second_plan(folder: Path) -> Plan:
    """Another plan on the same table: one more column."""
    (folder / "010_add_note.up.sql").write_text("ALTER TABLE `AiAnalysisJob` ADD COLUMN `note` VARCHAR(20) NULL")
    (folder / "010_add_note.down.sql").write_text("ALTER TABLE `AiAnalysisJob` DROP COLUMN `note`")
    (folder / "plan.toml").write_text('[plan]\nid = "note"\ntable = "AiAnalysisJob"\n[[pre_deploy.step]]\nddl = "010_add_note"\n')
    return plan_loader.load(str(folder), BY_COMMAND)


@pytest.mark.parametrize("after", [Through.SHADOW_WRITE, Through.CLEANUP])
def test_a_leaf_becomes_due_on_a_later_run_also_after_cleanup(rollouts: Rollouts, seeded: App, after: Through) -> None:
    run(rollouts, quick(), after)
    seeded.run("CREATE TABLE AiUsageLog (id VARCHAR(191) PRIMARY KEY, jobId VARCHAR(191) NULL) COLLATE utf8mb4_unicode_ci")
    without = seeded.create_table("AiUsageLog")

    assert run(rollouts, quick(), after).outcome == "done"
    assert "FOREIGN KEY (`jobId`) REFERENCES `AiAnalysisJob` (`id`) ON DELETE SET NULL" in seeded.create_table("AiUsageLog")
    assert run(rollouts, quick(), after).outcome == "nothing to do"

    back(rollouts, quick(), to=Target.V0, drop_added=True)
    assert seeded.create_table("AiUsageLog") == without


def test_a_second_plan_is_refused_by_name_until_the_first_has_ended(rollouts: Rollouts, seeded: App, tmp_path: Path) -> None:
    other = second_plan(tmp_path)
    run(rollouts, quick())
    before = seeded.create_table()

    with pytest.raises(Refused, match="plan ai_analysis_job was begun on it and has not ended"):
        run(rollouts, other)
    assert seeded.create_table() == before

    run(rollouts, quick(), Through.CLEANUP)
    assert run(rollouts, other).did == ["pre_deploy", "deploy", "backfill", "verify", "shadow_write"]
    assert "`note`" in seeded.create_table()
    with pytest.raises(Refused, match="plan note was begun on it"):
        back(rollouts, quick(), phase=Through.CLEANUP)


def test_a_changed_plan_text_is_refused_naming_what_differs(rollouts: Rollouts, seeded: App, tmp_path: Path) -> None:
    folder = tmp_path / "ai_analysis_job"
    shutil.copytree(SHIPPED, folder)
    run(rollouts, plan_loader.load(str(folder), QUICK))
    before = seeded.create_table()
    up = folder / "020_add_identity_and_routing.up.sql"
    up.write_text(up.read_text().replace("VARCHAR(32)", "VARCHAR(40)", 1))

    with pytest.raises(WrongUsage, match="differs in sql from"):
        run(rollouts, plan_loader.load(str(folder), QUICK))

    assert seeded.create_table() == before


def test_an_operational_key_may_change_at_any_time(rollouts: Rollouts, seeded: App) -> None:
    run(rollouts, quick(), Through.DEPLOY)

    assert run(rollouts, quick("max_stall_ms=700", "backfill.first_chunk_rows=3")).did == ["backfill", "verify", "shadow_write"]


def test_a_ledger_of_the_previous_version_is_migrated_and_its_rollout_goes_on_to_cleanup(empty: Database) -> None:
    app = App(empty)
    for statement in LEDGER_V1.read_text().replace("{schema}", empty.schema).split("\n--;;"):
        if statement.strip():
            app.run(statement)
    plan = quick()
    request = RunRequest(plan=plan.id, by="newer tool", reason="upgrade", database="command line", through=Through.CLEANUP)

    with opened(plan, empty, Person("newer tool", "upgrade"), ACCEPTED) as rollout:
        result = actions.run(rollout, request, PlainConductor())
        assert rollout.ledger.phase_state(Phase.CLEANUP) == "done"

    assert result.did[-3:] == ["verify", "shadow_write", "cleanup"]
    assert app.value("SELECT schema_version FROM _rollout_meta") == 2
    assert "`status`" not in app.create_table()
    assert app.value("SELECT COUNT(DISTINCT run_id) FROM _rollout_event") == 2
    app.close()


def test_a_ledger_of_a_newer_version_is_refused(rollouts: Rollouts, seeded: App) -> None:
    run(rollouts, quick(), Through.DEPLOY)
    seeded.run("UPDATE _rollout_meta SET schema_version = 99")

    with pytest.raises(Refused, match="schema version 99"):
        run(rollouts, quick())

    assert rollouts().ledger.phase_state(Phase.BACKFILL) == "-"


def test_uninstall_refuses_while_anything_is_needed_and_leaves_nothing_at_the_end(rollouts: Rollouts, seeded: App) -> None:
    baseline = seeded.create_table()
    run(rollouts, quick())
    with pytest.raises(Refused, match="still stands"):
        uninstall.refuse_what_is_needed(rollouts(plan=quick()))
    back(rollouts, quick(), to=Target.V0)
    with pytest.raises(Refused, match="still has added columns"):
        uninstall.refuse_what_is_needed(rollouts(plan=quick()))
    back(rollouts, quick(), to=Target.V0, drop_added=True)

    uninstall.refuse_what_is_needed(rollouts(plan=quick()))
    assert uninstall.uninstall(rollouts(plan=quick())) == ["ledger rows of plan ai_analysis_job", "ledger tables"]

    assert seeded.create_table() == baseline
    assert seeded.rows("SHOW TABLES LIKE '\\_rollout%'") == []


def test_the_archive_is_kept_for_its_time_and_purged_when_that_is_over_or_accepted(rollouts: Rollouts, seeded: App) -> None:
    run(rollouts, quick(), Through.CLEANUP)

    with pytest.raises(Refused, match="archive_keep_s"):
        uninstall.refuse_what_is_needed(rollouts(plan=quick()))
    uninstall.refuse_what_is_needed(rollouts(plan=quick(), accepted=frozenset({"purge-archive"})))
    seeded.run("UPDATE _rollout_plan SET ended_at = ended_at - INTERVAL 31 DAY")
    with pytest.raises(Refused, match="archive_keep_s"):
        uninstall.refuse_what_is_needed(rollouts(plan=quick()))  # this machine's clock does not say so
    seeded.run("UPDATE _rollout_phase SET detail = JSON_REMOVE(detail, '$.by_tool_clock')")
    uninstall.refuse_what_is_needed(rollouts(plan=quick()))
    gone = uninstall.uninstall(rollouts(plan=quick()))

    assert gone[0].startswith("archive _rollout_archive_")
    assert seeded.rows("SHOW TABLES LIKE '\\_rollout%'") == []


def test_the_report_holds_planned_against_actual_seconds(rollouts: Rollouts, seeded: App) -> None:
    run(rollouts, quick())
    rollout = rollouts(plan=quick())

    rows = report.durations(report.audit_trail(rollout.ledger), rollout.plan.plan.planned_s)

    planned = {row["phase"]: row["planned_s"] for row in rows}
    assert planned == {"pre_deploy": 1, "deploy": None, "backfill": 1, "verify": 300, "shadow_write": None}
    assert all(row["actual_s"] >= 0 for row in rows)


def test_status_tells_what_the_frozen_contract_does_not_know(rollouts: Rollouts, seeded: App) -> None:
    run(rollouts, quick())
    assert standing(rollouts(plan=quick()))["contract"] == []
    seeded.run("ALTER TABLE AiAnalysisJob ADD COLUMN stray INT NULL")

    told = standing(rollouts(plan=quick()))

    assert any("stray" in line for line in told["contract"])
    assert told["strangers"] == ["columns: stray"]


def test_a_rename_in_place_is_refused_while_clients_name_the_old_column(rollouts: Rollouts, seeded: App) -> None:
    seeded.rows("SELECT id, completedAt, errorMessage FROM AiAnalysisJob")
    before = seeded.create_table()

    with pytest.raises(Refused, match="accept rename-in-place"):
        run(rollouts, quick("path=adr"), accepted=frozenset())

    assert seeded.create_table() == before
    assert run(rollouts, quick("path=adr"), accepted=frozenset({"rename-in-place"})).outcome == "done"
