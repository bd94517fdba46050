"""The ledger: empty where nothing was ever run, append-only, masked, and in one place."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from steps import masking
from steps.cancellation import Cancelled
from steps.errors import ConnectionLost, OwnershipLost, Refused, Stopped
from steps.ledger import SCHEMA_VERSION, TABLES, Event, Ledger
from steps.mysql import VALUE, Session, quote
from steps.phase import Phase
from steps.target import Target
from tests.conftest import App
from tests.mysql.conftest import Opened, expand
from tests.plans import small


@pytest.fixture
def ledger(session: Session) -> Ledger:
    return Ledger(session, str(session.schema), "job", "small")


@pytest.fixture
def elsewhere(session: Session) -> Iterator[str]:
    """Another schema, empty."""
    name = f"{session.schema}_ledger"
    session.run(f"CREATE DATABASE {quote(name)}")
    yield name
    session.run(f"DROP DATABASE {quote(name)}")


def tables(session: Session, schema: str) -> set[str]:
    found = session.query(f"SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = {VALUE}", schema)
    return {str(name) for (name,) in found}


def test_a_virgin_server_reads_as_an_empty_ledger_and_stays_virgin(ledger: Ledger, session: Session) -> None:
    assert (ledger.runs(), ledger.events(), ledger.phases(), ledger.passes(), ledger.plan()) == ([], [], {}, {}, None)
    assert ledger.phase_state(Phase.DEPLOY) == "-"
    assert tables(session, str(session.schema)) == set()


def test_making_it_twice_keeps_what_is_in_it(ledger: Ledger, session: Session) -> None:
    ledger.create()
    ledger.set_phase(Phase.DEPLOY, "done", {"how": "manual"})
    ledger.create()

    assert ledger.phases()[Phase.DEPLOY]["detail"] == {"how": "manual"}
    assert tables(session, str(session.schema)) == {f"_rollout_{name}" for name in TABLES}


def test_another_schema_version_is_refused_and_nothing_is_written(ledger: Ledger, job: App) -> None:
    ledger.create()
    job.run("UPDATE _rollout_meta SET schema_version = 99")

    with pytest.raises(Refused, match=f"has schema version 99, this tool knows {SCHEMA_VERSION}") as raised:
        ledger.create()

    assert raised.value.exit_code == 3
    assert job.value("SELECT schema_version FROM _rollout_meta") == 99


def test_a_run_is_recorded_from_start_to_end(ledger: Ledger) -> None:
    ledger.create()
    with ledger.run("run", "anna", "because", {"through": "verify"}) as run_id:
        [open_run] = ledger.runs()
        assert (open_run["run_id"], open_run["ended_at"], open_run["exit_code"]) == (run_id, None, None)

    [ended] = ledger.runs()
    assert (ended["verb"], ended["actor"], ended["reason"], ended["options"], ended["exit_code"], ended["outcome"]) == (
        "run", "anna", "because", {"through": "verify"}, 0, "done")
    assert ended["started_at"] <= ended["ended_at"]
    assert ended["ended_at"].endswith("Z")


@pytest.mark.parametrize(("error", "code", "outcome"), [
    (Stopped("t", "held", "wait"), 4, "t: held; wait"), (ValueError("odd"), 1, "odd"), (KeyboardInterrupt(), 4, "interrupted"),
    (Cancelled("SIGTERM"), 4, "cancelled by SIGTERM"), (SystemExit(), 4, "interrupted")])  # Prefect's own signals are none of Exception
def test_how_a_run_failed_is_recorded_and_raised_on(ledger: Ledger, error: BaseException, code: int, outcome: str) -> None:
    ledger.create()

    def failing() -> None:
        with ledger.run("run", "anna", "because", {}):
            raise error

    with pytest.raises(type(error)):
        failing()

    [run] = ledger.runs()
    assert (run["exit_code"], run["outcome"]) == (code, outcome)


def test_how_a_run_ended_is_recorded_though_its_connection_is_gone(ledger: Ledger, job: App) -> None:
    ledger.create()

    def cut() -> None:
        with ledger.run("run", "anna", "because", {}):
            job.run(f"KILL {ledger.session.connection_id}")
            ledger.phases()

    with pytest.raises(ConnectionLost):
        cut()

    assert job.rows("SELECT exit_code, ended_at IS NULL FROM _rollout_run") == [(4, 0)]


CHANGES: dict[str, Callable[[Ledger], object]] = {
    "set_phase": lambda ledger: ledger.set_phase(Phase.DEPLOY, "undone"),
    "start_pass": lambda ledger: ledger.start_pass("other"),
    "reset_pass": lambda ledger: ledger.reset_pass("first"),
    "move_pass": lambda ledger: ledger.move_pass(ledger.session, "first", '["x"]', 1, 1),
    "end_sweep": lambda ledger: ledger.end_sweep("first", finished=True),
    "remember_plan": lambda ledger: ledger.remember_plan("h", {}, {}, "CREATE"),
    "extend_ladder": lambda ledger: ledger.extend_ladder({"longer": 1}),
    "end_plan": lambda ledger: ledger.end_plan(ended=True),
    "forget_plan": lambda ledger: ledger.forget_plan(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_whoever_lost_the_table_writes_nothing_that_decides_how_it_goes_on(ledger: Ledger, job: App, change: str) -> None:
    ledger.create()
    ledger.set_phase(Phase.DEPLOY, "done")
    ledger.start_pass("first")
    if change != "remember_plan":
        ledger.remember_plan("hash", {}, {"short": 1}, "CREATE")

    def everything() -> list[object]:
        return [job.rows(f"SELECT * FROM _rollout_{table}") for table in ("plan", "phase", "pass")]

    def lost(_: Session) -> None:
        raise OwnershipLost("table job", "taken over")

    before, ledger.fence = everything(), lost
    with pytest.raises(OwnershipLost):
        CHANGES[change](ledger)

    assert everything() == before
    ledger.fence = lambda _: None
    CHANGES[change](ledger)
    assert everything() != before


def test_events_are_appended_with_their_sql_and_numbers(ledger: Ledger) -> None:
    ledger.create()
    for n in range(3):
        statement = f"ALTER TABLE `t` ADD a{n} VARCHAR(9) DEFAULT '%s:?'"
        ledger.record(Event("pre_deploy", f"step {n}", "done", "back", statement, 1.5, n, {"n": n}))

    events = ledger.events()
    assert [e["step"] for e in events] == ["step 0", "step 1", "step 2"]
    assert sorted(e["id"] for e in events) == [e["id"] for e in events]
    assert (events[2]["statement"], events[2]["duration_ms"], events[2]["row_count"], events[2]["detail"], events[2]["direction"]) == (
        "ALTER TABLE `t` ADD a2 VARCHAR(9) DEFAULT '%s:?'", 1.5, 2, {"n": 2}, "back")


def test_no_secret_gets_in_by_any_way(ledger: Ledger, job: App) -> None:
    masking.remember("hunter22")
    ledger.create()

    def failing() -> None:
        with ledger.run("run", "hunter22", "hunter22", {"a": ["hunter22"]}):
            ledger.record(Event("deploy", "x", "failed", statement="deploy --password hunter22", detail={"error": ["hunter22"]}))
            ledger.set_phase(Phase.DEPLOY, "running", {"failure": "hunter22"})
            raise Stopped("t", "hunter22")

    with pytest.raises(Stopped):
        failing()

    everything = json.dumps([ledger.runs(), ledger.events(), list(ledger.phases().values())], default=str)
    assert "hunter22" not in everything
    assert everything.count("***") == 7
    assert job.value("SELECT COUNT(*) FROM _rollout_event WHERE statement LIKE '%%hunter22%%'") == 0


def test_the_first_plan_is_kept_and_can_be_forgotten(ledger: Ledger) -> None:
    ledger.create()
    ledger.remember_plan("a" * 64, {"table": "job"}, {"stairs": []}, "CREATE TABLE job (id INT)")
    ledger.remember_plan("b" * 64, {}, {}, "")
    ledger.record(Event("pre_deploy", "x", "done"))
    ledger.start_pass("first")

    assert ledger.plan() is not None
    assert (ledger.plan() or {})["identity_hash"] == "a" * 64
    ledger.forget_plan()
    assert (ledger.plan(), ledger.passes(), ledger.phases()) == (None, {}, {})
    assert len(ledger.events()) == 1


def test_ledgers_of_two_tables_and_plans_do_not_mix(session: Session, ledger: Ledger) -> None:
    others = [Ledger(session, str(session.schema), "other", "small"), Ledger(session, str(session.schema), "job", "second")]
    ledger.create()
    ledger.set_phase(Phase.DEPLOY, "done")
    ledger.start_pass("first")
    ledger.record(Event("deploy", "x", "done"))

    assert [(other.phases(), other.passes(), other.events()) for other in others] == [({}, {}, [])] * 2


def test_a_ledger_elsewhere_leaves_no_table_in_the_targets_schema(job: App, session: Session, elsewhere: str, tmp_path: Path,
                                                                  opened_on: Opened) -> None:
    job.run("INSERT INTO job (id, status) VALUES ('a', 'completed')")
    rollout = opened_on(small(tmp_path, head=f'ledger_schema = "{elsewhere}"'))

    expand(rollout)

    assert tables(session, str(session.schema)) == {"job"}
    assert tables(session, elsewhere) == {f"_rollout_{name}" for name in TABLES}
    assert rollout.ledger.phase_state(Phase.PRE_DEPLOY) == "done"
    assert job.rows("SELECT state FROM job") == [("succeeded",)]


def test_every_ledger_table_has_a_key_an_engine_and_a_character_set(ledger: Ledger, session: Session) -> None:
    ledger.create()
    found = session.query("SELECT t.TABLE_NAME, t.ENGINE, t.TABLE_COLLATION, COUNT(c.CONSTRAINT_NAME) FROM information_schema.TABLES t "
                          "LEFT JOIN information_schema.TABLE_CONSTRAINTS c ON c.TABLE_SCHEMA = t.TABLE_SCHEMA AND c.TABLE_NAME = "
                          f"t.TABLE_NAME AND c.CONSTRAINT_TYPE = 'PRIMARY KEY' WHERE t.TABLE_SCHEMA = {VALUE} GROUP BY 1, 2, 3",
                          session.schema)

    assert {row[1:] for row in found} == {("InnoDB", "utf8mb4_bin", 1)}
    assert len(found) == len(TABLES)


def test_the_ledger_is_not_the_targets(empty: Target, ledger: Ledger) -> None:
    assert ledger.table("run") == f"`{empty.schema}`.`_rollout_run`"
