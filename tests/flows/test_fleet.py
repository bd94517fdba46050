"""Who is connected is looked at before the old side goes and before triggers go: with real sessions, by account and by attribute."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Iterator

import pymysql
import pytest

from flows.params import Through
from steps import fleet
from steps.errors import ApprovalMissing, Stopped
from steps.mysql import Session
from steps.plan_deploy import Fleet
from steps.target import Target
from tests.conftest import App
from tests.flows.deploy_stage import ACCEPTED, Stage

RULES = {name: {"attribute": "program_name", "value": f"app-{name}"} for name in ("v0", "v1", "v2")}
Connect = Callable[..., pymysql.connections.Connection]


@pytest.fixture
def connect(empty: Target) -> Iterator[Connect]:
    """Real client sessions of the schema, which say what they are."""
    made: list[pymysql.connections.Connection] = []

    def open_one(program: str | None, user: str | None = None, password: str | None = None) -> pymysql.connections.Connection:
        url = empty.url
        says = {"program_name": program} if program else {}
        made.append(pymysql.connect(host=url.host, port=url.port or 3306, user=user or url.username, database=url.database,
                                    password=str(password or url.password or ""), autocommit=True, **says))
        return made[-1]

    yield open_one
    for connection in made:
        if connection.open:
            connection.close()


@pytest.fixture
def account(empty: Target) -> Iterator[str]:
    """An account with every right in the schema and none elsewhere; its password is `secret`."""
    admin, name = App(empty, ""), f"a{uuid.uuid4().hex[:10]}"
    admin.run(f"CREATE USER `{name}`@'%%' IDENTIFIED BY 'secret'")
    admin.run(f"GRANT ALL ON `{empty.schema}`.* TO `{name}`@'%%'")
    yield name
    admin.run(f"DROP USER `{name}`@'%%'")
    admin.close()


CLEANUP = '[cleanup]\ndrop = ["status"]\nmin_age_s = 0\nobserve_s = 0\ncooling_s = 0\ndeploy = "true"\nrollback_deploy = "true"\n'
OTHERS = [{"attribute": "program_name", "value": "test"}]


def planned(stage: Stage, rules: dict[str, object] | None = None) -> None:
    stage.plan(cleanup=CLEANUP, command="true", rollback_command="true", fleet={"wait_s": 2, "others": OTHERS, **(rules or RULES)})


@pytest.fixture(autouse=True)
def known(stage: Stage, connect: Connect) -> None:
    """The test's own client says what it is, too."""
    stage.app.close()
    stage.app.connection = connect("test")


def test_cleanup_does_not_take_anything_while_an_older_generation_is_connected(stage: Stage, connect: Connect) -> None:
    planned(stage)
    old, older, new = connect("app-v1"), connect("app-v0"), connect("app-v2")

    with pytest.raises(ApprovalMissing, match="conditions are not met: the old side is still written: v0 is connected"):
        stage.run(Through.CLEANUP)
    older.close()
    with pytest.raises(Stopped, match=r"v1 is connected still: 1 of \w+@\S+, last active \d+ s ago") as stopped:
        stage.run(Through.CLEANUP)

    assert stopped.value.exit_code == 4
    assert "nothing was taken away" in str(stopped.value)
    assert "`status`" in stage.app.create_table("job")
    assert len(stage.app.triggers()) == 2
    old.close()
    stage.run(Through.CLEANUP)
    assert new.open
    assert "`status`" not in stage.app.create_table("job")


def test_triggers_do_not_go_while_the_new_generation_is_connected(stage: Stage, connect: Connect) -> None:
    planned(stage)
    stage.run()
    stage.back()
    left = connect("app-v1")
    connect("app-v0")

    with pytest.raises(Stopped, match=r"v1 is connected still: 1 of .*the sync triggers stand"):
        stage.back(Through.PRE_DEPLOY)

    assert (len(stage.app.triggers()), stage.phase("pre_deploy")[0]) == (2, "done")
    left.close()
    stage.back(Through.PRE_DEPLOY)
    assert (stage.app.triggers(), stage.phase("pre_deploy")[0]) == ([], "undone")


