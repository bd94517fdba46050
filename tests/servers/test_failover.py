"""
The primary dies and a replica takes its place, which has another `server_uuid` and lacks the last transactions (case C84).

The tool reaches both by one address, a proxy whose way is switched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from deploy.mysql_server import Server
from steps import ddl, deploy, failover, pre_deploy
from steps.target import ENVIRONMENT
from tests.cli.calling import DEPLOYED, PLAN, Call, phases
from tests.conftest import add_jobs, make_old_database
from tests.faults.couple import Couple, coupled

pytestmark = pytest.mark.usefixtures("remembered_rehearsals")
RUN = ("run", PLAN, "--no-prefect", "--by", "ann", "--reason", "it is due", *DEPLOYED)
BACK = ("rollback", PLAN, "--no-prefect", "--by", "ann", "--reason", "it is due", "--to", "v0", *DEPLOYED)
SCHEMA = "app"


@pytest.fixture(scope="module")
def pair() -> Iterator[Couple]:
    with coupled() as found:
        yield found


@pytest.fixture
def couple(pair: Couple) -> Iterator[Couple]:
    """Both with the old database and nine jobs, and nothing of the test before."""
    for server in (pair.primary, pair.replica):
        client = pair.client(server)
        client.run("SET SESSION sql_log_bin = 0")
        client.run("STOP REPLICA")
        client.run(f"DROP DATABASE IF EXISTS {SCHEMA}")
        client.close()
    pair.proxy.lead_to(pair.primary.url)
    pair.follow()
    app = pair.client(pair.primary)
    app.run(f"CREATE DATABASE {SCHEMA}")
    app.run(f"USE {SCHEMA}")
    make_old_database(app)
    add_jobs(app, 9)
    app.close()
    pair.catch_up()
    yield pair
    pair.proxy.cut_all()


@pytest.fixture
def here(call: Call, couple: Couple, monkeypatch: pytest.MonkeyPatch) -> Call:
    monkeypatch.setenv(ENVIRONMENT, couple.proxy.url(SCHEMA))
    return call


def at(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, happens: Callable[[], None], *, before: bool = True,
       when: Callable[..., bool] = lambda *_: True) -> None:
    """Once, before or after *owner*'s *name* is called with what *when* likes, something *happens*."""
    real, done = getattr(owner, name), list[bool]()

    def called(*args: Any, **more: Any) -> Any:
        due = not done and when(*args)
        if due:
            done.append(True)
        if due and before:
            happens()
        result = real(*args, **more)
        if due and not before:
            happens()
        return result

    monkeypatch.setattr(owner, name, called)


def test_a_failover_in_the_middle_stops_the_run_and_the_next_one_does_what_the_new_server_lacks(
        here: Call, couple: Couple, monkeypatch: pytest.MonkeyPatch) -> None:
    at(monkeypatch, ddl, "carry_out", couple.stand_still, before=False)
    at(monkeypatch, deploy, "_ready", couple.fail_over)

    stopped = here(*RUN)

    assert stopped.code == 4, stopped.text
    new = couple.client(couple.primary, SCHEMA)
    assert phases(new).get("pre_deploy") == "running"  # it lacks what came later
    assert "deploy" not in phases(new)
    waiting = here(*RUN)
    assert waiting.code == 4, waiting.text
    assert "is another one than the run before worked on" in waiting.text
    assert "add --accept failover; nothing was touched" in waiting.text

    again = here(*RUN, "--accept", failover.ACCEPT)

    assert again.code == 0, again.text
    assert set(phases(new).values()) == {"done"}
    assert len(new.triggers()) == 2
    assert new.value("SELECT COUNT(*) FROM AiAnalysisJob WHERE status = 'completed' AND lifecycleStatus <> 'succeeded'") == 0
    assert [row[0] for row in new.rows("SELECT detail ->> '$.server_uuid' FROM _rollout_event WHERE step = 'server' ORDER BY id")] == [
        uuid_of(couple, couple.replica), uuid_of(couple, couple.primary)]
    assert "nothing to do" in here(*RUN).text
    new.close()


def uuid_of(couple: Couple, server: Server) -> str:
    client = couple.client(server)
    found = str(client.value("SELECT @@server_uuid"))
    client.close()
    return found


def test_a_deploy_that_the_ledger_forgot_is_asked_for_before_the_old_side_decides(
        here: Call, couple: Couple, monkeypatch: pytest.MonkeyPatch) -> None:
    at(monkeypatch, pre_deploy, "_expand", couple.stand_still)
    done = here(*RUN, "--through", "deploy")
    assert done.code == 0, done.text
    couple.fail_over()
    new = couple.client(couple.primary, SCHEMA)
    assert new.triggers() == []
    before = new.rows("SELECT * FROM AiAnalysisJob ORDER BY id")

    waiting, back = here(*RUN), here(*BACK)

    assert (waiting.code, back.code) == (4, 4), waiting.text + back.text
    assert "where the new generation went out meanwhile, this ledger does not know of it" in waiting.text
    assert "make sure that no instance of the new generation lives" in back.text
    assert new.rows("SELECT * FROM AiAnalysisJob ORDER BY id") == before
    assert new.triggers() == []
    assert here(*RUN, "--accept", failover.ACCEPT).code == 0
    assert set(phases(new).values()) == {"done"}
    new.close()


def test_a_failover_after_the_deploy_is_on_record_goes_on_by_itself(here: Call, couple: Couple) -> None:
    assert here(*RUN, "--through", "deploy").code == 0
    couple.catch_up()
    couple.fail_over()

    again = here(*RUN)

    assert again.code == 0, again.text
    new = couple.client(couple.primary, SCHEMA)
    assert set(phases(new).values()) == {"done"}
    assert new.value("SELECT COUNT(*) FROM _rollout_event WHERE step = %s", failover.STEP) == 2  # once for each server
    new.close()


def test_a_hold_that_comes_to_another_server_than_the_lock_is_refused(here: Call, couple: Couple, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old primary lives on behind the connections that were open: the new one must not be changed without a lock there."""
    at(monkeypatch, ddl, "carry_out", lambda: couple.proxy.lead_to(couple.replica.url))

    stopped = here(*RUN)

    assert stopped.code == 4, stopped.text
    assert "another server answers at this address than when this run began (failover)" in stopped.text
    couple.catch_up()
    old, new = couple.client(couple.primary, SCHEMA), couple.client(couple.replica, SCHEMA)
    assert old.create_table() == new.create_table()
    assert "lifecycleStatus" not in new.create_table()
    old.close()
    new.close()
