"""The rehearsal proves every step up and down on a clone, and leaves no trace (design section 2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from steps import scratch
from steps.catalogue import create_statement
from steps.errors import CanaryFailed, Refused
from steps.mysql import VALUE, Session, quote
from steps.plan import Plan
from steps.rehearsal import Rehearsed, rehearse
from steps.rollout import Rollout
from steps.scratch import scratch_name
from steps.target import Target
from tests.conftest import App
from tests.mysql.conftest import Clients, Opened, expand, go_back
from tests.plans import ADD_STATE, Ddl, Renamed, small

INDEX = Ddl("090_index", "ADD INDEX `by_state` (`state`)", "DROP INDEX `by_state`", late=True)
SEVERAL = [ADD_STATE, Renamed("doneAt", "finishedAt"), INDEX]
OWNER = "ADD COLUMN userId INT NULL, ADD CONSTRAINT job_userId_fkey FOREIGN KEY (userId) REFERENCES user (id)"
BETTER = Ddl("020_better", "ADD INDEX `by_user_and_status` (`userId`, `status`)", "DROP INDEX `by_user_and_status`")


def rehearsed(session: Session, target: Target, plan: Plan) -> Rehearsed:
    return rehearse(session, target, plan)


def schemas(session: Session, target: Target) -> list[str]:
    """Scratch schemas of this test's table."""
    return [str(name) for (name,) in session.query(f"SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = {VALUE}",
                                                   scratch_name(target, "job"))]


def test_every_step_is_known_with_its_best_way_and_no_trace_is_left(session: Session, empty: Target, job: App, tmp_path: Path) -> None:
    job.run("CREATE TABLE user (id INT PRIMARY KEY)")
    steps = [Ddl("005_widen", "MODIFY COLUMN `status` VARCHAR(64) NOT NULL DEFAULT 'pending'",
                 "MODIFY COLUMN `status` VARCHAR(32) NOT NULL DEFAULT 'pending'"), *SEVERAL[:2],
             Ddl("030_owner", "ADD COLUMN `userId` INT NULL, ADD INDEX `u` (`userId`)", "DROP INDEX `u`, DROP COLUMN `userId`"),
             Ddl("040_parent", "ADD COLUMN `parent` VARCHAR(191) NULL", "DROP COLUMN `parent`"),
             Ddl("050_parent_index", "ADD INDEX `p` (`parent`)", "DROP INDEX `p`"),
             Ddl("060_parent_fk", "ADD CONSTRAINT `fk` FOREIGN KEY (`parent`) REFERENCES `job` (`id`)", "DROP FOREIGN KEY `fk`"), INDEX]
    before = job.create_table("job")

    found = rehearsed(session, empty, small(tmp_path, steps=steps))

    ways = {stair.name: (stair.up.algorithm, stair.up.fk_checks_off, stair.down.algorithm) for stair in found.ladder.stairs}
    assert {name: way for name, way in ways.items() if not name.startswith(("030", "cleanup"))} == {
        "005_widen": ("COPY", False, "COPY"), "010_add_state": ("INSTANT", False, "INSTANT"),
        "rename_doneAt_to_finishedAt": ("INSTANT", False, "INSTANT"), "040_parent": ("INSTANT", False, "INSTANT"),
        "050_parent_index": ("INPLACE", False, "INPLACE"), "060_parent_fk": ("INPLACE", True, "INPLACE"),
        "090_index": ("INPLACE", False, "INPLACE")}
    assert ways["030_owner"][1:] == (False, "INPLACE")
    assert (found.baseline_sql, job.create_table("job")) == (before, before)
    assert found.notes[0].startswith("canary wrote")
    assert schemas(session, empty) == []


def test_a_rename_keeps_the_columns_definition_and_stands_beside_it(session: Session, empty: Target, job: App, tmp_path: Path) -> None:
    job.run("ALTER TABLE job MODIFY note VARCHAR(99) CHARACTER SET latin1 COLLATE latin1_bin NULL DEFAULT 'it''s' COMMENT 'why'")
    found = rehearsed(session, empty, small(tmp_path, steps=[Renamed("note", "internalNote")], tail=""))

    columns = found.ladder.shape_at(1).columns
    assert columns["internalNote"] == columns["note"]
    assert list(columns) == ["id", "status", "note", "internalNote", "doneAt"]


