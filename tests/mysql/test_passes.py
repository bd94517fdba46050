"""Passes over rows: exact, resumable, never in the application's way (cases C51, C55, C60 to C64)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steps import exact_look, passes, passing, waits
from steps.chunks import next_size
from steps.errors import LockTimeout, OwnershipLost, Stopped
from steps.exact_look import Disagreement
from steps.ledger import Ledger
from steps.mysql import Session
from steps.passes import Progress
from steps.plan import Plan
from tests.conftest import STATUSES, App
from tests.mysql.conftest import Clients, Opened, expand
from tests.mysql.passing import MAPPED, ledger_of, walk
from tests.plans import ADD_STATE, STATE, Renamed, small

BOTH = [ADD_STATE, Renamed("doneAt", "finishedAt"), Renamed("note", "internalNote")]
CHUNKS = ("backfill.first_chunk_rows=5", "backfill.largest_chunk_rows=5", "backfill.target_ms=5000")
ADDED = (f"{STATE}, ADD COLUMN finishedAt DATETIME(3) NULL, ADD COLUMN internalNote TEXT NULL, ADD COLUMN touched DATETIME(6) NOT NULL "
         "DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6)")
Fill = Callable[..., Disagreement]


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return small(tmp_path, steps=BOTH, overrides=CHUNKS)


@pytest.fixture
def history(job: App) -> App:
    """23 rows as the old application wrote them, the columns added afterwards, no triggers."""
    with job.connection.cursor() as cursor:
        cursor.executemany("INSERT INTO job (id, status, note, doneAt) VALUES (%s, %s, %s, %s)", [
            (f"k{n:02}", STATUSES[n % 4], f"boom 😀 {n}" if n % 4 == 3 else None, "2026-01-02 03:04:05.678" if n % 4 == 2 else None)
            for n in range(23)])
    job.run(f"ALTER TABLE job {ADDED}")
    return job


@pytest.fixture
def ledger(session: Session, plan: Plan) -> Ledger:
    return ledger_of(session, plan)


@pytest.fixture
def fill(session: Session, plan: Plan, ledger: Ledger) -> Fill:
    def run(told: Callable[[Progress], None] = lambda _: None, check: Callable[[], None] = lambda: None, **settings: Any) -> Disagreement:
        return passes.fill(walk(session, plan, check, **settings), ledger, "first", told)

    return run



def wrong(client: App) -> int:
    return int(client.value(f"SELECT COUNT(*) FROM job WHERE NOT {MAPPED} OR NOT (doneAt <=> finishedAt) OR "
                            "NOT (CAST(note AS BINARY) <=> CAST(internalNote AS BINARY))"))


def test_an_empty_table_is_finished_at_once(fill: Fill, job: App, ledger: Ledger) -> None:
    job.run(f"ALTER TABLE job {ADDED}")

    assert fill() == Disagreement(0, 0, {}, ())
    assert ledger.passes()["first"]["finished_at"]


def test_history_behind_a_default_is_filled_and_update_times_are_kept(fill: Fill, history: App, ledger: Ledger) -> None:
    history.run("UPDATE job SET touched = '2020-01-01 00:00:00.123456'")
    before = history.rows("SELECT id, status, note, doneAt, touched FROM job ORDER BY id")
    assert wrong(history) == 17

    left = fill()

    assert (left.count, left.rows_examined, wrong(history)) == (0, 23, 0)
    assert history.rows("SELECT id, status, note, doneAt, touched FROM job ORDER BY id") == before
    standing = ledger.passes()["first"]
    assert (standing["rows_examined"], standing["rows_changed"], standing["cursor"]) == (23, 17, None)


def test_a_finer_new_word_stays_unless_v0_has_written_its_row_since(fill: Fill, history: App, ledger: Ledger) -> None:
    """Without triggers V0 tries a cancelled job again, which fails: both times it reads `failed`, but it is no cancelled job any more."""
    fill()
    history.run("UPDATE job SET state = 'cancelled' WHERE id IN ('k03', 'k07', 'k11')")
    history.run("UPDATE job SET note = 'failed anew' WHERE id = 'k07'")
    history.run("UPDATE job SET doneAt = '2026-03-04 05:06:07.089' WHERE id = 'k11'")
    ledger.reset_pass("first")

    assert fill().count == 0
    assert wrong(history) == 1  # the cancelled one, whose words agree in their own way
    assert history.rows("SELECT id, state FROM job WHERE id IN ('k03', 'k07', 'k11') ORDER BY id") == [
        ("k03", "cancelled"), ("k07", "failed"), ("k11", "failed")]
    assert ledger.passes()["first"]["rows_changed"] == 2


def test_a_second_time_nothing_is_written(fill: Fill, history: App, ledger: Ledger) -> None:
    fill()
    ledger.reset_pass("first")
    history.run("UPDATE job SET touched = '2020-01-01'")

    assert fill().count == 0
    assert ledger.passes()["first"]["rows_changed"] == 0
    assert history.value("SELECT COUNT(*) FROM job WHERE touched <> '2020-01-01'") == 0


def test_a_pass_that_was_killed_goes_on_behind_the_last_chunk(fill: Fill, history: App, ledger: Ledger) -> None:
    seen: list[int] = []

    def killed(progress: Progress) -> None:
        seen.append(progress.rows_examined)
        if len(seen) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fill(killed)
    standing = ledger.passes()["first"]
    assert (standing["cursor"], standing["rows_examined"], standing["finished_at"]) == ([{"s": "k09"}], 10, None)
    assert history.value(f"SELECT COUNT(*) FROM job WHERE id <= 'k09' AND NOT {MAPPED}") == 0
    assert history.value(f"SELECT COUNT(*) FROM job WHERE id > 'k09' AND NOT {MAPPED}") == 10

    assert fill(lambda progress: seen.append(progress.rows_examined)).count == 0
    assert seen == [5, 10, 15, 20, 23]
    assert (wrong(history), ledger.passes()["first"]["rows_changed"]) == (0, 17)


def test_a_kill_inside_a_chunk_leaves_rows_and_cursor_as_they_were(fill: Fill, history: App, ledger: Ledger, session: Session,
                                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(ledger, "move_pass", killed)
        with pytest.raises(KeyboardInterrupt):
            fill()
    assert (wrong(history), ledger.passes()["first"]["cursor"]) == (17, None)

    fill()
    assert wrong(history) == 0


def test_rows_that_the_application_holds_are_skipped_and_found_later(fill: Fill, history: App, clients: Clients, ledger: Ledger) -> None:
    holder = clients()
    holder.run("START TRANSACTION")
    holder.run("UPDATE job SET status = 'failed' WHERE id = 'k02'")
    first_told: list[float] = []
    lines: list[str] = []
    began = waits.now_s()

    def told(progress: Progress) -> None:
        if not first_told:
            # The pass has been through this row's chunk and holds nothing now: the application is not in its way, nor it in theirs.
            holder.run("UPDATE job SET status = 'completed' WHERE id = 'k01'")
            first_told.append(waits.now_s() - began)
        lines.append(passing.line(progress))
        if progress.sweep == 2:
            holder.run("COMMIT")

    assert fill(told).count == 0
    assert first_told[0] < 1
    assert [line.split(" rows ")[0] for line in lines if "(100 %)" in line] == [
        "first pass: 23", "first pass, sweep 2: 23", "first pass, sweep 3: 23"]
    [row] = passing.passes(ledger)
    assert passing.told(row).startswith("pass first, sweep 3: 23 rows seen, ")
    assert wrong(history) == 0
    assert history.rows("SELECT status, state FROM job WHERE id IN ('k01', 'k02') ORDER BY id") == [
        ("completed", "succeeded"), ("failed", "failed")]
    assert ledger.passes()["first"]["sweep"] == 3


def test_rows_that_stay_locked_stop_the_pass_with_their_number(fill: Fill, history: App, clients: Clients, ledger: Ledger) -> None:
    holder = clients()
    holder.run("START TRANSACTION")
    holder.rows("SELECT * FROM job WHERE id IN ('k01', 'k02') FOR UPDATE")

    with pytest.raises(Stopped, match="2 rows stayed locked by the application through 3 sweeps") as raised:
        fill(max_passes=3)

    assert raised.value.exit_code == 4
    holder.run("COMMIT")
    assert wrong(history) == 2
    assert ledger.passes()["first"]["finished_at"] is None
    assert fill().count == 0


def test_rows_born_behind_the_cursor_are_found(fill: Fill, history: App) -> None:
    born: list[int] = []

    def told(progress: Progress) -> None:
        if progress.rows_examined == 15 and not born:
            born.append(history.run("INSERT INTO job (id, status) VALUES ('a00', 'completed')"))

    assert fill(told).count == 0
    assert history.rows("SELECT state FROM job WHERE id = 'a00'") == [("succeeded",)]


def test_a_row_that_moves_between_look_and_write_keeps_what_the_application_wrote(fill: Fill, history: App, session: Session,
                                                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    real, moved = session.query, []

    def moving(sql: str, *values: Any) -> Any:
        if "FOR UPDATE" in sql and not moved:
            moved.append(history.run("UPDATE job SET status = 'completed' WHERE id = 'k01'"))
        return real(sql, *values)

    monkeypatch.setattr(session, "query", moving)

    assert fill().count == 0
    assert history.rows("SELECT status, state FROM job WHERE id = 'k01'") == [("completed", "succeeded")]


def test_with_an_index_on_a_filled_column_each_row_is_its_own_transaction(fill: Fill, history: App, session: Session,
                                                                         ledger: Ledger) -> None:
    def commits() -> int:
        return int(session.one("SHOW SESSION STATUS LIKE 'Com_commit'")[1])

    before = commits()
    fill()
    together = commits() - before
    history.run("UPDATE job SET state = 'pending', finishedAt = NULL, internalNote = NULL")
    history.run("ALTER TABLE job ADD INDEX by_state (state)")
    ledger.reset_pass("first")

    before = commits()
    fill()
    assert together == 5  # one a chunk
    assert commits() - before == 17
    assert wrong(history) == 0
    standing = ledger.passes()["first"]
    assert (standing["rows_examined"], standing["rows_changed"]) == (23, 17)


@pytest.mark.parametrize("value", ["secret-value", "Completed", "completed ", "complétéd", "", "cancelled"])
def test_what_no_map_knows_is_left_and_named_by_key_never_by_content(fill: Fill, history: App, value: str) -> None:
    history.run("UPDATE job SET status = %s WHERE id = 'k06'", value)

    left = fill()

    assert (left.count, left.by_pair, left.keys) == (1, {"status and state": 1}, ("k06",))
    assert history.rows("SELECT status, state FROM job WHERE id = 'k06'") == [(value, "pending")]
    assert wrong(history) == 1


def test_phase_1_stops_at_unmapped_values_with_keys_and_goes_on_when_they_are_gone(job: App, plan: Plan, opened_on: Opened) -> None:
    job.run("INSERT INTO job (id, status, note) VALUES ('good', 'completed', 'x'), ('bad', 'secret-value', 'private text')")
    rollout = opened_on(plan)

    with pytest.raises(Stopped, match=r"1 rows hold values that the plan's maps do not know \(status and state; keys: bad\)") as raised:
        expand(rollout)

    told = str(raised.value) + str(rollout.ledger.events()) + str(rollout.ledger.runs())
    assert not {"secret-value", "private"} & set(told.replace("'", " ").split())
    assert "secret-value" not in told
    assert job.rows("SELECT status, state FROM job WHERE id = 'good'") == [("completed", "succeeded")]

    job.run("UPDATE job SET status = 'failed' WHERE id = 'bad'")
    expand(opened_on(plan))
    assert job.rows("SELECT status, state, internalNote FROM job ORDER BY id") == [
        ("failed", "failed", "private text"), ("completed", "succeeded", "x")]


def test_a_deadlock_is_tried_again_with_the_same_rows(fill: Fill, history: App, session: Session, ledger: Ledger,
                                                     monkeypatch: pytest.MonkeyPatch, slept: list[float]) -> None:
    real, left = session.run, iter(range(3))

    def deadlocked(sql: str, *values: Any) -> int:
        if sql.startswith("UPDATE") and "`job`" in sql and next(left, None) is not None:
            raise LockTimeout(sql, "MySQL error 1213", "", 1213)
        return real(sql, *values)

    monkeypatch.setattr(session, "run", deadlocked)

    assert fill().count == 0
    assert (wrong(history), ledger.passes()["first"]["rows_examined"]) == (0, 23)


def test_a_lost_table_stops_the_pass_at_the_edge_of_a_chunk(fill: Fill, history: App, ledger: Ledger) -> None:
    edges: list[int] = []

    def check() -> None:
        edges.append(1)
        if len(edges) == 3:
            raise OwnershipLost("table job", "taken over", "run again")

    with pytest.raises(OwnershipLost):
        fill(check=check)

    assert ledger.passes()["first"]["rows_examined"] == 10
    assert history.value(f"SELECT COUNT(*) FROM job WHERE id > 'k09' AND NOT {MAPPED}") == 10


@pytest.mark.parametrize(("change", "pair"), [
    ("state = 'locked'", "status and state"), ("state = 'Pending'", "status and state"),
    ("finishedAt = '2026-01-02 03:04:05.679'", "doneAt and finishedAt"), ("internalNote = ''", "note and internalNote"),
    ("internalNote = 'BOOM'", "note and internalNote"), ("note = 'x '", "note and internalNote"),
])
def test_a_difference_is_found_whatever_it_is(fill: Fill, history: App, session: Session, plan: Plan, change: str, pair: str) -> None:
    fill()
    history.run("UPDATE job SET internalNote = 'boom', note = 'boom' WHERE id = 'k02'" if "BOOM" in change else "DO 0")
    history.run(f"UPDATE job SET {change} WHERE id = 'k02'")

    found = exact_look.disagreements(walk(session, plan))
    assert (found.rows_examined, found.count, found.by_pair, found.keys) == (23, 1, {pair: 1}, ("k02",))


def test_a_look_sees_what_changed_after_the_one_before(history: App, fill: Fill, session: Session, plan: Plan) -> None:
    fill()
    assert exact_look.disagreements(walk(session, plan)).count == 0
    history.run("UPDATE job SET state = 'failed'")

    assert exact_look.disagreements(walk(session, plan)).count == 23 - 5


def test_a_row_caught_half_way_is_read_again_before_it_counts(history: App, fill: Fill, session: Session, plan: Plan,
                                                              monkeypatch: pytest.MonkeyPatch) -> None:
    fill()
    history.run("UPDATE job SET status = 'failed' WHERE id IN ('k00', 'k01')")
    monkeypatch.setattr(waits, "sleep_s", lambda _: history.run("UPDATE job SET state = 'failed' WHERE id = 'k00'"))

    assert exact_look.disagreements(walk(session, plan)).keys == ("k01",)


def test_chunks_follow_the_time_target() -> None:
    assert [next_size(1000, seconds, 200, 5000) for seconds in (0.2, 0.1, 0.01, 0.4, 60)] == [1000, 2000, 2000, 500, 500]
    assert next_size(4000, 0.01, 200, 5000) == 5000
    assert next_size(1, 60, 200, 5000) == 1
    assert [next_size(rows, seconds, 8, 5000) for rows, seconds in ((10, 0.05), (15, 0.05), (4, 0.05), (10, 0.1))] == [10, 10, 4, 5]


def test_round_trips_that_outlast_the_target_do_not_shrink_chunks_to_a_row(session: Session, plan: Plan, history: App,
                                                                         monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine each round trip waits for its turn; the work on the rows is what chunks follow."""
    clock = [1000.0]
    monkeypatch.setattr(waits, "now_s", lambda: clock[0])
    monkeypatch.setattr(waits, "sleep_s", lambda seconds: clock.append(clock.pop() + seconds))
    real, sizes = Session.run, list[int]()

    def slow(self: Session, sql: str, *values: object) -> int:
        clock[0] += 0.05 if sql.startswith(("START", "COMMIT")) else 0.0
        return real(self, sql, *values)

    monkeypatch.setattr(Session, "run", slow)
    passes.fill(walk(session, plan, first_chunk_rows=2, largest_chunk_rows=8, target_ms=8), ledger_of(session, plan), "first",
                lambda progress: sizes.append(progress.rows_examined))

    assert sizes[:3] == [2, 6, 14]
