"""deploy/grants.sql says what the code needs, and is enough: every command under the rights of its heading and those before, no more."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import make_url

from deploy.mysql_server import Server
from flows import grants_sql
from steps import checks, end_blockers, fleet, rehearsal
from steps.checks import privileges
from steps.checks.rights import NEEDS, SECTIONS
from steps.mysql import Session
from steps.plan_deploy import Alive, Fleet
from steps.target import ENVIRONMENT, Target
from tests.cli.calling import DEPLOYED, PLAN, Call, standing
from tests.conftest import App
from tests.plans import ADD_STATE, written
from tests.remembered import remembered
from tests.servers.granting import PASSWORD, USER, Granting, headed

LEAF = "CREATE TABLE AiJobSnapshot (id VARCHAR(191) PRIMARY KEY, jobId VARCHAR(191) NULL) COLLATE utf8mb4_unicode_ci"
SOON = ("cleanup.deploy=true", "cleanup.rollback_deploy=true", "cleanup.min_age_s=0", "cleanup.observe_s=0", "cleanup.cooling_s=0")


@pytest.fixture
def ledger(admin: App) -> Iterator[str]:
    name = f"l_{uuid.uuid4().hex[:10]}"
    admin.run(f"CREATE DATABASE {name}")
    yield name
    admin.run(f"DROP DATABASE {name}")


@pytest.fixture
def granting(job: App, admin: App, own: Server, ledger: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Granting]:
    """The account of the file, without any right yet, is who the command line is."""
    schema = str(job.value("SELECT DATABASE()"))
    job.run(LEAF)
    admin.run("SET GLOBAL log_bin_trust_function_creators = 1")
    given = Granting(admin, schema, ledger, relatives=("User",), leaves=("AiJobSnapshot",), table="AiAnalysisJob")
    given.give("")
    url = make_url(own.url).set(username=USER, password=PASSWORD, database=schema)
    monkeypatch.setenv(ENVIRONMENT, url.render_as_string(hide_password=False))
    yield given
    given.take_all()
    admin.run("SET GLOBAL log_bin_trust_function_creators = 0")


@pytest.fixture
def words(ledger: str) -> tuple[str, ...]:
    settings = [word for setting in (f"ledger_schema={ledger}", *SOON) for word in ("--set", setting)]
    return (PLAN, *DEPLOYED, *settings)


def test_the_file_is_what_the_table_of_rights_says() -> None:
    assert grants_sql.FILE.read_text() == grants_sql.render(), "run python -m flows.grants_sql"
    assert list(headed()) == ["", *SECTIONS, "optional"]
    for need in NEEDS:
        assert sorted(right for section in SECTIONS for right in need.rights_of(section)) == sorted(need.rights), need.by


@pytest.mark.timeout(600)
def test_each_heading_is_enough_for_what_it_names(granting: Granting, call: Call, job: App, words: tuple[str, ...],
                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    before = job.create_table(), job.create_table("AiJobSnapshot"), job.rows("SELECT * FROM AiAnalysisJob ORDER BY id")
    changing = (*words, "--no-prefect", "--by", "ann", "--reason", "it is due")

    def works(*said: str) -> None:
        answer = call(*said)
        assert answer.code == 0, f"{said[0]}: {answer.text}"
        assert "could not look [" not in answer.text, answer.text
        assert "denied" not in answer.text, answer.text

    granting.give("look")
    works("status", *words)
    works("report", *words)

    granting.give("rehearse")
    untouched = standing(job)
    refused = call("run", *changing)
    assert (refused.code, "lacks INSERT, UPDATE, REFERENCES, ALTER on" in refused.text) == (3, True), refused.text
    with monkeypatch.context() as silent:
        # The check asks for all headings at once; here each is to be enough alone.
        silent.setattr(checks, "CHECKS", tuple(check for check in checks.CHECKS if check.name != privileges.NAME))
        for said in (("check", *words), ("plan", *words, "--sql"), ("plan", *words, "--prisma"), ("rehearse", *words)):
            works(*said)
        assert standing(job) == untouched

        monkeypatch.setattr(rehearsal, "rehearse", remembered)  # it has shown above that it may
        granting.give("pre_deploy")
        for phase in ("pre_deploy", "deploy", "backfill", "verify", "shadow_write"):
            works("run", *changing, "--through", phase)
        for phase in ("shadow_write", "verify", "backfill", "deploy"):
            works("rollback", *changing[:1], phase, *changing[1:])
        works("rollback", *changing, "--to", "v0", "--drop-added", "--accept", "discard-added")
        assert job.create_table() == before[0]
        works("run", *changing)
    assert "FOREIGN KEY (`jobId`)" in job.create_table("AiJobSnapshot")
    gone = call("check", *words)
    assert (gone.code, "lacks DROP on" in gone.text) == (3, True), gone.text

    granting.give("cleanup")
    works("check", *words)
    cleanup = ("--through", "cleanup", "--accept", "cleanup", "--accept", "cleanup-unseen")
    works("run", *changing, *cleanup)
    works("rollback", *changing[:1], "cleanup", *changing[1:])
    works("run", *changing, *cleanup)
    works("status", *words)
    works("report", *words)
    works("rollback", *changing, "--to", "v0", "--drop-added", "--accept", "discard-added")
    works("uninstall", *words, "--yes", "--by", "ann", "--reason", "it is over", "--accept", "purge-archive")

    assert (job.create_table(), job.rows("SELECT * FROM AiAnalysisJob ORDER BY id")) == (before[0], before[2])
    assert job.triggers() == []
    assert granting.admin.rows(f"SHOW TABLES FROM {granting.names['YOUR_LEDGER_DATABASE']}") == []


def test_uninstall_without_the_right_to_drop_is_refused_whole(granting: Granting, call: Call, job: App, ledger: str, tmp_path: Path,
                                                              monkeypatch: pytest.MonkeyPatch) -> None:
    for heading in ("look", "rehearse", "pre_deploy"):
        granting.give(heading)
    words = (str(written(tmp_path, table="AiAnalysisJob", steps=(ADD_STATE,), tail="")), "--set", f"ledger_schema={ledger}")
    changing = (*words, *DEPLOYED, "--no-prefect", "--by", "ann", "--reason", "it is due")
    assert call("run", *changing).code == 0
    assert call("rollback", *changing, "--to", "v0", "--drop-added").code == 0
    runs = granting.admin.rows(f"SELECT run_id FROM {ledger}._rollout_run")

    answer = call("uninstall", *words, "--yes", "--by", "ann", "--reason", "it is over")

    assert (answer.code, f"lacks DROP on ledger {ledger}" in answer.text) == (3, True), answer.text
    assert granting.admin.rows(f"SELECT run_id FROM {ledger}._rollout_run") == runs
    granting.give("cleanup")
    assert call("uninstall", *words, "--yes", "--by", "ann", "--reason", "it is over").code == 0
    assert granting.admin.rows(f"SHOW TABLES FROM {ledger}") == []


def test_the_rights_to_end_blockers_and_to_tell_the_fleet_are_enough(granting: Granting, own: Server, job: App) -> None:
    for heading in ("look", "rehearse"):
        granting.give(heading)
    schema = str(job.value("SELECT DATABASE()"))
    target = Target(make_url(own.url).set(username=USER, password=PASSWORD, database=schema))
    generations = Fleet(v0=Alive(attribute="program_name", value="shop"))
    with Session(target) as session:
        assert not end_blockers.may_kill(session)
        assert "cannot be read" in fleet.look(session, schema, generations).unseen[0]

    granting.give("cleanup", "session_connect_attrs")
    granting.give("optional", "CONNECTION_ADMIN")

    job.run("CREATE USER application@'127.0.0.1' IDENTIFIED BY 'secret'")
    other = App(Target(make_url(own.url).set(username="application", password="secret")), "")
    with Session(target) as session:
        assert fleet.look(session, schema, generations).unseen == ()
        assert end_blockers.may_kill(session)
        session.run(f"KILL {int(other.value('SELECT CONNECTION_ID()'))}")
        with pytest.raises(Exception, match=r"2013|2006|4031"):
            other.value("SELECT 1")
    other.close()
    job.run("DROP USER application@'127.0.0.1'")


def test_a_fleet_that_could_not_be_told_is_told_beforehand(granting: Granting, call: Call, words: tuple[str, ...]) -> None:
    for heading in ("look", "rehearse", "pre_deploy"):
        granting.give(heading)
    granting.give("cleanup", "DROP")
    told = "lacks SELECT on performance_schema.session_connect_attrs, for telling the generations of the application apart"

    assert told not in call("check", *words).text
    assert told in call("check", *words, "--set", 'fleet.v0={ user = "a" }').text
    granting.give("cleanup")
    assert told not in call("check", *words, "--set", 'fleet.v0={ user = "a" }').text


def test_the_rights_on_a_replica_are_enough_to_ask_it(granting: Granting, own: Server, job: App, ledger: str, call: Call,
                                                      words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """The server stands for its own replica: what is asked there are its state and our heartbeat."""
    for heading in ("look", "rehearse", "pre_deploy", "cleanup"):
        granting.give(heading)
    assert call("run", *words, "--no-prefect", "--by", "ann", "--reason", "it is due").code == 0
    granting.admin.run("CREATE USER follower@'127.0.0.1' IDENTIFIED BY 'secret'")
    try:
        for statement in headed()["optional"]:
            if "REPLICATION CLIENT ON" in statement or "LEDGER" in statement:
                filled = statement.replace("'YOUR_TOOL'@'YOUR_HOST'", "follower@'127.0.0.1'")
                granting.admin.run(filled.replace("YOUR_LEDGER_DATABASE", ledger))
        url = make_url(own.url).set(username="follower", password="secret", database=ledger)
        monkeypatch.setenv("REPLICA_ONE", url.render_as_string(hide_password=False))
        with Session(Target(url)) as replica:
            assert replica.query("SHOW REPLICA STATUS") == []
            assert replica.value(f"SELECT COUNT(*) FROM {ledger}._rollout_pace") >= 1
    finally:
        granting.admin.run("DROP USER follower@'127.0.0.1'")
