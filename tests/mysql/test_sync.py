"""What the sync triggers do, row by row, whoever writes and however (design section 2)."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest
from sqlalchemy import make_url

from deploy.mysql_server import Server
from steps import catalogue, sync
from steps.agreement import Pair
from steps.errors import Refused
from steps.mysql import Session, quote
from steps.plan import Plan
from steps.sync import SyncState
from steps.target import Target
from tests.conftest import App
from tests.mysql.conftest import JOB
from tests.plans import ADD_STATE, SYNC, Renamed, small

RENAMED = [ADD_STATE, Renamed("doneAt", "finishedAt"), Renamed("note", "internalNote")]
# `archived` shares its new value with `completed`, so a new side alone cannot say which old one was meant.
MANY_TO_ONE = SYNC.replace('failed = "failed" }', 'failed = "failed", archived = "succeeded" }', 1)
OLD = ("pending", "processing", "completed", "failed", "archived", "weird", "FAILED")
NEW = ("pending", "running", "succeeded", "failed", "cancelled", "locked", "weird")
CAFE, EMOJI = "café", "boom 😀 'x' \\ %s"


def make_table(client: App) -> None:
    client.run(JOB)
    client.run("ALTER TABLE job ADD COLUMN state VARCHAR(32) NOT NULL DEFAULT 'pending', ADD COLUMN finishedAt DATETIME(3) NULL, "
               "ADD COLUMN internalNote TEXT NULL, MODIFY id VARCHAR(191) COLLATE utf8mb4_bin NOT NULL")


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    return small(tmp_path_factory.mktemp("plan"), steps=RENAMED, tail=MANY_TO_ONE)


@pytest.fixture(scope="module")
def target(server: Server, plan: Plan) -> Iterator[Target]:
    """A schema in which every combination of both sides was there before the triggers; tests roll their changes back."""
    name = f"t_{uuid.uuid4().hex[:20]}"
    target = Target(make_url(server.url).set(database=name))
    client = App(target, "")
    client.run(f"CREATE DATABASE `{name}`")
    client.run(f"USE `{name}`")
    make_table(client)
    with client.connection.cursor() as cursor:
        cursor.executemany("INSERT INTO job (id, status, state) VALUES (%s, %s, %s)",
                           [(f"{old}/{new}", old, new) for old in OLD for new in NEW])
    with Session(target) as session:
        for trigger in sync.sync_triggers(plan.id, sync.pairs(session, plan, name)):
            session.verbatim(trigger.create("job", "CURRENT_USER", None))
    yield target
    client.run(f"DROP DATABASE `{name}`")
    client.close()


@pytest.fixture(scope="module")
def connected(target: Target) -> Iterator[App]:
    client = App(target)
    yield client
    client.close()


@pytest.fixture
def client(connected: App) -> Iterator[App]:
    """A client in a transaction that is rolled back."""
    connected.run("START TRANSACTION")
    yield connected
    connected.run("ROLLBACK")


def sides(client: App, key: str) -> tuple[Any, ...]:
    return client.rows("SELECT status, state FROM job WHERE id = %s", key)[0]


UPDATES = [
    # before, what is set, after
    ("pending/pending", "status = 'processing'", ("processing", "running")),
    ("processing/running", "status = 'completed'", ("completed", "succeeded")),
    ("processing/running", "status = 'failed'", ("failed", "failed")),
    ("pending/locked", "status = 'processing'", ("processing", "running")),
    ("failed/cancelled", "status = 'pending'", ("pending", "pending")),
    ("completed/succeeded", "status = 'archived'", ("archived", "succeeded")),
    ("pending/pending", "state = 'running'", ("processing", "running")),
    ("processing/running", "state = 'succeeded'", ("completed", "succeeded")),
    ("processing/running", "state = 'cancelled'", ("failed", "cancelled")),
    ("pending/pending", "state = 'cancelled'", ("failed", "cancelled")),
    ("failed/failed", "state = 'pending'", ("pending", "pending")),
    ("failed/failed", "state = 'cancelled'", ("failed", "cancelled")),
    # no counterpart: the old side is left alone
    ("pending/pending", "state = 'locked'", ("pending", "locked")),
    ("processing/running", "state = 'locked'", ("processing", "locked")),
    ("completed/succeeded", "state = 'locked'", ("completed", "locked")),
    ("failed/failed", "state = 'locked'", ("failed", "locked")),
    ("pending/pending", "state = 'weird'", ("pending", "weird")),
    # both, and they agree
    ("pending/pending", "status = 'completed', state = 'succeeded'", ("completed", "succeeded")),
    ("pending/pending", "state = 'cancelled', status = 'failed'", ("failed", "cancelled")),
    ("pending/pending", "status = 'processing', state = 'locked'", ("processing", "locked")),
    ("pending/pending", "status = 'archived', state = 'succeeded'", ("archived", "succeeded")),
    # both, and they conflict: the new side wins, where it has a counterpart (C54)
    ("pending/pending", "status = 'completed', state = 'failed'", ("failed", "failed")),
    ("pending/pending", "state = 'succeeded', status = 'failed'", ("completed", "succeeded")),
    ("pending/pending", "status = 'completed', state = 'locked'", ("completed", "locked")),
    ("pending/pending", "status = 'weird', state = 'running'", ("processing", "running")),
    # an old value that no map knows leaves the new side alone (C48)
    ("pending/pending", "status = 'weird'", ("weird", "pending")),
    ("processing/running", "status = ''", ("", "running")),
    ("weird/pending", "status = 'completed'", ("completed", "succeeded")),
    ("weird/pending", "state = 'running'", ("processing", "running")),
    # case and trailing spaces are changes, and unmapped (C46, C54)
    ("failed/failed", "status = 'FAILED'", ("FAILED", "failed")),
    ("FAILED/failed", "status = 'failed'", ("failed", "failed")),
    ("FAILED/pending", "status = 'failed'", ("failed", "failed")),
    ("completed/succeeded", "status = 'completed '", ("completed ", "succeeded")),
    ("failed/failed", "state = 'Failed'", ("failed", "Failed")),
    # nothing moved: history stays as it is until a pass comes
    ("completed/pending", "note = 'x'", ("completed", "pending")),
    ("completed/pending", "status = 'completed'", ("completed", "pending")),
    ("failed/cancelled", "status = 'failed'", ("failed", "cancelled")),
    ("pending/succeeded", "state = 'succeeded'", ("pending", "succeeded")),
    # a pass writes the new side alone and never rewrites the old one, also where two old values share a new one
    ("completed/pending", "state = 'succeeded'", ("completed", "succeeded")),
    ("archived/pending", "state = 'succeeded'", ("archived", "succeeded")),
    ("failed/pending", "state = 'failed'", ("failed", "failed")),
    ("processing/pending", "state = 'running'", ("processing", "running")),
]


@pytest.mark.parametrize(("before", "change", "after"), UPDATES, ids=str)
def test_an_update_leaves_both_sides(client: App, before: str, change: str, after: tuple[str, str]) -> None:
    assert client.run(f"UPDATE job SET {change} WHERE id = %s", before) in (0, 1)

    assert sides(client, before) == after


INSERTS: list[tuple[dict[str, str | None], tuple[str, str]]] = [
    ({}, ("pending", "pending")),
    ({"status": "completed"}, ("completed", "succeeded")),
    ({"status": "archived"}, ("archived", "succeeded")),
    ({"status": "weird"}, ("weird", "pending")),
    ({"status": "Completed"}, ("Completed", "pending")),
    ({"state": "running"}, ("processing", "running")),
    ({"state": "cancelled"}, ("failed", "cancelled")),
    ({"state": "locked"}, ("pending", "locked")),
    # a side that holds its default was not supplied (C50): ORMs name every column
    ({"status": "pending", "state": "succeeded"}, ("completed", "succeeded")),
    ({"status": "completed", "state": "pending"}, ("completed", "succeeded")),
    ({"status": "processing", "state": "locked"}, ("processing", "locked")),
    ({"status": "completed", "state": "failed"}, ("failed", "failed")),
    # NULL in a NOT NULL column was not supplied either (F10)
    ({"status": None, "state": "running"}, ("processing", "running")),
    ({"status": None, "state": "locked"}, ("pending", "locked")),
    ({"status": None}, ("pending", "pending")),
    ({"status": "completed", "state": None}, ("completed", "succeeded")),
    ({"status": None, "state": None}, ("pending", "pending")),
]


@pytest.mark.parametrize("verb", ["INSERT", "REPLACE", "INSERT IGNORE"])
@pytest.mark.parametrize(("named", "after"), INSERTS, ids=str)
def test_an_insert_leaves_both_sides(client: App, verb: str, named: dict[str, str | None], after: tuple[str, str]) -> None:
    row = {"id": "new", **named}
    client.run(f"{verb} INTO job ({', '.join(row)}) VALUES ({', '.join(['%s'] * len(row))})", *row.values())

    assert sides(client, "new") == after


def test_replace_starts_a_row_anew(client: App) -> None:
    client.run("REPLACE INTO job (id, state) VALUES ('failed/cancelled', 'running')")

    assert sides(client, "failed/cancelled") == ("processing", "running")


@pytest.mark.parametrize(("named", "values", "change", "after"), [
    ("status", "'completed'", "status = VALUES(status)", ("completed", "succeeded")),
    ("state", "'succeeded'", "state = VALUES(state)", ("completed", "succeeded")),
    ("state", "'cancelled'", "state = 'cancelled'", ("failed", "cancelled")),
    ("status, state", "'failed', 'cancelled'", "status = VALUES(status), state = VALUES(state)", ("failed", "cancelled")),
    ("status", "'completed'", "note = 'seen'", ("processing", "running")),
])
def test_an_upsert_of_a_row_that_is_there_leaves_both_sides(client: App, named: str, values: str, change: str,
                                                            after: tuple[str, str]) -> None:
    client.run(f"INSERT INTO job (id, {named}) VALUES ('processing/running', {values}) ON DUPLICATE KEY UPDATE {change}")

    assert sides(client, "processing/running") == after


def test_every_row_of_a_multi_row_insert_is_its_own(client: App) -> None:
    client.run("INSERT INTO job (id, status, state) VALUES ('m1', 'completed', 'pending'), ('m2', 'pending', 'running'), "
               "('m3', 'failed', 'cancelled'), ('m4', 'completed', 'failed')")
    client.run("INSERT INTO job (id, status) SELECT CONCAT('m5', id), status FROM job WHERE id = 'm1'")

    assert [sides(client, key) for key in ("m1", "m2", "m3", "m4", "m5m1")] == [
        ("completed", "succeeded"), ("processing", "running"), ("failed", "cancelled"), ("failed", "failed"), ("completed", "succeeded")]


def test_a_row_touched_again_and_again_in_one_transaction_follows_the_last_write(client: App) -> None:
    went = []
    for change in ("status = 'processing'", "state = 'succeeded'", "status = 'failed'", "state = 'cancelled'", "status = 'pending'"):
        client.run(f"UPDATE job SET {change} WHERE id = 'pending/pending'")
        went.append(sides(client, "pending/pending"))

    assert went == [("processing", "running"), ("completed", "succeeded"), ("failed", "failed"), ("failed", "cancelled"),
                    ("pending", "pending")]


def test_a_delete_is_let_through(client: App) -> None:
    assert client.run("DELETE FROM job WHERE id = 'pending/pending'") == 1
    assert client.rows("SELECT id FROM job WHERE id = 'pending/pending'") == []


def test_an_update_to_null_is_refused_by_the_column_and_changes_nothing(client: App) -> None:
    with pytest.raises(pymysql.err.MySQLError, match="1048"):
        client.run("UPDATE job SET status = NULL, note = 'x' WHERE id = 'pending/pending'")

    assert client.rows("SELECT status, state, note FROM job WHERE id = 'pending/pending'") == [("pending", "pending", None)]


@pytest.mark.parametrize(("wrote", "other", "value"), [
    ("doneAt", "finishedAt", "2026-01-02 03:04:05.678"), ("finishedAt", "doneAt", "2026-01-02 03:04:05.678"),
    ("note", "internalNote", EMOJI), ("internalNote", "note", EMOJI), ("note", "internalNote", ""), ("note", "internalNote", " x "),
])
def test_renamed_columns_follow_each_other_exactly(client: App, wrote: str, other: str, value: str) -> None:
    shown = f"CAST({wrote} AS CHAR), CAST({other} AS CHAR)"
    client.run(f"INSERT INTO job (id, {wrote}) VALUES ('new', %s)", value)
    assert client.rows(f"SELECT {shown} FROM job WHERE id = 'new'") == [(value, value)]

    client.run(f"UPDATE job SET {wrote} = NULL WHERE id = 'new'")
    assert client.rows(f"SELECT {shown} FROM job WHERE id = 'new'") == [(None, None)]

    client.run(f"UPDATE job SET {wrote} = %s WHERE id = 'new'", value)
    assert client.rows(f"SELECT {shown} FROM job WHERE id = 'new'") == [(value, value)]


def test_a_change_of_case_or_space_alone_reaches_the_renamed_column(client: App) -> None:
    client.run("INSERT INTO job (id, note) VALUES ('new', 'boom')")
    for value in ("BOOM", "BOOM ", "bôom"):
        client.run("UPDATE job SET note = %s WHERE id = 'new'", value)
        assert client.rows("SELECT note, internalNote FROM job WHERE id = 'new'") == [(value, value)]


def test_of_two_renamed_sides_in_one_statement_the_new_one_wins(client: App) -> None:
    client.run("INSERT INTO job (id, note, internalNote) VALUES ('new', 'old', 'new')")
    assert client.rows("SELECT note, internalNote FROM job WHERE id = 'new'") == [("new", "new")]

    client.run("UPDATE job SET note = 'old', internalNote = 'newer' WHERE id = 'new'")
    assert client.rows("SELECT note, internalNote FROM job WHERE id = 'new'") == [("newer", "newer")]


@pytest.mark.parametrize("settings", [
    "SET SESSION sql_mode = ''",
    "SET SESSION sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT'",
    "SET SESSION time_zone = '-05:00'",
    "SET NAMES latin1",
    "SET NAMES utf8mb4 COLLATE utf8mb4_bin",
    "SET SESSION collation_connection = utf8mb4_0900_as_cs, collation_database = latin1_swedish_ci",
    "SET SESSION transaction_isolation = 'SERIALIZABLE'",
])
def test_the_clients_own_settings_change_nothing(target: Target, settings: str) -> None:
    other = App(target)
    other.run(settings)
    if "latin1" in settings.split()[-1:]:
        other.connection.encoding = "latin1"
    other.run("START TRANSACTION")
    other.run("UPDATE job SET status = 'completed', doneAt = '2026-01-02 03:04:05.678', note = %s WHERE id = 'pending/pending'", CAFE)
    other.run("UPDATE job SET state = 'running' WHERE id = 'pending/locked'")
    other.run("INSERT INTO job (id, state, finishedAt, internalNote) VALUES ('new', 'cancelled', '2026-01-02 03:04:05.678', %s)", CAFE)

    shown = ("CAST(doneAt AS CHAR), CAST(finishedAt AS CHAR), HEX(CONVERT(note USING utf8mb4)), "
             "HEX(CONVERT(internalNote USING utf8mb4))")
    both = ("2026-01-02 03:04:05.678",) * 2 + (CAFE.encode().hex().upper(),) * 2
    found = other.rows(f"SELECT status, state, {shown} FROM job WHERE id IN ('new', 'pending/pending', 'pending/locked') ORDER BY id")
    other.run("ROLLBACK")
    other.close()
    assert found == [("failed", "cancelled", *both), ("processing", "running", None, None, None, None),
                     ("completed", "succeeded", *both)]


def test_agreement_says_of_every_combination_what_the_map_says(client: App, target: Target, plan: Plan) -> None:
    agreeing = {tuple(pair) for pair in plan.sync[0].agreeing}
    with Session(target) as session:
        [pair, *_] = sync.pairs(session, plan, target.schema)
        found = session.query(f"SELECT status, state, {pair.agrees()} FROM job")

    assert {(old, new) for old, new, agrees in found if agrees} == agreeing & {(old, new) for old in OLD for new in NEW}
    assert len(found) == len(OLD) * len(NEW)


def test_both_triggers_are_as_planned_and_their_settings_are_pinned(target: Target, plan: Plan) -> None:
    with Session(target) as session:
        wanted = sync.sync_triggers(plan.id, sync.pairs(session, plan, target.schema))
        found = catalogue.triggers(session, target.schema, "job")

        assert sync.state(session, target.schema, "job", wanted) is SyncState.ON
    assert [(t.name, t.timing, t.event) for t in found] == [("rollout_small_bi", "BEFORE", "INSERT"),
                                                            ("rollout_small_bu", "BEFORE", "UPDATE")]
    assert all("STRICT_TRANS_TABLES" in t.sql_mode and "ANSI" not in t.sql_mode and "NOW" not in t.body.upper() for t in found)


# Triggers of others


@pytest.fixture
def pairs(job: App, session: Session, plan: Plan) -> tuple[Pair, ...]:
    """The pairs on a table of this test's own, without triggers."""
    job.run("DROP TABLE job")
    make_table(job)
    return sync.pairs(session, plan, str(session.schema))


