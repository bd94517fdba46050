"""
Connections that are cut in the middle of a statement, or fall silent: nothing waits for ever, nothing that was held stays held, and what
became of the statement is looked up (cases C84, C93). Each goes through a proxy that does it.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import make_url

from deploy.mysql_server import Server
from steps import aftermath, answers, ddl, hold, mysql, rollout, tcp
from steps.errors import Busy, ConnectionLost, Unreachable
from steps.hold import Gap, Limits
from steps.ladder import Way
from steps.ledger import Ledger
from steps.mysql import Session
from steps.ownership import Ownership
from steps.target import ENVIRONMENT, Target
from steps.watchdog import Watchdog
from tests.cli.calling import DEPLOYED, PLAN, Call, phases
from tests.conftest import App
from tests.faults.cutting_proxy import HOST_OF, CuttingProxy, port_of
from tests.mysql.conftest import until

pytestmark = pytest.mark.usefixtures("remembered_rehearsals")
RUN = ("run", PLAN, "--no-prefect", "--by", "ann", "--reason", "it is due", *DEPLOYED)
INDEX = "idx_userId_jobType_idempotencyKey"


@pytest.fixture
def proxy(own: Server) -> Iterator[CuttingProxy]:
    with CuttingProxy(own.url) as found:
        yield found


@pytest.fixture
def target(proxy: CuttingProxy, job: App) -> Target:
    """The test's schema through the proxy."""
    return Target(make_url(proxy.url(job.value("SELECT DATABASE()"))))


