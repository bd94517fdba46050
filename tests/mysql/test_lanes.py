"""Several connections on one pass: each row once, wherever somebody dies, and never the server's last connections (cases C83, C94)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steps import chunks, lanes, passes
from steps.errors import OwnershipLost, StatementFailed
from steps.ledger import Ledger
from steps.mysql import Session
from steps.pace import Progress
from steps.plan import Plan
from tests.conftest import STATUSES, App
from tests.mysql.passing import MAPPED, ledger_of, walk
from tests.plans import STATE, small

ROWS = 203
LANES = ("backfill.mode=full_speed", "backfill.connections=3", "backfill.first_chunk_rows=5", "backfill.largest_chunk_rows=5",
         "backfill.target_ms=5000")


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return small(tmp_path, overrides=LANES)


@pytest.fixture
def history(job: App) -> App:
    with job.connection.cursor() as cursor:
        cursor.executemany("INSERT INTO job (id, status) VALUES (%s, %s)", [(f"k{n:03}", STATUSES[n % 4]) for n in range(ROWS)])
    job.run(f"ALTER TABLE job {STATE}")
    return job


@pytest.fixture
def ledger(session: Session, plan: Plan) -> Ledger:
    return ledger_of(session, plan)



def wrong(client: App) -> int:
    return int(client.value(f"SELECT COUNT(*) FROM job WHERE NOT {MAPPED}"))


def test_lanes_fill_every_row_once_and_leave_no_lane_behind(session: Session, plan: Plan, ledger: Ledger, history: App) -> None:
    told: list[Progress] = []

    assert passes.fill(walk(session, plan), ledger, "first", told.append).count == 0

    standing = ledger.passes()["first"]
    assert (standing["rows_examined"], standing["rows_changed"], standing["cursor"]) == (ROWS, ROWS * 3 // 4, None)
    assert (wrong(history), history.value("SELECT COUNT(*) FROM _rollout_lane")) == (0, 0)
    assert (told[-1].rows_examined, told[-1].rows_left) == (ROWS, 0)


@pytest.mark.parametrize("resumed", [{"mode": "gentle", "connections": None}, {"connections": 2}, {}])
def test_a_pass_that_died_in_its_lanes_goes_on_behind_each_lanes_last_chunk(session: Session, plan: Plan, ledger: Ledger, history: App,
                                                                            resumed: dict[str, Any]) -> None:
    edges: list[int] = []

    def check(*_: object) -> None:
        edges.append(1)
        if len(edges) > 17:
            raise OwnershipLost("table job", "taken over", "run again")

    with pytest.raises(OwnershipLost):
        passes.fill(walk(session, plan, check), ledger, "first")
    done = ledger.passes()["first"]["rows_examined"]
    assert 0 < done < ROWS
    assert history.value("SELECT COUNT(*) FROM _rollout_lane") > 0
    assert wrong(history) == ROWS * 3 // 4 - ledger.passes()["first"]["rows_changed"]

    assert passes.fill(walk(session, plan, **resumed), ledger, "first").count == 0
    standing = ledger.passes()["first"]
    assert (standing["rows_examined"], standing["rows_changed"]) == (ROWS, ROWS * 3 // 4)  # no finished chunk was done again
    assert (wrong(history), history.value("SELECT COUNT(*) FROM _rollout_lane")) == (0, 0)


def test_a_reset_forgets_the_lanes_too(session: Session, plan: Plan, ledger: Ledger, history: App) -> None:
    ledger.start_pass("first")
    history.run("INSERT INTO _rollout_lane VALUES (DATABASE(), 'job', %s, 'first', 1, NULL, '[{\"s\": \"k009\"}]', 5, 4)", plan.id)
    assert ledger.passes()["first"]["rows_examined"] == 5

    ledger.reset_pass("first")

    assert (ledger.passes(), history.value("SELECT COUNT(*) FROM _rollout_lane")) == ({}, 0)


def test_rows_that_the_application_holds_are_left_for_another_sweep(session: Session, plan: Plan, ledger: Ledger, history: App,
                                                                    clients: Callable[[], App]) -> None:
    holder = clients()
    holder.run("START TRANSACTION")
    holder.run("UPDATE job SET status = 'failed' WHERE id = 'k102'")

    def told(progress: Progress) -> None:
        if progress.sweep == 2:
            holder.run("ROLLBACK")

    assert passes.fill(walk(session, plan), ledger, "first", told).count == 0
    assert (wrong(history), history.rows("SELECT status, state FROM job WHERE id = 'k102'")) == (0, [("completed", "succeeded")])
    assert ledger.passes()["first"]["sweep"] > 1


def test_the_servers_last_connections_are_left_to_the_application(session: Session, plan: Plan, history: App,
                                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    assert lanes.how_many(walk(session, plan)) == 3
    assert lanes.how_many(walk(session, plan, connections=16)) == 16
    assert lanes.how_many(walk(session, plan, mode="gentle", connections=None)) == 1

    monkeypatch.setattr(lanes, "SHARE_FREE", 1.0)
    assert lanes.how_many(walk(session, plan, connections=16)) == 1


def test_a_lane_that_is_turned_away_is_done_without(session: Session, plan: Plan, ledger: Ledger, history: App,
                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    real, opened = lanes.Session, list[object]()

    def turning_away(target: object, **more: object) -> Session:
        opened.append(target)
        if len(opened) != 2:
            from steps.errors import Unreachable
            raise Unreachable("server", "MySQL error 1226: max_user_connections", "")
        return real(target, **more)

    monkeypatch.setattr(lanes, "Session", turning_away)
    assert passes.fill(walk(session, plan), ledger, "first").count == 0
    assert (len(opened), wrong(history)) == (3, 0)


def test_foreign_keys_are_checked_again_after_a_pass(session: Session, plan: Plan, ledger: Ledger, history: App) -> None:
    seen: list[int] = []
    passes.fill(walk(session, plan, mode="gentle", connections=1), ledger, "first",
                lambda _: seen.append(session.value("SELECT @@foreign_key_checks")))

    assert set(seen) == {0}
    assert session.value("SELECT @@foreign_key_checks") == 1


def test_foreign_keys_of_a_filled_column_are_checked(session: Session, plan: Plan, ledger: Ledger, history: App) -> None:
    history.run("CREATE TABLE states (name VARCHAR(32) COLLATE utf8mb4_unicode_ci PRIMARY KEY)")
    history.run("INSERT INTO states VALUES ('pending'), ('running'), ('succeeded')")
    history.run("ALTER TABLE job ADD FOREIGN KEY (state) REFERENCES states (name)")

    with pytest.raises(Exception, match="the server refused 50 rows") as raised:
        passes.fill(walk(session, plan), ledger, "first")

    assert "1452" in str(raised.value)
    assert history.value("SELECT COUNT(*) FROM job WHERE state = 'failed'") == 0
    assert history.value("SELECT COUNT(*) FROM job WHERE status = 'completed' AND state <> 'succeeded'") == 0


def test_a_foreign_key_checks_only_where_it_could_matter(session: Session, plan: Plan, history: App) -> None:
    history.run("ALTER TABLE job ADD COLUMN boss VARCHAR(191) NULL COLLATE utf8mb4_unicode_ci, ADD FOREIGN KEY (boss) REFERENCES job (id)")
    assert not chunks.filled_column_is_indexed(walk(session, plan))

    history.run("ALTER TABLE job ADD COLUMN upper VARCHAR(32) AS (UPPER(state)) VIRTUAL, ADD INDEX (upper)")
    assert chunks.filled_column_is_indexed(walk(session, plan))


def test_statement_failed_is_not_retried_for_what_no_row_can_help(session: Session, plan: Plan, ledger: Ledger, history: App,
                                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    real = Session.run

    def denied(self: Session, sql: str, *values: Any) -> int:
        if sql.startswith("UPDATE") and "`job`" in sql:
            raise StatementFailed(sql, "MySQL error 1142: UPDATE command denied", "", 1142)
        return real(self, sql, *values)

    monkeypatch.setattr(Session, "run", denied)
    with pytest.raises(StatementFailed, match="1142"):
        passes.fill(walk(session, plan), ledger, "first")

    assert history.value("SELECT COUNT(*) FROM _rollout_quarantine") == 0
