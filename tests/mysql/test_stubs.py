"""Stand-ins around the clone: parents that a step is the first to reference, children, tables of other schemas."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from steps.errors import Refused
from steps.mysql import Session, quote
from steps.rehearsal import rehearse
from steps.scratch import scratch_name
from steps.target import Target
from tests.conftest import App
from tests.mysql.conftest import Clients, Opened, expand, go_back
from tests.plans import ADD_STATE, Ddl, Renamed, small

OWNER = Ddl("020_owner", "ADD COLUMN `userId` INT NULL, ADD CONSTRAINT `job_user` FOREIGN KEY (`userId`) REFERENCES `user` (`id`)",
            "DROP FOREIGN KEY `job_user`, DROP COLUMN `userId`")


def traces(session: Session, target: Target) -> list[str]:
    return [str(name) for (name,) in session.query("SHOW DATABASES") if name == scratch_name(target, "job")]


@pytest.fixture
def away(session: Session, empty: Target) -> Iterator[str]:
    """Another schema with a parent, dropped with everything that hangs on it."""
    name = f"{empty.schema}_away"
    session.run(f"CREATE DATABASE {quote(name)}")
    session.run(f"CREATE TABLE {quote(name)}.user (id INT PRIMARY KEY)")
    yield name
    session.run("SET SESSION foreign_key_checks = 0")
    session.run(f"DROP DATABASE {quote(name)}")


def test_a_parent_that_only_a_step_references_is_there_on_the_clone(session: Session, empty: Target, job: App, tmp_path: Path,
                                                                    opened_on: Opened) -> None:
    job.run("CREATE TABLE user (id INT PRIMARY KEY, mail VARCHAR(99), FULLTEXT KEY (mail), CHECK (id > 0))")
    before = job.create_table("job")
    plan = small(tmp_path, steps=[ADD_STATE, OWNER])

    assert [stair.name for stair in rehearse(session, empty, plan).ladder.stairs] == ["010_add_state", "020_owner"]
    expand(opened_on(plan))
    assert "CONSTRAINT `job_user` FOREIGN KEY (`userId`) REFERENCES `user` (`id`)" in job.create_table("job")
    go_back(opened_on(plan))
    assert job.create_table("job") == before


@pytest.mark.parametrize(("parent", "reason"), [
    (None, "step 020_owner.up: references table user, which does not exist in"),
    ("CREATE TABLE user (uid INT PRIMARY KEY)", r"step 020_owner.up: references user \(id\), which has no such column"),
    ("CREATE TABLE user (id BIGINT PRIMARY KEY)", "step 020_owner: does not work on a clone of the table: MySQL error 3780"),
    ("CREATE TABLE user (id INT, KEY (id))", "step 020_owner: does not work on a clone of the table: MySQL error 6125"),
    ("CREATE VIEW user AS SELECT 1 AS id", "references user, which is no base table"),
])
def test_a_parent_that_does_not_fit_is_refused_by_step_and_nothing_is_touched(session: Session, empty: Target, job: App, tmp_path: Path,
                                                                              parent: str | None, reason: str) -> None:
    if parent:
        job.run(parent)
    before = job.create_table("job")

    with pytest.raises(Refused, match=reason) as raised:
        rehearse(session, empty, small(tmp_path, steps=[ADD_STATE, OWNER]))

    assert raised.value.exit_code == 3
    assert (job.create_table("job"), job.triggers(), traces(session, empty)) == (before, [], [])
    assert job.rows("SHOW TABLES LIKE '\\_rollout%'") == []


def test_text_keys_need_the_parents_own_collation_as_they_do_live(session: Session, empty: Target, job: App, tmp_path: Path) -> None:
    job.run("CREATE TABLE user (id VARCHAR(20) COLLATE utf8mb4_bin PRIMARY KEY)")
    clauses = "ADD COLUMN `u` VARCHAR(20) {} NULL, ADD CONSTRAINT `f` FOREIGN KEY (`u`) REFERENCES `user` (`id`)"
    back = "DROP FOREIGN KEY `f`, DROP COLUMN `u`"

    with pytest.raises(Refused, match="step 020_u: does not work on a clone of the table: MySQL error 3780"):
        rehearse(session, empty, small(tmp_path, steps=[ADD_STATE, Ddl("020_u", clauses.format(""), back)]))
    fitting = Ddl("020_u", clauses.format("COLLATE utf8mb4_bin"), back)
    assert rehearse(session, empty, small(tmp_path, steps=[ADD_STATE, fitting])).ladder.top == 2


def test_keys_into_another_schema_never_reach_it_and_are_frozen_in_live_words(session: Session, empty: Target, job: App, away: str,
                                                                              tmp_path: Path, clients: Clients, opened_on: Opened) -> None:
    job.run(f"ALTER TABLE job ADD COLUMN u INT NULL, ADD CONSTRAINT old_one FOREIGN KEY (u) REFERENCES {quote(away)}.user (id)")
    own = Ddl("030_own", f"ADD COLUMN `o` INT NULL, ADD CONSTRAINT `own` FOREIGN KEY (`o`) REFERENCES {empty.schema}.near (id)",
              "DROP FOREIGN KEY `own`, DROP COLUMN `o`")
    new = Ddl("020_away", f"ADD COLUMN `w` INT NULL, ADD CONSTRAINT `new_one` FOREIGN KEY (`w`) REFERENCES {away} . `user` (id)",
              "DROP FOREIGN KEY `new_one`, DROP COLUMN `w`")
    job.run("CREATE TABLE near (id INT PRIMARY KEY)")
    before, plan = job.create_table("job"), small(tmp_path, steps=[ADD_STATE, new, own])
    holder = clients()
    holder.run(f"LOCK TABLES {quote(away)}.user WRITE, near WRITE")  # any statement that reached a parent would wait and be refused

    found = rehearse(session, empty, plan)

    holder.run("UNLOCK TABLES")
    assert found.baseline_sql == before
    assert found.ladder.shape_at(3).foreign_keys == {
        name: f"FOREIGN KEY (`{column}`) REFERENCES {parent} (`id`) ON DELETE NO ACTION ON UPDATE NO ACTION"
        for name, column, parent in (("old_one", "u", f"`{away}`.`user`"), ("new_one", "w", f"`{away}`.`user`"), ("own", "o", "`near`"))}
    expand(opened_on(plan))
    assert opened_on(plan).position() == 3
    go_back(opened_on(plan))
    assert job.create_table("job") == before


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_step_that_a_childs_key_forbids_live_fails_on_the_clone(session: Session, empty: Target, job: App, away: str, tmp_path: Path,
                                                                  elsewhere: bool) -> None:
    job.run("ALTER TABLE job ADD COLUMN code VARCHAR(20) NULL, ADD UNIQUE KEY by_code (code)")
    child = f"{quote(away)}.child" if elsewhere else "child"
    job.run(f"CREATE TABLE {child} (c VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci, n INT, "
            f"CONSTRAINT child_code FOREIGN KEY (c) REFERENCES {quote(empty.schema)}.job (code))")
    before = job.create_table("job")
    step = Ddl("020_code", "DROP INDEX `by_code`, DROP COLUMN `code`",
               "ADD COLUMN `code` VARCHAR(20) NULL AFTER `doneAt`, ADD UNIQUE KEY `by_code` (`code`)")

    with pytest.raises(Refused, match="step 020_code: does not work on a clone of the table: MySQL error 1829"):
        rehearse(session, empty, small(tmp_path, steps=[ADD_STATE, step]))

    assert (job.create_table("job"), traces(session, empty)) == (before, [])
    assert rehearse(session, empty, small(tmp_path)).ladder.top == 1


def test_whatever_the_table_has_is_on_the_clone(session: Session, empty: Target, job: App, tmp_path: Path, opened_on: Opened) -> None:
    job.run("DROP TABLE job")
    job.run("CREATE TABLE job (n BIGINT UNSIGNED NOT NULL AUTO_INCREMENT, status VARCHAR(32) NOT NULL DEFAULT 'pending', "
            "smile VARCHAR(9) NOT NULL DEFAULT '😀x' COMMENT 'a😀', nul VARCHAR(9) NOT NULL DEFAULT 'a\\0b', "
            "twice BIGINT AS (hidden * 2) STORED, "
            "size INT AS (CHAR_LENGTH(status)) VIRTUAL, hidden INT INVISIBLE DEFAULT 5, parent BIGINT UNSIGNED NULL, PRIMARY KEY (n), "
            "KEY unseen (hidden) INVISIBLE, KEY expr ((LOWER(status))), CONSTRAINT short CHECK (size < 20), "
            "CONSTRAINT self FOREIGN KEY (parent) REFERENCES job (n)) ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=8 AUTO_INCREMENT=77 "
            "DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_unicode_ci COMMENT 'all'")
    job.run("INSERT INTO job (n, status, parent) VALUES (5, 'failed', NULL), (6, 'completed', 5)")
    before, plan = job.create_table("job"), small(tmp_path)

    found = rehearse(session, empty, plan)

    assert found.baseline_sql == before
    assert found.sample is not None
    assert (found.sample.rows, found.sample.changed) == (2, 2)
    expand(opened_on(plan))
    assert job.rows("SELECT n, state FROM job ORDER BY n") == [(5, "failed"), (6, "succeeded")]
    go_back(opened_on(plan))
    assert re.sub("AUTO_INCREMENT=.*? ", "", job.create_table("job")) == before.replace("AUTO_INCREMENT=77 ", "")  # the canary took some


def test_a_default_that_the_catalogue_loses_is_not_brought_back_as_another(session: Session, empty: Target, job: App,
                                                                           tmp_path: Path) -> None:
    job.run("ALTER TABLE job ADD COLUMN mood VARCHAR(9) NOT NULL DEFAULT '😀'")
    before = job.create_table("job")
    worse = Ddl("020_mood", "ALTER COLUMN `mood` SET DEFAULT 'x'", "ALTER COLUMN `mood` SET DEFAULT '?'")
    better = Ddl("020_mood", "ALTER COLUMN `mood` SET DEFAULT 'x'", "ALTER COLUMN `mood` SET DEFAULT '😀'")

    with pytest.raises(Refused, match="column mood: its default comes back as another text"):
        rehearse(session, empty, small(tmp_path, steps=[ADD_STATE, worse]))
    assert rehearse(session, empty, small(tmp_path, steps=[ADD_STATE, better])).ladder.top == 2
    assert job.create_table("job") == before


def test_a_renamed_column_is_not_given_a_default_that_the_catalogue_lost(session: Session, empty: Target, job: App, tmp_path: Path) -> None:
    job.run("ALTER TABLE job ADD COLUMN mood VARCHAR(9) NOT NULL DEFAULT '😀'")
    before = job.create_table("job")

    with pytest.raises(Refused, match="rename of mood: its default holds characters that information_schema does not tell"):
        rehearse(session, empty, small(tmp_path, steps=[Renamed("mood", "feeling")], tail=""))
    assert job.create_table("job") == before
