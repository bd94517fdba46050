"""A pass waits while a person or the server's health says so, says why, holds nothing meanwhile, and goes on by itself."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steps import control, exact_look, health, passes, passing, sync, throttle, waits
from steps.errors import OwnershipLost, Stopped
from steps.exact_look import Disagreement
from steps.health import Reading
from steps.keyset import Keyset
from steps.ledger import Ledger
from steps.mysql import Session
from steps.pace import Progress
from steps.plan import Plan
from steps.replicas import Address, Replica
from steps.walk import Walk
from tests.conftest import STATUSES, App
from tests.plans import STATE, small

Fill = Callable[..., Disagreement]
CHUNKS = ("backfill.first_chunk_rows=5", "backfill.largest_chunk_rows=5", "backfill.target_ms=5000")


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return small(tmp_path, overrides=CHUNKS)


@pytest.fixture
def history(job: App, monkeypatch: pytest.MonkeyPatch) -> App:
    with job.connection.cursor() as cursor:
        cursor.executemany("INSERT INTO job (id, status) VALUES (%s, %s)", [(f"k{n:02}", STATUSES[n % 4]) for n in range(40)])
    job.run(f"ALTER TABLE job {STATE}")
    for every in ("LOOK_EVERY_S", "HEALTH_EVERY_S"):
        monkeypatch.setattr(throttle, every, 0)  # look before each chunk
    return job


@pytest.fixture
def ledger(empty: Any, plan: Plan) -> Any:
    with Session(empty) as session:
        found = Ledger(session, empty.schema, "job", plan.id)
        found.create()
        yield found


@pytest.fixture
def by_somebody(empty: Any, plan: Plan) -> Any:
    """The ledger as another machine sees it."""
    with Session(empty) as session:
        yield Ledger(session, empty.schema, "job", plan.id)


@pytest.fixture
def fill(session: Session, plan: Plan, ledger: Ledger) -> Fill:
    def run(told: Callable[[Progress], None] = lambda _: None, **settings: Any) -> Disagreement:
        walk = Walk(session, Keyset.of(session, str(session.schema), "job"), sync.pairs(session, plan, str(session.schema)),
                    plan.backfill.model_copy(update=settings))
        return passes.fill(walk, ledger, "first", told)

    return run


def told_of(ledger: Ledger) -> list[tuple[str, str]]:
    return [(event["outcome"], event["detail"]["why"]) for event in ledger.events() if event["step"] == "pass first"]


def unfilled(client: App) -> int:
    return int(client.value("SELECT COUNT(*) FROM job WHERE status <> 'pending' AND state = 'pending'"))


@pytest.mark.parametrize("settings", [{}, {"mode": "full_speed", "connections": 3}])
def test_a_pause_is_obeyed_told_and_taken_back(fill: Fill, history: App, ledger: Ledger, by_somebody: Ledger, settings: dict[str, Any],
                                               monkeypatch: pytest.MonkeyPatch) -> None:
    control.ask(by_somebody, control.PAUSE, "ann", "lunch")
    seen: list[tuple[int, Any, int]] = []
    real = waits.sleep_s

    one_lane_at_a_time = threading.Lock()
    others = [0, *(number for (number,) in history.rows("SELECT trx_mysql_thread_id FROM information_schema.INNODB_TRX"))]

    def somebody_looks(seconds: float) -> None:
        with one_lane_at_a_time:
            if seconds == throttle.POLL_S and len(seen) < 3:
                threading.Event().wait(0.12)  # the server renews INNODB_TRX no more often than that
                seen.append((unfilled(history), history.value("SELECT paused_for FROM _rollout_pace"),
                             history.value("SELECT COUNT(*) FROM information_schema.INNODB_TRX WHERE trx_mysql_thread_id NOT IN "
                                           f"({', '.join(map(str, others))})")))
                if len(seen) == 3:
                    control.ask(by_somebody, control.RUN, "ann", "back")
        real(seconds)

    monkeypatch.setattr(waits, "sleep_s", somebody_looks)
    assert fill(**settings).count == 0
    assert [rows for rows, _, _ in seen] == [30, 30, 30]
    assert [open_transactions for _, _, open_transactions in seen][1:] == [0, 0]
    assert seen[2][1] == "paused: ann asked for it: lunch"
    assert told_of(ledger) == [("paused", "paused: ann asked for it: lunch"), ("resumed", "paused: ann asked for it: lunch")]
    assert unfilled(history) == 0


def test_a_stop_ends_the_pass_at_the_edge_of_a_chunk_and_the_next_run_goes_on(fill: Fill, history: App, ledger: Ledger,
                                                                              by_somebody: Ledger) -> None:
    def told(progress: Progress) -> None:
        if progress.rows_examined == 10:
            control.ask(by_somebody, control.STOP, "ann", "incident")

    with pytest.raises(Stopped, match="stopped: ann asked for it: incident") as raised:
        fill(told)

    assert raised.value.exit_code == 4
    assert ledger.passes()["first"]["rows_examined"] == 10
    assert control.wish(ledger).wanted == control.RUN
    assert fill().count == 0
    assert ledger.passes()["first"]["rows_examined"] == 40


def test_a_stop_that_came_before_the_pass_began_stops_it_at_its_first_chunk(fill: Fill, history: App, ledger: Ledger,
                                                                            by_somebody: Ledger) -> None:
    control.ask(by_somebody, control.STOP, "ann", "early")

    with pytest.raises(Stopped, match="stopped: ann asked for it: early"):
        fill()

    assert (unfilled(history), ledger.passes()["first"]["rows_examined"]) == (30, 0)


def test_a_limit_makes_chunks_small_and_far_between(fill: Fill, history: App, by_somebody: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1000.0]
    monkeypatch.setattr(waits, "now_s", lambda: clock[0])
    monkeypatch.setattr(waits, "sleep_s", lambda seconds: clock.append(clock.pop() + seconds))
    control.limit(by_somebody, 4)
    seen: list[tuple[int, float]] = []

    def told(progress: Progress) -> None:
        seen.append((progress.rows_examined, clock[0] - 1000))
        if progress.rows_examined == 12:
            control.limit(by_somebody, None)

    assert fill(told).count == 0
    assert seen[:6] == [(2 * n, 0.5 * (n - 1)) for n in range(1, 7)]  # two rows each half second
    assert seen[6:9] == [(17, 2.5), (22, 2.5), (27, 2.5)]
    assert control.wish(by_somebody).rows_per_s is None


def test_the_plans_own_limit_holds_until_a_person_asks_for_another(fill: Fill, history: App, by_somebody: Ledger,
                                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1000.0]
    monkeypatch.setattr(waits, "now_s", lambda: clock[0])
    monkeypatch.setattr(waits, "sleep_s", lambda seconds: clock.append(clock.pop() + seconds))
    seen: list[tuple[int, float, int | None]] = []

    def told(progress: Progress) -> None:
        seen.append((progress.rows_examined, clock[0] - 1000, progress.limit))
        if progress.rows_examined == 6:
            control.limit(by_somebody, 8)

    assert fill(told, rows_per_s=4).count == 0
    assert [row[:2] for row in seen[:3]] == [(2, 0.0), (4, 0.5), (6, 1.0)]  # two rows each half second
    assert [row[0] for row in seen[3:6]] == [10, 14, 18]
    assert (seen[0][2], seen[5][2]) == (4, 8)


def test_a_look_at_every_row_is_limited_and_in_the_ledger_while_it_goes(session: Session, plan: Plan, history: App, ledger: Ledger,
                                                                        monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1000.0]
    monkeypatch.setattr(waits, "now_s", lambda: clock[0])
    monkeypatch.setattr(waits, "sleep_s", lambda seconds: clock.append(clock.pop() + seconds))
    walk = Walk(session, Keyset.of(session, str(session.schema), "job"), sync.pairs(session, plan, str(session.schema)),
                plan.backfill.model_copy(update={"rows_per_s": 20}))
    standing: list[int] = []

    found = exact_look.looked(walk, ledger, "verify", lambda _: standing.append(ledger.passes()["verify"]["rows_examined"]))

    assert (found.rows_examined, found.count) == (40, 30)
    assert clock[0] - 1000 >= 40 / 20 - 1
    assert (len(standing), standing[-1]) == (9, 40)
    assert 0 < standing[4] < 40
    assert ledger.passes()["verify"]["finished_at"]


def test_a_look_at_every_row_can_be_stopped_and_begins_anew(session: Session, plan: Plan, history: App, ledger: Ledger,
                                                            by_somebody: Ledger) -> None:
    walk = Walk(session, Keyset.of(session, str(session.schema), "job"), sync.pairs(session, plan, str(session.schema)), plan.backfill)

    with pytest.raises(Stopped, match="pass parity: stopped: ann asked for it: enough"):
        exact_look.looked(walk, ledger, "parity", lambda _: control.ask(by_somebody, control.STOP, "ann", "enough"))
    assert ledger.passes()["parity"]["finished_at"] is None

    assert exact_look.looked(walk, ledger, "parity").rows_examined == 40
    assert ledger.passes()["parity"]["rows_examined"] == 40


def test_whoever_lost_the_table_does_not_begin_a_look_on_record(session: Session, plan: Plan, history: App, ledger: Ledger,
                                                                monkeypatch: pytest.MonkeyPatch) -> None:
    walk = Walk(session, Keyset.of(session, str(session.schema), "job"), sync.pairs(session, plan, str(session.schema)), plan.backfill)
    exact_look.looked(walk, ledger, "verify")
    before = ledger.passes()

    def lost(_: Session) -> None:
        raise OwnershipLost("table job", "somebody else works on it")

    monkeypatch.setattr(ledger, "fence", lost)
    with pytest.raises(OwnershipLost):
        exact_look.looked(walk, ledger, "verify")

    assert ledger.passes() == before


def test_an_unhealthy_server_is_waited_for(fill: Fill, history: App, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    values = iter([3, 99, None, 60, *[1] * 100])

    def look() -> Reading:
        value = next(values)
        return Reading("load", value, 50, " %", "" if value else "error 1227: no right")

    monkeypatch.setattr(health, "signals", lambda *_: [look])
    assert fill().count == 0
    assert told_of(ledger) == [("paused", "load is 99 %, over 50 %"), ("resumed", "load is 60 %, over 50 %")]
    assert unfilled(history) == 0


def test_a_server_that_stays_unhealthy_stops_the_pass(fill: Fill, history: App, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "signals", lambda *_: [lambda: Reading("load", None, 50, "", "error 1227: no right")])

    with pytest.raises(Stopped, match=r"waited 0 s: load cannot be read \(error 1227: no right\)") as raised:
        fill(max_pause_s=0)

    assert (raised.value.exit_code, unfilled(history)) == (4, 30)


def test_every_signal_can_be_read_and_is_over_a_limit_of_nearly_nothing(ledger: Ledger, session: Session, plan: Plan) -> None:
    wide = plan.backfill.model_copy(update={"max_threads_running": 10**6, "max_history_length": 10**9, "max_redo_percent": 100})
    readings = [signal() for signal in health.signals(ledger, wide)]
    assert [reading.name for reading in readings] == [
        "number of running threads", "history list length", "redo log in use", "commit of the application"]
    assert [reading.problem for reading in readings] == ["", "", "", ""]
    assert all(reading.value is not None for reading in readings)

    tight = wide.model_copy(update={"max_threads_running": 0.5, "max_redo_percent": 0})
    problems = [signal().problem for signal in health.signals(ledger, tight)]
    assert problems[0].startswith("number of running threads is ")
    assert len(problems) == 3


def test_what_cannot_be_read_is_unhealthy_never_zero(session: Session, plan: Plan, empty: Any) -> None:
    name = f"u{empty.schema[-12:]}"
    session.run(f"CREATE USER {name}@'%' IDENTIFIED BY 'x'")
    session.run(f"GRANT ALL ON `{empty.schema}`.* TO {name}@'%'")
    from steps.target import Target
    with Session(Target(empty.url.set(username=name, password="x"))) as poor:
        ledger = Ledger(poor, empty.schema, "job", plan.id)
        readings = {reading.name: reading for reading in (signal() for signal in health.signals(ledger, plan.backfill))}
    session.run(f"DROP USER {name}@'%'")

    assert "1227" in readings["history list length"].problem
    assert readings["history list length"].strain == float("inf")
    assert readings["number of running threads"].value


def test_a_replica_that_stands_still_pauses_the_pass_until_it_moves(fill: Fill, history: App, ledger: Ledger, session: Session,
                                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    """The replica is another schema to which the test carries the heartbeat by hand."""
    copy = f"{session.schema}_r"
    session.run(f"CREATE DATABASE `{copy}`")
    session.run(f"CREATE TABLE `{copy}`._rollout_pace LIKE _rollout_pace")
    monkeypatch.setenv("REPLICA_ONE", session.target.url.render_as_string(hide_password=False))
    real = Replica._beat

    def there(self: Replica) -> object:
        beat = real(self)
        there_is = session.value(f"SELECT at FROM `{copy}`._rollout_pace")
        return there_is if beat else None

    monkeypatch.setattr(Replica, "_beat", there)
    polls: list[int] = []
    sleep = waits.sleep_s

    def applies(seconds: float) -> None:
        if seconds == throttle.POLL_S:
            polls.append(unfilled(history))
            if len(polls) == 4:
                session.run(f"REPLACE INTO `{copy}`._rollout_pace SELECT * FROM _rollout_pace")
            if len(polls) == 8:
                session.run(f"UPDATE `{copy}`._rollout_pace SET at = at + INTERVAL 1 HOUR")
        sleep(seconds)

    monkeypatch.setattr(waits, "sleep_s", applies)
    session.run(f"INSERT INTO _rollout_pace VALUES ('{session.schema}', 'job', 'small', 'first', 0, 0, 0, 0, NULL, UTC_TIMESTAMP(3))")
    session.run(f"INSERT INTO `{copy}`._rollout_pace SELECT table_schema, table_name, plan_id, `pass`, 0, 0, 0, 0, NULL, "
                "at - INTERVAL 1 MINUTE FROM _rollout_pace")
    try:
        assert fill(replicas=("REPLICA_ONE",), max_replica_lag_s=5).count == 0
    finally:
        session.run(f"DROP DATABASE `{copy}`")

    assert polls[:3] == [30, 30, 30]
    assert told_of(ledger)[0][0] == "paused"
    assert told_of(ledger)[0][1].startswith("lag of replica REPLICA_ONE is 6")
    assert told_of(ledger)[-1][0] == "resumed"
    assert unfilled(history) == 0


def test_a_replica_without_an_address_is_unhealthy(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOWHERE", raising=False)
    assert "environment variable NOWHERE is not set" in Replica(ledger, "first", Address("NOWHERE", "NOWHERE"), 5).read().problem


def test_a_replica_that_hangs_holds_up_nobody(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(waits, "now_s", lambda: clock[0])
    answers = threading.Event()
    monkeypatch.setattr(Replica, "_beat", lambda _: answers.wait(30) and None)
    replica = Replica(ledger, "first", Address("REPLICA_ONE", "REPLICA_ONE"), 5)

    assert replica.read().problem == ""
    clock[0] += 6
    assert replica.read().problem == "lag of replica REPLICA_ONE is 6 s, over 5 s"
    answers.set()


@pytest.fixture
def short_pause(ledger: Ledger, by_somebody: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody paused all passes, and takes that back when one first waits for it."""
    control.ask(by_somebody, control.PAUSE, "ann", "lunch")
    real = waits.sleep_s

    def then(seconds: float) -> None:
        if seconds == throttle.POLL_S:
            control.ask(by_somebody, control.RUN, "ann", "back")
        real(seconds)

    monkeypatch.setattr(waits, "sleep_s", then)