def test_the_last_sessions_have_time_to_end(stage: Stage, connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    planned(stage)
    stage.run()
    stage.back()
    left = connect("app-v1")
    number = left.thread_id()

    def ends(_seconds: float) -> None:
        if left.open:
            left.close()
            while stage.app.value(f"SELECT COUNT(*) FROM performance_schema.threads WHERE PROCESSLIST_ID = {number}"):
                threading.Event().wait(0.01)  # the server takes a moment; `pytest-timeout` is the bound

    monkeypatch.setattr(fleet.waits, "sleep_s", ends)
    stage.back(Through.PRE_DEPLOY)

    detail = json.loads(stage.app.value("SELECT detail FROM _rollout_event WHERE step = 'fleet: v1 and v2 gone'"))
    assert (stage.app.triggers(), detail["connected"], detail["could not look"]) == ([], {}, [])


def test_a_session_of_no_generation_is_could_not_look_and_can_be_accepted(stage: Stage, connect: Connect) -> None:
    planned(stage)
    stage.run()
    stage.back()
    connect("cron")

    with pytest.raises(Stopped, match=r"could not look: sessions of no generation that the plan tells: 1 of .*--accept fleet-unseen"):
        stage.back(Through.PRE_DEPLOY)

    stage.back(Through.PRE_DEPLOY, accepted=(*ACCEPTED, "fleet-unseen"))
    assert (stage.app.triggers(), stage.phase("pre_deploy")[0]) == ([], "undone")


def test_accepting_the_unseen_does_not_accept_the_seen(stage: Stage, connect: Connect) -> None:
    planned(stage)
    stage.run()
    stage.back()
    connect("app-v1")

    with pytest.raises(Stopped, match="v1 is connected still"):
        stage.back(Through.PRE_DEPLOY, accepted=(*ACCEPTED, "fleet-unseen"))

    assert len(stage.app.triggers()) == 2


def test_a_generation_that_the_plan_cannot_tell_is_could_not_look(stage: Stage) -> None:
    planned(stage, {"v0": {"user": "nobody-by-this-name"}})
    stage.run()
    stage.back()

    with pytest.raises(Stopped, match="could not look: the plan does not say how v1 is known"):
        stage.back(Through.PRE_DEPLOY)


def test_without_fleet_in_the_plan_nobody_looks(stage: Stage, connect: Connect) -> None:
    stage.plan(command="true", rollback_command="true")
    stage.run()
    stage.back()
    connect("app-v1")

    stage.back(Through.PRE_DEPLOY)

    assert stage.app.triggers() == []
    assert stage.app.rows("SELECT step FROM _rollout_event WHERE step LIKE 'fleet%%'") == []


def test_an_account_tells_a_generation_and_other_schemas_do_not_count(empty: Target, connect: Connect, account: str) -> None:
    mine, elsewhere = connect(None, account, "secret"), connect("app-v1")
    elsewhere.cursor().execute("USE mysql")

    with Session(empty) as session:
        rules = Fleet.model_validate({"v0": {"user": account}, "v1": RULES["v1"], "others": OTHERS})
        sight = fleet.look(session, empty.schema, rules)
        mine.close()
        later = fleet.look(session, empty.schema, rules)

    assert ({name: len(found) for name, found in sight.alive.items()}, sight.unknown, sight.unseen) == ({"v0": 1, "v1": 0}, (), ())
    assert sight.alive["v0"][0].user == account
    assert later.alive["v0"] == ()


def test_our_own_sessions_are_nobody_but_the_same_account_with_another_program_is_somebody(empty: Target, connect: Connect) -> None:
    with Session(empty) as session, Session(empty):
        assert fleet.look(session, empty.schema, Fleet.model_validate({"others": OTHERS})).unknown == ()
        connect("app-v9")
        assert len(fleet.look(session, empty.schema, Fleet.model_validate({"others": OTHERS})).unknown) == 1


def test_a_look_that_is_denied_is_could_not_look(empty: Target, account: str) -> None:
    with Session(Target(empty.url.set(username=account, password="secret"))) as session:
        sight = fleet.look(session, empty.schema, Fleet.model_validate(RULES))

    assert sight.alive == {}
    assert "sessions cannot be read (MySQL error 1142" in sight.unseen[0]
