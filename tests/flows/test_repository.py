"""What the report tells an engineer to do in the application's repository, done, and held against the live table (cases C89, C90)."""

from __future__ import annotations

import pymysql
import pytest

from flows.params import Target, Through
from steps import handover
from steps.phase import Phase
from steps.target import Target as Database
from tests.cli.calling import standing
from tests.conftest import App
from tests.flows.repository_stage import RECORD, Engineer, Rollouts, built, script

PATHS = pytest.mark.parametrize("path", ["zero_downtime", "adr"])


@PATHS
def test_the_repositorys_migrations_make_the_live_table_after_every_phase_and_every_way_back(
        rollouts: Rollouts, seeded: App, database: Database, path: str) -> None:
    seeded.run(RECORD)
    baseline = seeded.create_table()
    engineer = Engineer(rollouts, seeded, (f"path={path}",))
    steps = [lambda: engineer.runs(Through.PRE_DEPLOY), lambda: engineer.runs(Through.SHADOW_WRITE),
             lambda: engineer.runs(Through.CLEANUP), lambda: engineer.goes_back(phase=Phase.CLEANUP),
             lambda: engineer.goes_back(to=Target.V0), lambda: engineer.goes_back(to=Target.V0, drop_added=True)]

    for step in steps:
        step()
        engineer.follows()
        with built(database, engineer.folders) as fresh:
            assert fresh.create_table() == seeded.create_table()

    assert seeded.create_table() == baseline
    labels = [name.partition("ai_analysis_job_")[2] for name in sorted(engineer.folders)]
    assert labels == ["expand", "cleanup", "cleanup_back", "expand_back", *(["expand_back"] if path == "adr" else [])]
    assert {migration["recorded"] for migration in engineer.reads()["migrations"]} == {True}


def test_after_pre_deploy_the_report_gives_model_migration_and_what_marks_it(rollouts: Rollouts, seeded: App) -> None:
    engineer = Engineer(rollouts, seeded)
    engineer.runs(Through.SHADOW_WRITE)

    found = engineer.reads()

    [migration] = found["migrations"]
    assert migration["file"] == f"prisma/migrations/{migration['name']}/migration.sql"
    assert migration["sql"].count("ALTER TABLE") == 11
    assert "SET foreign_key_checks = 0;" in migration["sql"]
    assert '+  lifecycleStatus String @default("pending") @db.VarChar(32)' in found["schema_diff"]
    assert "-  jobType String @db.VarChar(32)" in found["schema_diff"]
    assert "+  completedAt DateTime? @ignore @db.DateTime(3)" in found["schema_diff"]
    assert '+  @@map("AiAnalysisJob")' in found["schema_diff"]
    said = " ".join(found["do"] + found["know"])
    for word in (f"npx prisma migrate resolve --applied {migration['name']}", "P3018", "P3009", "triggers are in no migration",
                 "synchronize", "1615", "field status is String?"):
        assert word in said


def test_cleanup_that_is_not_over_asks_for_no_migration_and_keeps_the_columns_in_the_model(rollouts: Rollouts, seeded: App) -> None:
    engineer = Engineer(rollouts, seeded, ("cleanup.cooling_s=3600",))
    engineer.runs(Through.CLEANUP)

    found = engineer.reads()

    assert [migration["ended"] for migration in found["migrations"]] == [True, False]
    assert any(line.startswith("nothing for cleanup yet") for line in found["do"])
    for column in ("status", "sessionId", "answerId", "completedAt", "errorMessage"):
        assert any(line.split()[:1] == [column] and "@ignore" in line for line in found["schema"].splitlines())


def test_after_cleanup_the_fields_to_drop_are_named(rollouts: Rollouts, seeded: App) -> None:
    engineer = Engineer(rollouts, seeded)
    engineer.runs(Through.CLEANUP)

    found = engineer.reads()

    assert any(line.startswith("drop status, sessionId, answerId, completedAt, errorMessage from schema.prisma") for line in found["do"])
    assert "@ignore" not in found["schema"]
    assert '-  status String @ignore @default("pending") @db.VarChar(32)' in found["schema_diff"]


