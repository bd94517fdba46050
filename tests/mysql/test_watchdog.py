"""The watchdog ends our own statement when it has waited too long, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from steps import waits
from steps.errors import LockTimeout
from steps.mysql import Session, Waits
from steps.target import Target
from steps.watchdog import Watchdog
from tests.conftest import App
from tests.mysql.conftest import Clients


@pytest.fixture
def watchdog(empty: Target) -> Iterator[Watchdog]:
    with Session(empty) as session:
        yield Watchdog(session)


@pytest.fixture
def holder(job: App, clients: Clients) -> App:
    client = clients()
    client.run("START TRANSACTION")
    client.rows("SELECT * FROM job")
    return client


def alter(watchdog: Watchdog, session: Session, seconds: float) -> float:
    began = waits.now_s()
    with watchdog.while_waiting(session.connection_id, seconds):
        session.verbatim("ALTER TABLE job ADD COLUMN n INT")
    return waits.now_s() - began


def test_a_statement_that_waits_for_a_metadata_lock_is_ended_long_before_the_servers_own_timeout(
        watchdog: Watchdog, empty: Target, holder: App, job: App) -> None:
    with Session(empty, waits=Waits(lock_wait_timeout_s=30)) as session:
        began = waits.now_s()
        with pytest.raises(LockTimeout) as raised:
            alter(watchdog, session, 0.2)

        assert raised.value.errno == 1317
        assert 0.2 <= waits.now_s() - began < 2
        holder.run("COMMIT")
        assert alter(watchdog, session, 0.2) < 2  # the connection lives on
    assert "`n`" in job.create_table("job")


def test_a_statement_that_works_is_let_work(watchdog: Watchdog, session: Session) -> None:
    with watchdog.while_waiting(session.connection_id, 0.05):
        assert session.value("SELECT SLEEP(0.3)") == 0


def test_what_slips_into_the_queue_is_ended_within_moments(watchdog: Watchdog, session: Session, holder: App) -> None:
    began = waits.now_s()
    with pytest.raises(LockTimeout) as raised, watchdog.after(session.connection_id, 0.004):
        session.verbatim("LOCK TABLES job WRITE")

    assert raised.value.errno == 1317
    assert waits.now_s() - began < 1


def test_what_is_merely_slow_is_not_ended(watchdog: Watchdog, session: Session) -> None:
    with watchdog.after(session.connection_id, 0.01):
        assert session.value("SELECT SLEEP(0.2)") == 0


def test_what_ends_in_time_is_not_ended_and_nothing_barks_later(watchdog: Watchdog, session: Session) -> None:
    with watchdog.after(session.connection_id, 0.1):
        pass

    assert session.value("SELECT SLEEP(0.2)") == 0


def test_nobody_elses_statement_is_ended(watchdog: Watchdog, session: Session, holder: App) -> None:
    with pytest.raises(LockTimeout), watchdog.after(session.connection_id, 0.01):
        session.verbatim("LOCK TABLES job WRITE")

    assert holder.value("SELECT COUNT(*) FROM information_schema.INNODB_TRX WHERE trx_mysql_thread_id = CONNECTION_ID()") == 1


def test_a_watchdog_that_lost_its_connection_leaves_the_backstop(empty: Target, watchdog: Watchdog, holder: App) -> None:
    watchdog.session.close()
    with Session(empty, waits=Waits(lock_wait_timeout_s=1)) as session, pytest.raises(LockTimeout) as raised:
        alter(watchdog, session, 0.2)

    assert raised.value.errno == 1205
    holder.run("COMMIT")
