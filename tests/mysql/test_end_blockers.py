"""Sessions in the way are ended only when asked for, and only those that may be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest

from steps import end_blockers
from steps.end_blockers import Ender
from steps.errors import NoGap
from steps.hold import Gap, Limits
from steps.mysql import Session, Waits
from steps.target import Target
from steps.watchdog import Watchdog
from tests.conftest import App
from tests.mysql.conftest import Clients, Opened, until
from tests.plans import small

Told = list[tuple[str, dict[str, Any]]]


@pytest.fixture
def told() -> Told:
    return []


@pytest.fixture
def add_column(empty: Target, session: Session, told: Told) -> Iterator[Callable[[], float]]:
    """Adds a column to `job`, ending whoever blocks it."""
    ender = Ender(session, 0, lambda outcome, facts: told.append((outcome, facts)))
    with Session(empty, multi=True, waits=Waits(1)) as own:
        gap = Gap(own, Watchdog(session), Limits(1000, 1, blocked=ender), [(empty.schema, "job")])
        yield lambda: gap.fire("ALTER TABLE job ADD COLUMN n INT", is_long=True)


@pytest.fixture
def blocker(job: App, clients: Clients) -> App:
    job.run("INSERT INTO job (id) VALUES ('a'), ('b')")
    client = clients()
    client.run("START TRANSACTION")
    client.run("UPDATE job SET note = 'mine' WHERE id = 'a'")
    number = client.connection.thread_id()
    seen = f"SELECT COUNT(*) FROM information_schema.INNODB_TRX WHERE trx_mysql_thread_id = {number}"
    until(lambda: job.value(seen) or job.value("SELECT SLEEP(0.15)"))  # asked less often than its cache is kept
    return client


def number_of(client: App) -> int:
    return int(client.value("SELECT CONNECTION_ID()"))


@pytest.fixture(autouse=True)
def looks_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(end_blockers, "LOOK_EVERY_S", 0)


def test_an_idle_transaction_is_ended_and_the_step_goes_on(add_column: Callable[[], float], blocker: App, job: App, told: Told) -> None:
    number = number_of(blocker)

    add_column()

    with pytest.raises(pymysql.err.MySQLError):
        blocker.run("COMMIT")
    assert job.rows("SELECT id, note, n FROM job ORDER BY id") == [("a", None, None), ("b", None, None)]
    [(outcome, facts)] = told
    assert (outcome, facts["connection"], facts["table"]) == ("ended", number, "job")
    assert facts["who"].startswith("root@")
    assert len(facts["digest"]) == 64
    assert not any("mine" in str(value) for value in facts.values())


def test_a_heavy_transaction_is_spared(add_column: Callable[[], float], blocker: App, told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(end_blockers, "HEAVIEST", 1)

    with pytest.raises(NoGap, match=f"job is held by connection {number_of(blocker)}") as raised:
        add_column()

    blocker.run("COMMIT")
    assert raised.value.remedy.count(f"--end-blockers spared connection {number_of(blocker)} (root@") == 1
    assert "more than 1 rows changed or locked" in raised.value.remedy
    assert "let the tool do it" not in raised.value.remedy
    assert [(outcome, facts["connection"], facts["why"]) for outcome, facts in told] == [
        ("spared", number_of(blocker), "more than 1 rows changed or locked")]


def test_who_is_younger_than_asked_for_is_spared_and_told_so(session: Session, empty: Target, blocker: App, told: Told) -> None:
    spared = Ender(session, 3600, lambda outcome, facts: told.append((outcome, facts)))([(empty.schema, "job")], 3600)

    blocker.run("COMMIT")
    assert spared == [f"connection {number_of(blocker)} ({told[0][1]['who']}): younger than 3600 s (end_blockers_after_s)"]


@pytest.mark.parametrize(("statement", "why"), [("LOCK TABLES job READ", "LOCK TABLES"), ("LOCK TABLES job WRITE", "LOCK TABLES"),
                                                ("LOCK INSTANCE FOR BACKUP", "a backup")])
def test_explicit_locks_and_backups_are_spared(add_column: Callable[[], float], job: App, clients: Clients, told: Told,
                                               statement: str, why: str) -> None:
    client = clients()
    client.run(statement)
    try:
        with pytest.raises(NoGap, match=f"held by connection {number_of(client)}") as raised:
            add_column()
    finally:
        client.run("UNLOCK INSTANCE" if "INSTANCE" in statement else "UNLOCK TABLES")

    assert f"): {why})" in raised.value.remedy
    assert [(outcome, facts["why"]) for outcome, facts in told] == [("spared", why)]
    assert "`n`" not in job.create_table("job")


def test_our_own_sessions_are_spared(add_column: Callable[[], float], job: App, empty: Target, told: Told) -> None:
    with Session(empty) as ours:
        ours.run("START TRANSACTION")
        ours.query("SELECT * FROM job")
        with pytest.raises(NoGap, match="a session of this tool"):
            add_column()
        ours.run("COMMIT")

    assert [(outcome, facts["why"]) for outcome, facts in told] == [("spared", "a session of this tool")]


def test_who_is_in_another_transaction_by_then_is_spared(session: Session, empty: Target, blocker: App, told: Told,
                                                          monkeypatch: pytest.MonkeyPatch) -> None:
    ender = Ender(session, 0, lambda outcome, facts: told.append((outcome, facts)))
    real, looks = ender._look, list[int]()

    def look(tables: Any) -> Any:
        looks.append(1)
        if len(looks) == 2:
            blocker.run("COMMIT")
            until(lambda: session.value("SELECT SLEEP(0.15)") == 0 and not real(tables))
        return real(tables)

    monkeypatch.setattr(ender, "_look", look)
    ender([(empty.schema, "job")], 5.0)

    assert (len(looks), told) == (2, [])
    assert blocker.run("UPDATE job SET note = 'next' WHERE id = 'b'") == 1


def test_who_was_ended_is_on_record_before_the_hold_is_over(opened_on: Opened, job: App, tmp_path: Path) -> None:
    rollout = opened_on(small(tmp_path))
    rollout.ledger.create()

    with rollout.recorded_later():  # as inside a hold, where a kill -9 would lose what is kept back
        end_blockers.ender(rollout).told("ended", {"connection": 7, "who": "app@h"})
        assert [(event["step"], event["outcome"]) for event in rollout.ledger.events()] == [("connection 7", "ended")]


def test_nothing_happens_before_its_time(session: Session, empty: Target, blocker: App, told: Told) -> None:
    Ender(session, 10, lambda outcome, facts: told.append((outcome, facts)))([(empty.schema, "job")], 9.9)

    assert told == []
    blocker.run("COMMIT")


@pytest.fixture
def account(session: Session, empty: Target) -> Iterator[Callable[[str], Session]]:
    """A session of an account with one grant, removed at the end."""
    name, opened = f"e{session.connection_id}", list[Session]()
    session.run(f"CREATE USER `{name}`@'%' IDENTIFIED BY 'secret'")

    def log_in(grant: str) -> Session:
        session.run(f"GRANT {grant} TO `{name}`@'%'")
        opened.append(Session(Target(empty.url.set(username=name, password="secret"))))
        return opened[-1]

    yield log_in
    for one in opened:
        one.close()
    session.run(f"DROP USER `{name}`@'%'")


def test_without_the_right_to_end_others_it_is_told_beforehand(session: Session, empty: Target, account: Callable[[str], Session]) -> None:
    assert end_blockers.findings(session) == []
    [finding] = end_blockers.findings(account(f"SELECT ON `{empty.schema}`.*"))
    assert (finding.severity, "CONNECTION_ADMIN" in finding.what) == ("warn", True)
    assert end_blockers.findings(account("CONNECTION_ADMIN ON *.*")) == []