@PATHS
def test_what_prisma_never_had_on_record_needs_no_folder_after_the_way_back(rollouts: Rollouts, seeded: App, path: str) -> None:
    seeded.run(RECORD)
    engineer = Engineer(rollouts, seeded, (f"path={path}",))
    engineer.runs(Through.PRE_DEPLOY)
    [migration] = engineer.reads()["migrations"]
    engineer.goes_back(to=Target.V0)
    engineer.goes_back(to=Target.V0, drop_added=True)

    found = engineer.reads()

    assert found["migrations"] == []
    assert any(migration["name"] in line and "delete such folders" in line for line in found["do"])


def test_added_columns_that_stay_are_no_reason_for_a_migration(rollouts: Rollouts, seeded: App, database: Database) -> None:
    engineer = Engineer(rollouts, seeded)
    engineer.runs(Through.PRE_DEPLOY)
    engineer.goes_back(to=Target.V0)

    found = engineer.reads()

    [migration] = found["migrations"]
    with built(database, {migration["name"]: migration["sql"]}) as fresh:
        assert fresh.create_table() == seeded.create_table()
    assert any(line.startswith("keep V0's model in schema.prisma") for line in found["do"])
    assert migration["ended"]
    assert not any(line.startswith("nothing for pre_deploy yet") for line in found["do"])
    seeded.run(RECORD)
    engineer.follows()
    assert f"keep prisma/migrations/{migration['name']} as it is: Prisma has it on record as applied" in engineer.reads()["do"]


def test_a_folder_that_came_from_another_database_is_the_one_to_mark(rollouts: Rollouts, seeded: App) -> None:
    seeded.run(RECORD)
    engineer = Engineer(rollouts, seeded)
    engineer.runs(Through.PRE_DEPLOY)
    [migration] = engineer.reads()["migrations"]
    assert any("…_ai_analysis_job_expand already, keep that one and mark its name" in line for line in engineer.reads()["do"])

    engineer.follows()
    seeded.run("UPDATE _prisma_migrations SET migration_name = '20200101000000_ai_analysis_job_expand'")

    [told] = engineer.reads()["migrations"]
    assert (told["name"], told["recorded"], told["sql"]) == ("20200101000000_ai_analysis_job_expand", True, migration["sql"])


def test_history_of_a_database_that_only_gets_the_migration_is_filled_by_the_statement_that_is_told(
        rollouts: Rollouts, seeded: App, database: Database) -> None:
    engineer = Engineer(rollouts, seeded)
    engineer.runs(Through.PRE_DEPLOY)
    found = engineer.reads()
    [told] = [line for line in found["know"] if "history is not filled" in line]
    sides = ("SELECT id, status, lifecycleStatus, completedAt <=> finishedAt, errorMessage <=> internalErrorMessage FROM AiAnalysisJob "
             "ORDER BY id")
    [migration] = found["migrations"]

    with built(database, {}) as fresh:
        name = fresh.value("SELECT DATABASE()")
        fresh.run(f"INSERT INTO `User` SELECT * FROM `{database.schema}`.`User`")
        columns = ", ".join(f"`{column}`" for (column,) in fresh.rows(
            f"SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = '{name}' AND TABLE_NAME = 'AiAnalysisJob'"))
        fresh.run(f"INSERT INTO AiAnalysisJob ({columns}) SELECT {columns} FROM `{database.schema}`.AiAnalysisJob")
        script(fresh, migration["sql"])
        assert fresh.rows(sides) != seeded.rows(sides)
        fresh.run(told.partition("once, ")[2].rstrip(";").replace("%", "%%"))
        assert fresh.rows(sides) == seeded.rows(sides)


def test_after_cleanups_way_back_the_model_goes_from_v2_to_v1(rollouts: Rollouts, seeded: App) -> None:
    engineer = Engineer(rollouts, seeded)
    engineer.runs(Through.CLEANUP)
    engineer.goes_back(phase=Phase.CLEANUP)

    diff = engineer.reads()["schema_diff"]

    assert "AiAnalysisJob {" not in diff
    assert any(line.split()[:2] == ["+", "status"] or line.startswith("+  status ") for line in diff.splitlines())