@pytest.mark.usefixtures("short_pause")
def test_while_it_waits_on_one_connection_somebody_is_told(fill: Fill, history: App) -> None:
    seen: list[str] = []
    fill(lambda progress: seen.append(progress.paused_for))

    assert seen[0] == "paused: ann asked for it: lunch"
    assert seen[-1] == ""


@pytest.mark.usefixtures("short_pause")
def test_the_closing_look_can_be_paused_and_says_how_far_it_is(session: Session, plan: Plan, history: App, ledger: Ledger) -> None:
    lines: list[str] = []
    walk = Walk(session, Keyset.of(session, str(session.schema), "job"), sync.pairs(session, plan, str(session.schema)), plan.backfill)
    found = exact_look.looked(walk, ledger, "closing", lambda progress: lines.append(passing.line(progress)))

    assert (found.rows_examined, found.count) == (40, 30)
    assert lines[0].startswith("closing pass: 0 of about ")
    assert lines[0].endswith("0 filled, paused: ann asked for it: lunch")


def test_a_pass_that_was_stopped_leaves_its_own_rows_and_rate_in_the_trail(fill: Fill, history: App, ledger: Ledger,
                                                                           by_somebody: Ledger) -> None:
    def told(progress: Progress) -> None:
        if progress.rows_examined == 10:
            control.ask(by_somebody, control.STOP, "ann", "incident")

    with pytest.raises(Stopped):
        fill(told)
    fill()

    paces = [event for event in ledger.events() if event["step"] == "pace of pass first"]
    assert [(event["outcome"], event["row_count"]) for event in paces] == [("stopped", 10), ("done", 30)]