@pytest.mark.parametrize(("step", "reason"), [
    (Ddl("010_add_state", "ADD COLUMN `state` VARCHAR(32) NOT NULL DEFAULT 'pending'", "DROP COLUMN `note`"),
     "step 010_add_state: its way back does not land one stair lower: column note: has nothing, expected text NULL; column state: has"),
    (Ddl("010_add_state", "ADD COLUMN `state` VARCHAR(32) NOT NULL DEFAULT 'pending', ADD INDEX `s` (`state`)", "DROP COLUMN `statte`"),
     r"step 010_add_state \(way back\): does not work on a clone of the table: MySQL error 1091"),
    (Ddl("010_add_state", "ADD COLUMN `state` VARCHAR(32) NOT NULL DEFAULT 'pending' AFTER `nothing`", "DROP COLUMN `state`"),
     "step 010_add_state: does not work on a clone of the table: MySQL error 1054"),
    (Ddl("010_add_state", "ALTER COLUMN `status` SET DEFAULT 'pending'", "ALTER COLUMN `status` SET DEFAULT 'pending'"),
     "step 010_add_state: changes nothing on this table"),
])
def test_a_step_that_does_not_go_up_and_down_is_refused_by_name_and_leaves_no_trace(
        session: Session, empty: Target, job: App, tmp_path: Path, step: Ddl, reason: str) -> None:
    before = job.create_table("job")

    with pytest.raises(Refused, match=reason) as raised:
        rehearsed(session, empty, small(tmp_path, steps=[step]))

    assert raised.value.exit_code == 3
    assert job.create_table("job") == before
    assert schemas(session, empty) == []


def test_a_column_that_would_break_the_old_applications_inserts_is_not_doubled(session: Session, empty: Target, job: App,
                                                                              tmp_path: Path) -> None:
    job.run("ALTER TABLE job MODIFY note VARCHAR(20) NOT NULL")

    with pytest.raises(Refused, match=r"note is NOT NULL without a default.*1364"):
        rehearsed(session, empty, small(tmp_path, steps=[Renamed("note", "internalNote")], tail=""))


def test_maps_that_the_triggers_cannot_keep_fail_on_the_clone(session: Session, empty: Target, job: App, tmp_path: Path) -> None:
    short = Ddl("010_add_state", "ADD COLUMN `state` VARCHAR(8) NOT NULL DEFAULT 'pending'", "DROP COLUMN `state`")

    with pytest.raises((Refused, CanaryFailed)) as raised:
        rehearsed(session, empty, small(tmp_path, steps=[short]))

    assert "1406" in str(raised.value)
    assert schemas(session, empty) == []


def test_traffic_on_the_table_and_its_parents_is_not_waited_for(session: Session, empty: Target, job: App, clients: Clients,
                                                                tmp_path: Path) -> None:
    job.run("CREATE TABLE user (id INT PRIMARY KEY)")
    job.run(f"ALTER TABLE job {OWNER}")
    writer = clients()
    writer.run("START TRANSACTION")
    writer.run("INSERT INTO user VALUES (1)")
    writer.run("INSERT INTO job (id, userId) VALUES ('a', 1)")

    assert rehearsed(session, empty, small(tmp_path)).ladder.expanded == 1
    writer.run("COMMIT")
    assert job.rows("SELECT id FROM job") == [("a",)]


def test_what_a_killed_rehearsal_left_is_removed(session: Session, empty: Target, job: App, tmp_path: Path) -> None:
    left = scratch_name(empty, "job")
    session.run(f"CREATE DATABASE {quote(left)}")
    session.run(f"CREATE TABLE {quote(left)}.job (other INT)")

    assert rehearsed(session, empty, small(tmp_path)).ladder.expanded == 1
    assert schemas(session, empty) == []


def test_the_plans_own_rehearsal_schema_is_emptied_before_and_after_and_kept(session: Session, empty: Target, job: App,
                                                                            tmp_path: Path) -> None:
    own = f"{empty.schema}_rehearsal"
    session.run(f"CREATE DATABASE {quote(own)}")
    try:
        session.run(f"CREATE TABLE {quote(own)}.job (id INT PRIMARY KEY)")
        session.run(f"CREATE TABLE {quote(own)}.child (id INT, FOREIGN KEY (id) REFERENCES {quote(own)}.job (id))")

        rehearsed(session, empty, small(tmp_path, head=f'rehearsal_schema = "{own}"'))

        assert session.query(f"SHOW TABLES FROM {quote(own)}") == []
        assert schemas(session, empty) == []
    finally:
        session.run(f"DROP DATABASE {quote(own)}")


def test_two_rehearsals_of_one_table_do_not_meet(session: Session, empty: Target, job: App, tmp_path: Path,
                                                monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch, "LOCK_S", 0)
    plan = small(tmp_path)
    with scratch.scratch(empty, plan), pytest.raises(Refused, match="another rehearsal of this table is under way"):
        rehearsed(session, empty, plan)

    assert rehearsed(session, empty, plan).ladder.expanded == 1