def test_a_migration_that_is_not_marked_fails_where_it_ran_already(rollouts: Rollouts, seeded: App) -> None:
    engineer = Engineer(rollouts, seeded)
    engineer.runs(Through.PRE_DEPLOY)
    live = seeded.create_table()
    [migration] = engineer.reads()["migrations"]

    with pytest.raises(pymysql.err.OperationalError) as failed:
        script(seeded, migration["sql"])

    assert failed.value.args[0] == 1060  # duplicate column
    assert seeded.create_table() == live


def test_statements_that_a_killed_run_could_not_record_are_told_from_the_catalogue(rollouts: Rollouts, seeded: App) -> None:
    engineer = Engineer(rollouts, seeded)
    engineer.runs(Through.PRE_DEPLOY)
    [whole] = engineer.reads()["migrations"]

    for lost in ("IN ('020_add_identity_and_routing', '030_add_lifecycle')", "= '090_index_lifecycle_status'", "LIKE '0%%'"):
        seeded.run(f"DELETE FROM _rollout_event WHERE step {lost}".replace("%%", "%"))
        [told] = engineer.reads()["migrations"]
        assert told["sql"] == whole["sql"]


def test_a_step_that_a_tool_carried_out_is_told_as_the_alter_it_comes_to(rollouts: Rollouts, seeded: App, database: Database) -> None:
    """The audit trail has the tool's call (steps/handover.py), which no migration can hold; the record is made so here."""
    engineer = Engineer(rollouts, seeded)
    engineer.runs(Through.PRE_DEPLOY)
    seeded.run("UPDATE _rollout_event SET statement = 'pt-online-schema-change --alter x', detail = JSON_SET(detail, '$.algorithm', %s) "
               "WHERE step = '010_widen_job_type' AND statement IS NOT NULL", handover.ALGORITHM)

    [migration] = engineer.reads()["migrations"]

    assert "pt-online-schema-change" not in migration["sql"]
    with built(database, {migration["name"]: migration["sql"]}) as fresh:
        assert fresh.create_table() == seeded.create_table()


def test_a_leaf_on_another_table_is_a_migration_of_its_own(rollouts: Rollouts, seeded: App, database: Database) -> None:
    seeded.run(RECORD)
    engineer = Engineer(rollouts, seeded)
    engineer.runs(Through.PRE_DEPLOY)
    engineer.follows()
    child = ("CREATE TABLE `AiJobSnapshot` (`id` VARCHAR(191) PRIMARY KEY, `jobId` VARCHAR(191) NOT NULL) "
             "DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci")
    seeded.run(child)
    engineer.runs(Through.PRE_DEPLOY)
    engineer.follows()

    assert [name.rpartition("_")[2] for name in sorted(engineer.folders)] == ["expand", "leaves"]
    with built(database, engineer.folders, (child,)) as fresh:
        assert fresh.create_table("AiJobSnapshot") == seeded.create_table("AiJobSnapshot")

    engineer.goes_back(to=Target.V0, drop_added=True)
    engineer.follows()
    with built(database, engineer.folders, (child,)) as fresh:
        assert (fresh.create_table("AiJobSnapshot"), fresh.create_table()) == (seeded.create_table("AiJobSnapshot"), seeded.create_table())


def test_looking_writes_nothing_and_a_drifted_table_is_said_to_be_one(rollouts: Rollouts, seeded: App) -> None:
    seeded.run(RECORD)
    engineer = Engineer(rollouts, seeded)
    engineer.runs(Through.PRE_DEPLOY)
    before = standing(seeded)
    engineer.reads()
    assert standing(seeded) == before

    seeded.run("ALTER TABLE AiAnalysisJob DROP COLUMN lockedBy")

    [line] = engineer.reads()["do"]
    assert "stands on no stair" in line
    assert "lockedBy" in line
