"""One rollout per table, and whoever lost it stops (cases C92, C93)."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator

import pytest

from steps import tenure, waits
from steps.errors import Busy, OwnershipLost, StatementFailed
from steps.ledger import Ledger
from steps.mysql import VALUE, Session
from steps.ownership import Ownership, forget_dead, lock_name, unless_lost
from steps.plan import Plan
from steps.target import Target
from tests.conftest import App
from tests.mysql.conftest import Clients, Opened, expand, until
from tests.plans import small

Own = Callable[..., Ownership]


@pytest.fixture
def own(empty: Target) -> Iterator[Own]:
    """Makes owners of the table `job`, each with a ledger of its own; all are closed at the end."""
    made: list[tuple[Ownership, Session]] = []

    def make(actor: str = "anna", table: str = "job", heartbeat_s: float = 60) -> Ownership:
        session = Session(empty)
        ledger = Ledger(session, empty.schema, table, "small")
        ledger.create()
        made.append((Ownership(empty, ledger, actor, heartbeat_s), session))
        return made[-1][0]

    yield make
    for owner, session in made:
        owner.release()
        session.close()


def owners(client: App) -> list[str]:
    return [str(row[0]) for row in client.rows("SELECT actor FROM _rollout_owner")]


def test_a_second_rollout_is_told_who_holds_the_table(own: Own, job: App) -> None:
    own("anna").take()

    with pytest.raises(Busy) as raised:
        own("berta").take()

    assert raised.value.exit_code == 6
    assert f"is held by plan small run by anna on {socket.gethostname()}, pid " in raised.value.reason
    assert owners(job) == ["anna"]


def test_another_table_is_free(own: Own, job: App) -> None:
    own("anna").take()
    own("berta", "other").take()

    assert owners(job) == ["anna", "berta"]


def test_what_is_released_is_free_and_leaves_no_row(own: Own, job: App, session: Session, empty: Target) -> None:
    first = own("anna")
    with first:
        first.check(session)
    assert owners(job) == []
    assert session.value(f"SELECT IS_USED_LOCK({VALUE})", lock_name(empty.schema, "job")) is None
    first.release()

    with own("berta") as second:
        second.check(session)
        assert owners(job) == ["berta"]


def test_a_killed_lock_connection_is_noticed_at_the_next_edge(own: Own, job: App, session: Session) -> None:
    owner = own()
    owner.take()
    owner.check(session)
    job.run(f"KILL {owner._session.connection_id}")

    until(lambda: session.value(f"SELECT IS_USED_LOCK({VALUE})", owner.name) is None)
    with pytest.raises(OwnershipLost) as raised:
        owner.check(session)
    assert raised.value.exit_code == 4


def test_a_dead_owners_row_is_taken_over_and_the_dead_one_stays_out(own: Own, job: App, session: Session) -> None:
    dead = own("anna")
    dead.take()
    job.run(f"KILL {dead._session.connection_id}")
    until(lambda: session.value(f"SELECT IS_USED_LOCK({VALUE})", dead.name) is None)
    assert owners(job) == ["anna"]

    own("berta").take()

    assert owners(job) == ["berta"]
    with pytest.raises(OwnershipLost):
        dead.check(session)
    dead.release()
    assert owners(job) == ["berta"]


def test_an_owner_that_fell_silent_loses_its_lock_and_is_taken_over(own: Own, job: App, session: Session) -> None:
    silent = own("anna", heartbeat_s=0.1)
    silent.take()
    silent._ended.set()  # its machine is gone, its connection stands

    until(lambda: session.value(f"SELECT IS_USED_LOCK({VALUE})", silent.name) is None)
    with own("berta") as second:
        second.check(session)
        assert owners(job) == ["berta"]
        with pytest.raises(OwnershipLost):
            silent.check(session)


def test_the_heart_beats_on_after_a_server_that_took_no_writes(own: Own, job: App) -> None:
    owner = own(heartbeat_s=0.02)
    owner.take()

    def tried() -> int:
        return int(job.value("SELECT SUM_ERROR_RAISED FROM performance_schema.events_errors_summary_global_by_error "
                             "WHERE ERROR_NUMBER = 1290"))

    job.run("SET GLOBAL super_read_only = 1")
    try:
        before = tried()
        until(lambda: tried() > before + 2)
    finally:
        job.run("SET GLOBAL super_read_only = 0")
        job.run("SET GLOBAL read_only = 0")

    stood = job.value("SELECT heartbeat_at FROM _rollout_owner")
    until(lambda: job.value("SELECT heartbeat_at FROM _rollout_owner") != stood)


def test_a_foreign_row_is_a_lost_table_though_the_lock_stands(own: Own, job: App, session: Session) -> None:
    owner = own()
    owner.take()
    job.run("UPDATE _rollout_owner SET token = REPEAT('f', 32)")

    with pytest.raises(OwnershipLost):
        owner.check(session)


def test_a_lock_whose_connection_the_server_keeps_is_given_free_over_another(own: Own, job: App, session: Session) -> None:
    owner = own("anna")
    owner.take()
    with socket.socket(fileno=os.dup(owner._session._connection._sock.fileno())) as kept:  # so that the server hears of no end
        kept.shutdown(socket.SHUT_RD)

        owner.release()

        assert owners(job) == []
        until(lambda: session.value(f"SELECT IS_USED_LOCK({VALUE})", owner.name) is None)
    with own("berta") as second:
        second.check(session)


def test_the_owners_row_goes_though_every_session_of_ours_was_killed(own: Own, job: App) -> None:
    owner = own("anna")
    owner.take()
    for session in (owner._session, owner.ledger.session):
        job.run(f"KILL {session.connection_id}")
    until(lambda: job.value("SELECT IS_USED_LOCK(%s)", owner.name) is None)

    owner.release()

    assert owners(job) == []


@pytest.mark.parametrize("loss", ["KILL {connection}", "UPDATE _rollout_owner SET token = REPEAT('f', 32)"])
def test_the_heart_meets_the_loss_and_a_wait_ends_by_it(own: Own, job: App, loss: str) -> None:
    owner = own(heartbeat_s=0.02)
    owner.take()
    with tenure.watched(owner.gone):
        waits.sleep_s(0.01)
        job.run(loss.format(connection=owner._session.connection_id))
        until(owner.gone)

        with pytest.raises(OwnershipLost):
            waits.sleep_s(600)
        with tenure.unasked():
            waits.sleep_s(0.01)
    waits.sleep_s(0.01)


def test_a_lock_of_another_run_with_our_number_is_left_alone(own: Own, job: App, session: Session) -> None:
    owner = own("anna")
    owner.take()
    job.run("UPDATE _rollout_owner SET token = REPEAT('f', 32)")

    owner._release_beside(session)

    assert owners(job) == ["anna"]
    assert session.value(f"SELECT IS_USED_LOCK({VALUE})", owner.name) == owner._session.connection_id


def test_what_fails_while_another_run_has_the_table_is_told_as_the_loss(own: Own, job: App, session: Session, empty: Target) -> None:
    owner = own("anna")
    owner.take()
    job.run("UPDATE _rollout_owner SET token = REPEAT('f', 32)")

    with pytest.raises(OwnershipLost, match=r"may be the other run's doing: .*1054") as raised, unless_lost(owner, owner.ledger.session):
        session.run("SELECT gone FROM job")

    assert raised.value.exit_code == 4
    assert owners(job) == ["anna"]


def test_what_fails_while_the_table_is_ours_comes_out_as_it_is(own: Own, job: App, session: Session) -> None:
    owner = own("anna")
    owner.take()

    with pytest.raises(StatementFailed, match="1054"), unless_lost(owner, owner.ledger.session):
        session.run("SELECT gone FROM job")
    with pytest.raises(StatementFailed, match="1054"), unless_lost(None, session):
        session.run("SELECT gone FROM job")


def test_the_heart_beats_while_it_is_owned(own: Own, job: App) -> None:
    def beat() -> object:
        return job.value("SELECT heartbeat_at FROM _rollout_owner")

    owner = own(heartbeat_s=0.02)
    owner.take()
    first = beat()

    until(lambda: beat() != first)
    owner.release()
    assert not owner._beat.is_alive()


def test_a_run_that_lost_its_table_changes_nothing_more(job: App, opened_on: Opened, clients: Clients, tmp_path: object,
                                                        monkeypatch: pytest.MonkeyPatch, plan: Plan) -> None:
    rollout = opened_on(plan)
    killer = clients()
    real = rollout.__class__.rehearsed

    def killed_meanwhile(self: object) -> object:
        found = real(rollout)
        assert rollout.owner
        killer.run(f"KILL {rollout.owner._session.connection_id}")
        until(lambda: killer.value("SELECT IS_USED_LOCK(%s)", lock_name(rollout.schema, "job")) is None)
        return found

    monkeypatch.setattr(rollout.__class__, "rehearsed", killed_meanwhile)

    with pytest.raises(OwnershipLost):
        expand(rollout)

    assert "`state`" not in job.create_table("job")
    assert job.triggers() == []
    monkeypatch.undo()
    expand(opened_on(plan))
    assert "`state`" in job.create_table("job")


@pytest.fixture
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    return small(tmp_path_factory.mktemp("plan"))


def test_a_run_that_gave_the_table_back_without_recording_its_end_gets_it_from_who_finds_nothing_to_do(own: Own, empty: Target) -> None:
    owner = own()
    app = App(empty)
    with pytest.raises(KeyboardInterrupt), owner.ledger.run("run", "anna", "x", {}):
        raise KeyboardInterrupt
    app.run("UPDATE _rollout_run SET ended_at = NULL, exit_code = NULL, outcome = NULL")
    open_end = "SELECT COUNT(*) FROM _rollout_run WHERE ended_at IS NULL"

    owner.take()
    forget_dead(own("bert").ledger)
    assert app.value(open_end) == 1  # whoever holds the table may be at work on it

    owner.release()
    forget_dead(own("carl").ledger)
    assert app.rows("SELECT exit_code, outcome FROM _rollout_run") == [(None, "never ended: killed or lost")]
    app.close()