@pytest.fixture
def poor(session: Session, empty: Target) -> Iterator[Target]:
    """An account that may do everything in the test's schema and nothing outside."""
    name = f"p{session.connection_id}"
    session.run(f"CREATE USER {quote(name)}@'%' IDENTIFIED BY 'secret'")
    session.run(f"GRANT ALL ON {quote(empty.schema)}.* TO {quote(name)}@'%'")
    yield Target(empty.url.set(username=name, password="secret"))
    session.run(f"DROP USER {quote(name)}@'%'")


def test_without_the_right_to_make_a_schema_it_could_not_look(poor: Target, job: App, tmp_path: Path) -> None:
    with Session(poor) as live, pytest.raises(Refused, match="could not look: MySQL error 1044") as raised:
        rehearsed(live, poor, small(tmp_path))

    assert "plan.rehearsal_schema" in raised.value.remedy
    assert job.triggers() == []


@pytest.mark.parametrize("position", [0, 1, 3])
def test_a_table_found_part_of_the_way_up_gets_its_baseline_back(session: Session, empty: Target, job: App, tmp_path: Path,
                                                                opened_on: Opened, position: int) -> None:
    baseline = job.create_table("job")
    plan = small(tmp_path, steps=SEVERAL)
    ladder = rehearsed(session, empty, plan).ladder
    for stair in ladder.stairs[:position]:
        session.verbatim(stair.up.statement)
    halfway = job.create_table("job")

    found = rehearsed(session, empty, plan)
    assert found.ladder == ladder
    assert found.baseline_sql == baseline or position  # a clone's text repeats the character sets
    assert (job.create_table("job"), schemas(session, empty)) == (halfway, [])

    expand(opened_on(plan))
    go_back(opened_on(plan))
    assert job.create_table("job") == baseline


def test_an_index_that_mysql_made_for_a_foreign_key_is_put_back_before_the_better_one_goes(job: App, tmp_path: Path,
                                                                                          opened_on: Opened) -> None:
    job.run("CREATE TABLE user (id INT PRIMARY KEY)")
    job.run(f"ALTER TABLE job {OWNER}")
    before = job.create_table("job")
    assert "KEY `job_userId_fkey` (`userId`)" in before
    plan = small(tmp_path, steps=[ADD_STATE, BETTER])

    expand(opened_on(plan))
    assert "KEY `job_userId_fkey` (" not in job.create_table("job")
    rollout = opened_on(plan)
    go_back(rollout)

    assert job.create_table("job") == before
    assert [e["direction"] for e in rollout.ledger.events() if e["step"] == "index job_userId_fkey"] == ["back"]


def test_one_that_a_step_of_the_plan_made_is_rehearsed_and_put_back_too(session: Session, empty: Target, job: App, tmp_path: Path,
                                                                       opened_on: Opened) -> None:
    before = job.create_table("job")
    owner = Ddl("015_owner", "ADD COLUMN `userId` VARCHAR(191) NULL, ADD CONSTRAINT `fk` FOREIGN KEY (`userId`) REFERENCES `job` (`id`)",
                "DROP FOREIGN KEY `fk`, DROP COLUMN `userId`")
    plan = small(tmp_path, steps=[ADD_STATE, owner, BETTER])
    better = rehearsed(session, empty, plan).ladder.stairs[2]
    assert "fk" not in better.shape.indexes
    assert [statement.split("ADD ")[1] for statement in better.down.before] == ["INDEX `fk` (`userId`), ALGORITHM=INPLACE, LOCK=NONE"]

    expand(opened_on(plan))
    go_back(opened_on(plan))

    assert job.create_table("job") == before


def test_the_shipped_plan_lives_with_an_implicit_foreign_key_index(database: Target, app: App, rollouts: Callable[..., Rollout]) -> None:
    app.run("ALTER TABLE AiAnalysisJob DROP FOREIGN KEY AiAnalysisJob_userId_fkey, DROP INDEX AiAnalysisJob_userId_idx")
    app.run("ALTER TABLE AiAnalysisJob ADD CONSTRAINT AiAnalysisJob_userId_fkey FOREIGN KEY (userId) REFERENCES User (id) "
            "ON DELETE RESTRICT ON UPDATE CASCADE")
    before = app.create_table()

    expand(rollouts())
    assert "KEY `AiAnalysisJob_userId_fkey` (" not in app.create_table()
    go_back(rollouts())

    assert app.create_table() == before


def test_names_that_need_quoting_are_rehearsed(session: Session, empty: Target, job: App, tmp_path: Path) -> None:
    session.verbatim("RENAME TABLE job TO `100% of`")

    assert rehearsed(session, empty, small(tmp_path, table="100% of")).ladder.expanded == 1
    assert "state" not in create_statement(session, empty.schema, "100% of")