def put_on(session: Session, plan: Plan, pairs: tuple[Pair, ...]) -> tuple[sync.SyncTrigger, ...]:
    wanted = sync.sync_triggers(plan.id, pairs)
    for trigger in wanted:
        follows = sync.last_foreign_trigger(session, str(session.schema), "job", trigger)
        session.verbatim(trigger.create("job", "CURRENT_USER", follows))
    return wanted


def test_ours_follows_a_foreign_before_trigger_and_sees_its_value(job: App, session: Session, plan: Plan, pairs: tuple[Pair, ...]) -> None:
    theirs = "FOR EACH ROW SET NEW.status = IF(NEW.status = 'done', 'completed', NEW.status)"
    job.run(f"CREATE TRIGGER theirs BEFORE UPDATE ON job {theirs}")
    job.run(f"CREATE TRIGGER `their insert` BEFORE INSERT ON job {theirs}")
    job.run("CREATE TRIGGER aft AFTER UPDATE ON job FOR EACH ROW SET @seen = 1")
    put_on(session, plan, pairs)

    job.run("INSERT INTO job (id, status) VALUES ('a', 'done'), ('b', 'pending')")
    job.run("UPDATE job SET status = 'done' WHERE id = 'b'")

    assert job.rows("SELECT status, state FROM job") == [("completed", "succeeded")] * 2
    assert [t.name for t in catalogue.triggers(session, str(session.schema), "job") if t.timing == "BEFORE"] == [
        "their insert", "rollout_small_bi", "theirs", "rollout_small_bu"]


