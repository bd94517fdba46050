"""A sample of real rows goes up through triggers and first pass and comes back as it was; it takes no lock and leaves no trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from steps.errors import Refused
from steps.mysql import Session
from steps.rehearsal import rehearse
from steps.scratch import scratch_name
from steps.target import Target
from tests.conftest import App
from tests.mysql.conftest import Clients, Opened, expand
from tests.plans import ADD_STATE, SYNC, Ddl, Renamed, small

CLEANUP = f'{SYNC}\n[cleanup]\ndrop = ["status", "note"]\n'
STATUSES = ("pending", "processing", "completed", "failed")


@pytest.fixture
def filled(job: App) -> App:
    """Thirty rows."""
    with job.connection.cursor() as cursor:
        cursor.executemany("INSERT INTO job (id, status, note) VALUES (%s, %s, %s)",
                           [(f"{n:03}", STATUSES[n % 4], f"nöte {n}") for n in range(30)])
    return job


def end_state(app: App, session: Session, target: Target) -> tuple[object, ...]:
    return (app.create_table("job"), app.triggers(), app.rows("SELECT * FROM job ORDER BY id"), app.rows("SHOW TABLES"),
            [name for (name,) in session.query("SHOW DATABASES") if name == scratch_name(target, "job")])


def test_rows_of_both_ends_go_all_the_way_and_come_back(session: Session, empty: Target, filled: App, tmp_path: Path) -> None:
    before = end_state(filled, session, empty)
    late = Ddl("090_i", "ADD INDEX `i` (`state`)", "DROP INDEX `i`", late=True)
    plan = small(tmp_path, steps=[ADD_STATE, Renamed("doneAt", "finishedAt"), late],
                 tail=CLEANUP, overrides=["rehearsal.sample_rows=11"])

    found = rehearse(session, empty, plan)

    assert found.sample is not None
    assert found.sample.columns == ("id", "status", "note", "doneAt")
    assert (found.sample.rows, found.sample.left) == (11, 0)
    assert found.sample.changed == sum(STATUSES[n % 4] != "pending" for n in [*range(6), *range(25, 30)])
    assert found.sample.pass_ms
    assert end_state(filled, session, empty) == before


def test_without_rows_or_with_the_key_off_everything_else_is_rehearsed(session: Session, empty: Target, job: App, tmp_path: Path) -> None:
    nothing = rehearse(session, empty, small(tmp_path)).sample
    assert nothing is not None
    assert (nothing.rows, nothing.changed) == (0, 0)
    job.run("INSERT INTO job (id) VALUES ('a')")
    found = rehearse(session, empty, small(tmp_path, overrides=["rehearsal.sample_rows=0"]))
    assert (found.sample, found.ladder.top) == (None, 1)


def test_rows_that_others_hold_are_neither_waited_for_nor_locked(session: Session, empty: Target, filled: App, clients: Clients,
                                                                 tmp_path: Path) -> None:
    writer = clients()
    writer.run("START TRANSACTION")
    writer.run("UPDATE job SET note = 'changed', status = 'odd'")
    writer.run("INSERT INTO job (id, status) VALUES ('zzz', 'odd')")

    found = rehearse(session, empty, small(tmp_path))

    assert found.sample is not None
    assert (found.sample.rows, found.sample.left) == (30, 0)  # as committed
    writer.run("ROLLBACK")


def test_a_step_that_the_rows_do_not_survive_is_refused_by_name_without_their_values(session: Session, empty: Target, filled: App,
                                                                                    tmp_path: Path) -> None:
    before = end_state(filled, session, empty)
    narrow = Ddl("020_narrow", "MODIFY COLUMN `note` VARCHAR(4) NULL", "MODIFY COLUMN `note` TEXT NULL")

    with pytest.raises(Refused, match="step 020_narrow: does not work on a clone of the table that holds 30 rows of it: MySQL error 1406") \
            as raised:
        rehearse(session, empty, small(tmp_path, steps=[ADD_STATE, narrow]))

    assert (raised.value.exit_code, "nöte" in str(raised.value)) == (3, False)
    assert end_state(filled, session, empty) == before


@pytest.mark.parametrize(("up", "down"), [
    ("DROP COLUMN `note`", "ADD COLUMN `note` TEXT NULL AFTER `status`"),
    ("ADD COLUMN `kept` INT NULL, DROP COLUMN `note`", "DROP COLUMN `kept`, ADD COLUMN `note` TEXT NULL AFTER `status`"),
])
def test_a_way_back_that_loses_values_is_refused_with_step_and_column(session: Session, empty: Target, filled: App, tmp_path: Path,
                                                                      up: str, down: str) -> None:
    before = end_state(filled, session, empty)

    with pytest.raises(Refused, match="step 020_x: its way back loses values: 30 of 30 sampled rows come back with another note"):
        rehearse(session, empty, small(tmp_path, steps=[ADD_STATE, Ddl("020_x", up, down)]))

    assert end_state(filled, session, empty) == before


def test_what_the_maps_cannot_tell_apart_is_named_and_not_refused(session: Session, empty: Target, filled: App, tmp_path: Path) -> None:
    filled.run("UPDATE job SET status = 'failed' WHERE status = 'completed'")
    filled.run("UPDATE job SET status = 'aborted' WHERE id < '006'")
    tail = CLEANUP.replace('failed = "failed" }', 'failed = "failed", aborted = "failed" }', 1)

    found = rehearse(session, empty, small(tmp_path, tail=tail))

    assert "status: 6 of 30 sampled rows come back from cleanup as another value that the maps hold equal" in found.notes


def test_values_that_no_map_knows_are_counted_and_left_to_their_check(session: Session, empty: Target, filled: App, tmp_path: Path) -> None:
    filled.run("UPDATE job SET status = 'secret' WHERE id < '003'")

    found = rehearse(session, empty, small(tmp_path))

    assert found.sample is not None
    assert found.sample.left == 3
    assert "3 of 30 sampled rows hold values that the plan's maps do not know" in found.notes
    assert "secret" not in str(found.notes)


def test_foreign_keys_do_not_need_the_sampled_rows_parents(session: Session, empty: Target, job: App, tmp_path: Path) -> None:
    job.run("CREATE TABLE user (id INT PRIMARY KEY)")
    job.run("INSERT INTO user VALUES (1), (2)")
    job.run("ALTER TABLE job ADD COLUMN userId INT NULL, ADD COLUMN prior VARCHAR(191) NULL, "
            "ADD CONSTRAINT old_one FOREIGN KEY (userId) REFERENCES user (id)")
    job.run("INSERT INTO job (id, userId, prior) VALUES ('a', 1, NULL), ('b', 2, 'a'), ('c', NULL, 'b')")
    both = Ddl("020_both", "MODIFY COLUMN `status` VARCHAR(64) NOT NULL DEFAULT 'pending', "
               "ADD CONSTRAINT `again` FOREIGN KEY (`userId`) REFERENCES `user` (`id`)",
               "DROP FOREIGN KEY `again`, MODIFY COLUMN `status` VARCHAR(32) NOT NULL DEFAULT 'pending'")
    own = Ddl("030_self", "ADD CONSTRAINT `self` FOREIGN KEY (`prior`) REFERENCES `job` (`id`)",
              "DROP FOREIGN KEY `self`, DROP INDEX `self`")

    found = rehearse(session, empty, small(tmp_path, steps=[ADD_STATE, both, own], overrides=["rehearsal.sample_rows=1"]))

    assert found.sample is not None
    assert (found.sample.rows, found.ladder.top) == (1, 3)


def test_rows_as_another_mode_allowed_them_are_sampled(session: Session, empty: Target, job: App, tmp_path: Path) -> None:
    job.run("SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO'")
    job.run("DROP TABLE job")
    job.run("CREATE TABLE job (id INT AUTO_INCREMENT PRIMARY KEY, status VARCHAR(32) NOT NULL DEFAULT 'pending', day DATE NULL, "
            "seen TIMESTAMP NULL DEFAULT NULL ON UPDATE CURRENT_TIMESTAMP, place POINT NULL, flag BIT(3) NULL, doc JSON NULL, f FLOAT)")
    job.run("INSERT INTO job VALUES (0, 'failed', '0000-00-00', '2001-01-01', POINT(1, 2), b'101', '{\"a\": [1, \"é\"]}', 1.1), "
            "(7, 'completed', '2001-00-00', NULL, NULL, NULL, NULL, NULL)")

    found = rehearse(session, empty, small(tmp_path, tail=SYNC + '[cleanup]\ndrop = ["status", "place", "doc"]\n'))

    assert found.sample is not None
    assert (found.sample.rows, found.sample.changed, found.notes) == (2, 2, found.notes[:1])

    with pytest.raises(Refused, match=r"cleanup: its way back cannot put the rows' values back: MySQL error 1292.*for column 'day'"):
        rehearse(session, empty, small(tmp_path, tail=SYNC + '[cleanup]\ndrop = ["day"]\n'))


def test_a_run_that_has_begun_samples_nothing_more(empty: Target, filled: App, tmp_path: Path, opened_on: Opened) -> None:
    plan = small(tmp_path)
    rollout = opened_on(plan)
    expand(rollout)
    assert rollout.rehearsed().sample is not None
    assert opened_on(plan).rehearsed().sample is None


def test_a_holder_of_the_table_is_named_and_waited_for_within_a_bound(session: Session, empty: Target, filled: App, clients: Clients,
                                                                      tmp_path: Path) -> None:
    before = end_state(filled, session, empty)
    holder = clients()
    number = holder.value("SELECT CONNECTION_ID()")
    holder.run("LOCK TABLES job WRITE")

    with pytest.raises(Refused, match=rf"rehearsal of job: could not look at a live table in time: job is held by connection {number} ") \
            as raised:
        rehearse(session, empty, small(tmp_path))

    assert raised.value.exit_code == 3
    holder.run("UNLOCK TABLES")
    assert end_state(filled, session, empty) == before


@pytest.mark.parametrize("query", ["SELECT missing FROM job", "SELECT id FROM job FORCE INDEX (nothing)"])
def test_a_smoke_query_that_cannot_be_answered_is_refused(session: Session, empty: Target, filled: App, tmp_path: Path, query: str) -> None:
    (tmp_path / "q.sql").write_text(f"-- expect: no rows\n{query}")
    before = end_state(filled, session, empty)

    with pytest.raises(Refused, match=r"smoke query q.sql: cannot be answered once the steps are done: MySQL error (1054|1176)"):
        rehearse(session, empty, small(tmp_path, tail=f'{SYNC}\n[verify]\nqueries = ["q.sql"]\n'))

    assert end_state(filled, session, empty) == before


def test_smoke_queries_run_on_the_clone_and_never_beyond_it(session: Session, empty: Target, filled: App, clients: Clients,
                                                            tmp_path: Path) -> None:
    filled.run("CREATE TABLE other (id INT PRIMARY KEY)")
    for name, query in (("a", "SELECT id FROM job WHERE state = 'odd'"), ("b", f"SELECT * FROM {empty.schema}.other"),
                        ("c", "SELECT * FROM other")):
        (tmp_path / f"{name}.sql").write_text(f"-- expect: no rows\n{query}")
    holder = clients()
    holder.run("LOCK TABLES other WRITE")  # whoever reads it waits

    found = rehearse(session, empty, small(tmp_path, tail=f'{SYNC}\n[verify]\nqueries = ["?.sql"]\n'))

    assert found.sample is not None
    assert found.sample.queries_run == 1
    assert [note.partition(" was not run")[0] for note in found.notes if "smoke" in note] == ["smoke query b.sql", "smoke query c.sql"]
