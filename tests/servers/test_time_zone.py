"""What InnoDB tells is in the server's own time, our sessions are in UTC: old is old in any zone (F25)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import make_url

from deploy.mysql_server import Server, provide
from steps import snapshots
from steps.mysql import Session
from steps.target import Target
from tests.conftest import App
from tests.mysql.conftest import until


@pytest.fixture(scope="module", params=["Asia/Tokyo", "America/New_York"])
def elsewhere(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server in another time zone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", request.param)
        with provide() as server:
            yield server


def test_a_transaction_is_old_by_its_age_and_not_by_the_servers_zone(elsewhere: Server) -> None:
    target = Target(make_url(elsewhere.url).set(database="mysql"))
    other = App(target)
    with Session(target) as session:
        assert session.value("SELECT TIMESTAMPDIFF(HOUR, UTC_TIMESTAMP(), CONVERT_TZ(UTC_TIMESTAMP(), '+00:00', 'SYSTEM'))") != 0
        other.run("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        number = other.connection.thread_id()
        seen = f"SELECT COUNT(*) FROM information_schema.INNODB_TRX WHERE trx_mysql_thread_id = {number}"
        until(lambda: session.value(seen) or session.value("SELECT SLEEP(0.15)"))

        young = snapshots.wait_until_young(session, 0)
        until(lambda: snapshots.older_than(session, 2) or session.value("SELECT SLEEP(0.15)"))
        old = snapshots.wait_until_young(session, 0)

        assert (young, old) == (0, 1)
    other.close()