@pytest.mark.parametrize(("spoil", "state"), [
    ([], SyncState.ON),
    (["DROP TRIGGER rollout_small_bu", "DROP TRIGGER rollout_small_bi"], SyncState.OFF),
    (["DROP TRIGGER rollout_small_bi"], SyncState.PARTIAL),
    (["DROP TRIGGER rollout_small_bu"], SyncState.PARTIAL),
    (["DROP TRIGGER rollout_small_bu", "CREATE TRIGGER rollout_small_bu BEFORE UPDATE ON job FOR EACH ROW SET @x = 1"], SyncState.FOREIGN),
    (["DROP TRIGGER rollout_small_bi", "CREATE TRIGGER rollout_small_bi AFTER INSERT ON job FOR EACH ROW SET @x = 1"], SyncState.FOREIGN),
    (["SET SESSION sql_mode = ''", "DROP TRIGGER rollout_small_bi", "{insert}"], SyncState.FOREIGN),
])
def test_what_stands_of_ours_is_told_by_name_body_and_settings(session: Session, job: App, plan: Plan, pairs: tuple[Pair, ...],
                                                               spoil: list[str], state: SyncState) -> None:
    wanted = put_on(session, plan, pairs)
    for statement in spoil:
        job.run(statement.replace("{insert}", wanted[1].create("job", "CURRENT_USER", None)))

    assert sync.state(session, str(session.schema), "job", wanted) is state