def test_an_estimate_that_is_too_low_is_no_end(fill: Fill, history: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes.catalogue, "estimated_rows", lambda *_: 12)
    seen: list[Progress] = []
    fill(seen.append)

    past = [progress for progress in seen if 12 < progress.rows_examined < 40]
    assert past
    assert {(progress.rows_left, progress.eta_s) for progress in past} == {(None, None)}
    assert all("rows, more than the server estimated" in passing.line(progress) for progress in past)
    assert (seen[-1].rows_left, seen[-1].eta_s) == (0, 0)


def test_the_time_of_a_pause_is_not_time_of_work(monkeypatch: pytest.MonkeyPatch) -> None:
    from steps.pace import Pace
    clock = [100.0]
    monkeypatch.setattr(waits, "now_s", lambda: clock[0])
    pace = Pace("first", lambda _: None)
    pace.begin(1, 0, 0, 1000)
    clock[0] += 10
    pace.did(200, 200, 10)
    pace.pause("because")
    clock[0] += 3600
    assert (pace.progress().rows_per_s, pace.progress().eta_s, pace.progress().paused_for) == (20, 40, "because")
    pace.go_on()
    clock[0] += 10
    pace.did(200, 200, 10)

    assert (pace.progress().rows_per_s, pace.progress().eta_s, pace.worked_s(), pace.paused_s()) == (20, 30, 20, 3600)
    assert pace.summary()["paused s"] == 3600