@pytest.fixture
def through(call: Call, target: Target, monkeypatch: pytest.MonkeyPatch) -> Call:
    """The command line through the proxy."""
    monkeypatch.setenv(ENVIRONMENT, target.url.render_as_string(hide_password=False))
    return call


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Statements that are out are asked after within a moment."""
    monkeypatch.setattr(answers, "ASK_AFTER_S", 0.1)
    monkeypatch.setattr(answers, "ASK_EVERY_S", 0.05)
    monkeypatch.setattr(answers, "_asking", [])


def gone(admin: App, session: Session) -> Callable[[], bool]:
    return lambda: not admin.value("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = %s", session.connection_id)


def test_an_address_that_lets_us_in_and_says_nothing_is_given_up(proxy: CuttingProxy, target: Target,
                                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mysql, "OPENING_S", 0.2)
    proxy.swallow(swallowing=True)

    with pytest.raises(Unreachable, match="2013"):
        Session(target)

    proxy.swallow(swallowing=False)
    monkeypatch.undo()
    with Session(target) as session:
        assert session.value("SELECT 1") == 1


def test_an_answer_that_is_lost_is_missed_and_what_was_held_is_let_go(proxy: CuttingProxy, target: Target, job: App, admin: App,
                                                                      impatient: None) -> None:
    assert impatient is None
    job.run("SET SESSION lock_wait_timeout = 10")
    with Session(target) as session:
        session.run("LOCK TABLES AiAnalysisJob WRITE")
        proxy.arm(port_of(admin.value(HOST_OF, session.connection_id)), "silent")

        with pytest.raises(ConnectionLost):
            session.value("SELECT SLEEP(0.05)")

        assert job.run("UPDATE AiAnalysisJob SET status = 'failed'") > 0
        until(gone(admin, session))


def test_a_statement_that_takes_long_is_left_alone(target: Target, impatient: None) -> None:
    assert impatient is None
    with Session(target) as session:
        assert session.value("SELECT SLEEP(1)") == 0
        assert session.value("SELECT 1") == 1


def test_nobody_can_be_asked_for_too_long(proxy: CuttingProxy, target: Target, impatient: None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert impatient is None
    monkeypatch.setattr(answers, "SILENT_S", 0.3)
    with Session(target) as session:
        proxy.silence_all()
        proxy.refuse(refusing=True)

        with pytest.raises(ConnectionLost):
            session.value("SELECT 1")


def held(target: Target, watching: Target, limits: Limits, inside: Callable[[Session], object]) -> None:
    """Hold the table on *target*, watched over *watching*, and do something inside."""
    with Session(watching, read_timeout_s=1) as other, hold.hold(target, Watchdog(other), limits, [(target.schema, "AiAnalysisJob")], [],
                                                                 lambda _: None) as (session, _waited_s):
        inside(session)


def test_a_hold_that_falls_silent_is_ended_by_the_server(proxy: CuttingProxy, target: Target, job: App, admin: App,
                                                         monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hold, "LONGEST_IDLE_S", 1)
    job.run("SET SESSION lock_wait_timeout = 20")
    sessions = list[Session]()

    def fall_silent(session: Session) -> None:
        sessions.append(session)
        proxy.silence_all()
        job.run("UPDATE AiAnalysisJob SET status = 'failed'")  # waits until the server ends the hold
        session.cut()
        session.run("DO 1")

    with pytest.raises(ConnectionLost):
        held(target, target, Limits(0, 5), fall_silent)

    until(gone(admin, sessions[0]))
    assert job.value("SELECT COUNT(*) FROM AiAnalysisJob WHERE status <> 'failed'") == 0


def test_a_hold_whose_connection_is_lost_is_ended_over_the_watchdogs(proxy: CuttingProxy, own: Server, target: Target, job: App,
                                                                     admin: App) -> None:
    sessions = list[Session]()

    def lose_it(session: Session) -> None:
        sessions.append(session)
        proxy.arm(port_of(admin.value(HOST_OF, session.connection_id)), "half")
        session.run("DO 1")

    with pytest.raises(ConnectionLost):
        held(target, Target(make_url(own.url).set(database=target.schema)), Limits(60_000, 5), lose_it)

    until(gone(admin, sessions[0]))
    assert job.run("UPDATE AiAnalysisJob SET status = 'failed'") > 0


def test_a_machine_that_vanished_holds_its_table_for_six_heartbeats(proxy: CuttingProxy, own: Server, target: Target, job: App,
                                                                    admin: App) -> None:
    direct = Target(make_url(own.url).set(database=target.schema))
    with Session(direct) as asking, Session(direct) as other:
        ledger = Ledger(asking, target.schema, "AiAnalysisJob", "p")
        ledger.create()
        lost = Ownership(target, ledger, "ann", heartbeat_s=0.2)
        lost.take()
        proxy.silence_all()
        next_one = Ownership(direct, Ledger(other, target.schema, "AiAnalysisJob", "p"), "berta")

        with pytest.raises(Busy):
            next_one.take()
        until(gone(admin, lost._session))
        next_one.take()

        assert job.rows("SELECT actor FROM _rollout_owner") == [("berta",)]
        next_one.release()
        lost._session.cut()
        lost.release()


def test_row_locks_of_a_machine_that_vanished_go_with_its_silence(proxy: CuttingProxy, target: Target, job: App, admin: App,
                                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mysql, "IN_TRANSACTION_S", 1)
    session = Session(target, read_timeout_s=1)

    def vanish() -> None:
        with session.transaction():
            session.run("UPDATE AiAnalysisJob SET status = 'pending' WHERE id = 'c000001'")
            proxy.silence_all()
            assert job.run("UPDATE AiAnalysisJob SET status = 'failed' WHERE id = 'c000001'") == 1
            session.value("SELECT 1")

    with pytest.raises(ConnectionLost):
        vanish()

    until(gone(admin, session))
    assert job.value("SELECT status FROM AiAnalysisJob WHERE id = 'c000001'") == "failed"


def test_a_session_outside_a_transaction_may_be_silent_for_a_day(target: Target) -> None:
    with Session(target) as session:
        with session.transaction():
            assert session.value("SELECT @@session.wait_timeout") == mysql.IN_TRANSACTION_S
        assert session.value("SELECT @@session.wait_timeout") == 86_400
        with pytest.raises(ZeroDivisionError), session.transaction():
            raise ZeroDivisionError
        assert session.value("SELECT @@session.wait_timeout") == 86_400


def lost_while_at_work(monkeypatch: pytest.MonkeyPatch, proxy: CuttingProxy, admin: App, how: str) -> list[str]:
    """The one index build loses its connection while the server goes on with it; each time that it is sent is noted."""
    real, sent = ddl._send, list[str]()

    def armed(session: Session, way: Way, gap: Gap | None, check_owner: Callable[[Session], None]) -> None:
        if INDEX not in way.sql:
            real(session, way, gap, check_owner)
            return
        sent.append(way.sql)
        fire = session.packet if gap else session.verbatim

        def cut_then_fire(*args: Any) -> Any:
            proxy.arm(port_of(admin.value(HOST_OF, session.connection_id)), how)
            return fire(*args)

        with monkeypatch.context() as once:
            if len(sent) == 1:
                once.setattr(session, "packet" if gap else "verbatim", cut_then_fire)
            real(session, way, gap, check_owner)

    monkeypatch.setattr(ddl, "_send", armed)
    return sent


def test_the_machine_asks_after_the_other_end(target: Target) -> None:
    with Session(target) as session:
        connection = session._connection._sock

        assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == tcp.IDLE_S
        assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT) == tcp.PROBES


@pytest.mark.parametrize("how", ["cut", "silent"])
def test_an_index_build_that_lost_its_connection_is_waited_for_and_not_repeated(
        through: Call, proxy: CuttingProxy, job: App, admin: App, impatient: None, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    assert impatient is None
    job.run("ANALYZE TABLE AiAnalysisJob")
    sent = lost_while_at_work(monkeypatch, proxy, admin, how)

    done = through(*RUN, "--set", "large_rows=5", "--accept", "space")

    assert done.code == 0, done.text
    assert len(sent) == 1
    assert job.create_table().count(INDEX) == 1
    assert job.value("SELECT COUNT(*) FROM _rollout_event WHERE outcome = 'done, seen after a lost connection'") == 1
    assert set(phases(job).values()) == {"done"}


def test_a_statement_in_a_hold_that_lost_its_connection_stops_the_run_and_the_next_one_ends_it(
        through: Call, proxy: CuttingProxy, job: App, admin: App, impatient: None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert impatient is None
    sent = lost_while_at_work(monkeypatch, proxy, admin, "half")

    stopped = through(*RUN)

    assert stopped.code == 4, stopped.text
    assert job.create_table().count(INDEX) == 1
    again = through(*RUN)
    assert again.code == 0, again.text
    assert len(sent) == 1
    assert set(phases(job).values()) == {"done"}


def test_a_server_that_cannot_be_asked_afterwards_is_no_claim(through: Call, proxy: CuttingProxy, job: App, admin: App, impatient: None,
                                                              monkeypatch: pytest.MonkeyPatch) -> None:
    assert impatient is None
    job.run("ANALYZE TABLE AiAnalysisJob")
    lost_while_at_work(monkeypatch, proxy, admin, "cut")
    real = aftermath.happened

    def nobody(*words: Any) -> bool | None:
        proxy.refuse(refusing=True)
        return real(*words)

    monkeypatch.setattr(aftermath, "happened", nobody)
    stopped = through(*RUN, "--set", "large_rows=5", "--accept", "space")

    assert stopped.code == 4, stopped.text
    assert "what became of this step could not be looked up, and the next run looks first" in stopped.text
    assert "changed nothing" not in stopped.text
    proxy.refuse(refusing=False)
    assert through(*RUN, "--set", "large_rows=5", "--accept", "space").code == 0
    assert job.create_table().count(INDEX) == 1


def test_nobody_new_is_let_in_for_a_while(through: Call, proxy: CuttingProxy, job: App, monkeypatch: pytest.MonkeyPatch) -> None:
    real = rollout.Rollout.rehearsed

    def then_refused(self: rollout.Rollout) -> Any:
        found = real(self)
        if self.owner:
            proxy.refuse(refusing=True)
        return found

    monkeypatch.setattr(rollout.Rollout, "rehearsed", then_refused)
    stopped = through(*RUN)
    assert stopped.code == 4, stopped.text
    assert "let no further session in" in stopped.text
    assert job.triggers() == []

    monkeypatch.undo()
    proxy.refuse(refusing=False)


def test_the_check_for_proxies_is_content_with_one_that_leaves_bytes_alone(through: Call) -> None:
    answer = through("check", PLAN)

    assert (answer.code, "[proxy]" in answer.text) == (0, False), answer.text