def test_a_body_of_another_map_is_foreign(session: Session, pairs: tuple[Pair, ...], plan: Plan, tmp_path: Path) -> None:
    put_on(session, plan, pairs)
    other = small(tmp_path, steps=RENAMED, tail=SYNC)

    wanted = sync.sync_triggers(other.id, sync.pairs(session, other, str(session.schema)))
    assert sync.state(session, str(session.schema), "job", wanted) is SyncState.FOREIGN


# Pairs that no trigger can serve


@pytest.mark.parametrize(("change", "reason"), [
    ("MODIFY state VARCHAR(32) NOT NULL DEFAULT 'running'", "has defaults 'pending' and 'running', which do not agree"),
    ("MODIFY state VARCHAR(32) NULL", "has defaults 'pending' and NULL, which do not agree"),
    ("MODIFY status VARCHAR(32) NULL", "has a default only on state"),
    ("MODIFY state VARCHAR(32) NOT NULL DEFAULT (LOWER('PENDING'))", "has a default that is not constant"),
    ("MODIFY doneAt DATETIME(3) NULL DEFAULT CURRENT_TIMESTAMP(3)", "has a default that is not constant"),
    ("DROP COLUMN finishedAt", "does not exist"),
])
@pytest.mark.usefixtures("pairs")
def test_a_pair_whose_supplied_side_could_not_be_told_is_refused(job: App, session: Session, plan: Plan, change: str, reason: str) -> None:
    job.run(f"ALTER TABLE job {change}")

    with pytest.raises(Refused) as raised:
        sync.pairs(session, plan, str(session.schema))

    assert raised.value.reason.startswith(reason)
    assert quote("job") not in raised.value.subject
