"""Exclusive metadata locks are asked for in gaps, so that nobody is stalled and nobody is killed (F24; cases C01, C02)."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext

import pytest

from steps import hold as hold_module
from steps import holders, snapshots
from steps.errors import LockWaited, NoGap, StatementFailed
from steps.hold import Gap, Limits, alone, hold
from steps.mysql import Session, Waits
from steps.target import Target
from steps.watchdog import Watchdog
from tests.conftest import App
from tests.mysql.conftest import Aside, Bystander, Clients, until

GENEROUS_S = 0.5  # half of max_stall_ms; the machines that run this are noisy
Fire = Callable[..., float]
USUAL = Limits(1000, 0.5)


@pytest.fixture
def watchdog(empty: Target) -> Iterator[Watchdog]:
    with Session(empty) as session:
        yield Watchdog(session)


@pytest.fixture
def fire(empty: Target, watchdog: Watchdog) -> Iterator[Fire]:
    """Fires a statement through a gap on `job`, or on more tables."""
    with Session(empty, multi=True, waits=Waits(1)) as session:

        def send(statement: str, *more: str, limits: Limits = USUAL, before_try: Callable[[], None] = lambda: None,
                 is_long: bool = False) -> float:
            tables = [(empty.schema, table) for table in ("job", *more)]
            return Gap(session, watchdog, limits, tables).fire(statement, before_try=before_try, is_long=is_long)

        yield send


@pytest.fixture
def holder(job: App, clients: Clients) -> App:
    """Another client that has read the table in a transaction it leaves open."""
    job.run("INSERT INTO job (id) VALUES ('a'), ('b')")
    client = clients()
    client.run("START TRANSACTION")
    client.rows("SELECT * FROM job")
    return client


def test_a_gap_is_found_when_nobody_holds_the_table(fire: Fire, job: App) -> None:
    assert fire("ALTER TABLE job ADD COLUMN n INT", is_long=True) < GENEROUS_S
    assert "`n` int" in job.create_table("job")


def test_a_transaction_that_has_begun_and_not_yet_read_is_waited_for(fire: Fire, job: App, clients: Clients,
                                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hold_module, "QUIET_S", 30.0)
    begun, ended = clients(), list[bool]()
    begun.run("START TRANSACTION")

    def end() -> None:
        ended.append(True)
        begun.run("COMMIT")

    timer = threading.Timer(0.3, end)
    timer.start()
    fire("ALTER TABLE job ADD COLUMN n INT", is_long=True, limits=Limits(1000, 20))

    assert ended == [True]
    assert "`n` int" in job.create_table("job")


def test_one_that_stays_idle_is_not_waited_for_long(fire: Fire, job: App, clients: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hold_module, "QUIET_S", 0.2)
    idle = clients()
    idle.run("START TRANSACTION")

    fire("ALTER TABLE job ADD COLUMN n INT", is_long=True, limits=Limits(1000, 20))

    assert "`n` int" in job.create_table("job")
    idle.run("COMMIT")


def test_a_short_wait_for_a_gap_is_not_spent_on_transactions_that_hold_nothing(fire: Fire, job: App, clients: Clients) -> None:
    idle = clients()
    idle.run("START TRANSACTION")

    fire("ALTER TABLE job ADD COLUMN n INT", is_long=True, limits=Limits(1000, 1))

    assert "`n` int" in job.create_table("job")
    idle.run("COMMIT")


def test_inside_a_hold_others_wait_and_afterwards_nobody_does(empty: Target, watchdog: Watchdog, job: App, clients: Clients) -> None:
    with hold(empty, watchdog, Limits(1000, 5), [(empty.schema, "job")], [], lambda _: None) as (session, waited_s):
        aside = Aside(clients(), "INSERT INTO job (id) VALUES ('a')")
        until(lambda: watchdog.session.value("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE LIKE 'Waiting for table%'"))
        session.verbatim("ALTER TABLE job ADD COLUMN n INT")
        assert not aside.ended

    assert aside.join().error is None
    assert waited_s < GENEROUS_S
    assert job.rows("SELECT id, n FROM job") == [("a", None)]


def test_a_hold_whose_client_is_gone_without_a_word_ends_by_itself_soon(empty: Target, watchdog: Watchdog, job: App) -> None:
    with hold(empty, watchdog, Limits(1000, 5), [(empty.schema, "job")], [], lambda _: None) as (session, _):
        assert session.value("SELECT @@session.wait_timeout") == hold_module.LONGEST_IDLE_S


def test_the_locks_go_when_the_block_fails(empty: Target, watchdog: Watchdog, job: App, clients: Clients) -> None:
    def broken() -> None:
        with hold(empty, watchdog, Limits(1000, 5), [(empty.schema, "job")], [], lambda _: None) as (session, _):
            session.verbatim("ALTER TABLE job ADD COLUMN status INT")

    with pytest.raises(StatementFailed) as raised:
        broken()

    assert raised.value.errno == 1060
    assert Aside(clients(), "INSERT INTO job (id) VALUES ('a')").join().error is None


def test_while_somebody_holds_the_table_nobody_is_stalled_and_nothing_changes(fire: Fire, holder: App, job: App, clients: Clients) -> None:
    before, tries = job.create_table("job"), []
    with Bystander(clients()) as bystander, pytest.raises(NoGap) as raised:
        fire("ALTER TABLE job ADD COLUMN n INT", before_try=lambda: tries.append(1))

    number = holder.value("SELECT CONNECTION_ID()")
    assert bystander.longest_s < GENEROUS_S
    assert bystander.done > 2
    assert len(tries) > 2
    assert re.search(rf"never free within 0\.5 s; .*job is held by connection {number} \(root@\S+, sleep for \d+ s, "
                     r"transaction open since 2\S+ \S+ UTC, last statement [0-9a-f]{16}\)", raised.value.reason)
    assert (raised.value.exit_code, raised.value.subject) == (4, "table job")
    assert "SELECT" not in str(raised.value)
    assert job.create_table("job") == before
    assert holder.run("UPDATE job SET note = 'mine' WHERE id = 'a'") == 1  # and our looking did not kill it
    holder.run("COMMIT")


def test_a_writer_on_a_foreign_key_parent_counts_as_a_holder(fire: Fire, job: App, clients: Clients, watchdog: Watchdog,
                                                             monkeypatch: pytest.MonkeyPatch) -> None:
    job.run("CREATE TABLE parent (id INT PRIMARY KEY)")
    job.run("ALTER TABLE job ADD COLUMN p INT, ADD FOREIGN KEY (p) REFERENCES parent (id)")
    writer = clients()
    writer.run("START TRANSACTION")
    writer.run("INSERT INTO parent VALUES (1)")

    queued: list[int] = []
    with monkeypatch.context() as patched:
        patched.setattr(watchdog, "after", lambda number, _: queued.append(number) or nullcontext())
        with pytest.raises(NoGap, match="parent is held by connection"):
            fire("ALTER TABLE job ADD COLUMN n INT", "parent", limits=Limits(1000, 0.1))

    assert queued == []  # the guard saw it, so nothing ever stood in the parent's queue
    assert "`n`" not in job.create_table("job")
    writer.run("COMMIT")
    fire("ALTER TABLE job ADD COLUMN n INT", "parent", is_long=True)
    assert "`n`" in job.create_table("job")


def test_a_transaction_that_read_the_table_writes_it_while_we_look_for_a_gap(fire: Fire, holder: App, job: App) -> None:
    tries: list[int] = []

    def meanwhile() -> None:
        tries.append(1)
        if len(tries) == 10:
            holder.run("UPDATE job SET note = 'mine' WHERE id = 'a'")  # 1213 here would be ours
        if len(tries) == 20:
            holder.run("COMMIT")

    fire("ALTER TABLE job ADD COLUMN n INT", limits=Limits(1000, 20), before_try=meanwhile, is_long=True)

    assert len(tries) >= 20
    assert job.rows("SELECT id, note, n FROM job ORDER BY id") == [("a", "mine", None), ("b", None, None)]


def test_who_slips_in_behind_the_guard_costs_milliseconds(fire: Fire, holder: App, job: App, clients: Clients,
                                                          monkeypatch: pytest.MonkeyPatch, slept: list[float]) -> None:
    monkeypatch.setattr(holders, "guard", lambda tables, **_more: "SET @rollout_gap = 1")
    with Bystander(clients()) as bystander, pytest.raises(NoGap):
        fire("ALTER TABLE job ADD COLUMN n INT")

    assert bystander.longest_s < GENEROUS_S
    assert slept
    assert all(0.02 <= seconds <= 1 for seconds in slept)  # such tries are far apart
    holder.run("COMMIT")
    assert "`n`" not in job.create_table("job")


def test_fired_plainly_at_a_held_table_it_gives_up_and_nobody_waits_longer_than_allowed(fire: Fire, holder: App, job: App,
                                                                                       clients: Clients) -> None:
    with Bystander(clients()) as bystander, pytest.raises(LockWaited, match=r"stayed held \(1317\): job is held by connection") as raised:
        fire("ALTER TABLE job ADD COLUMN n INT", limits=Limits(300, 0, plain=True))

    assert bystander.longest_s < 0.3 + GENEROUS_S
    assert raised.value.exit_code == 4
    assert job.value("SELECT COUNT(*) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND COLUMN_NAME = 'n'") == 0
    holder.run("COMMIT")


def test_fired_plainly_at_a_table_that_comes_free_it_goes_on(fire: Fire, holder: App, job: App) -> None:
    tries: list[int] = []

    def freed() -> None:
        tries.append(1)
        if len(tries) == 3:
            holder.run("COMMIT")

    fire("ALTER TABLE job ADD COLUMN n INT", limits=Limits(200, 0, plain=True), before_try=freed)

    assert len(tries) == 3
    assert "`n`" in job.create_table("job")


def test_a_statement_that_is_wrong_is_not_tried_again(fire: Fire, job: App) -> None:
    tries: list[int] = []
    with pytest.raises(StatementFailed) as raised:
        fire("ALTER TABLE job DROP COLUMN nothing", before_try=lambda: tries.append(1))

    assert (raised.value.errno, tries) == (1091, [1])


def test_a_lost_owner_stops_the_search(fire: Fire, holder: App) -> None:
    def lost() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fire("ALTER TABLE job ADD COLUMN n INT", before_try=lost)

    holder.run("COMMIT")


def test_a_long_statement_works_on_beyond_the_patience(fire: Fire, job: App) -> None:
    fire("SELECT SLEEP(0.3)", is_long=True, limits=Limits(150, 1))
    fire("ALTER TABLE job ADD INDEX i (status), ALGORITHM=INPLACE, LOCK=NONE", is_long=True)

    assert "KEY `i` (`status`)" in job.create_table("job")


def test_holders_are_named_oldest_first_and_never_with_their_sql(watchdog: Watchdog, holder: App, clients: Clients, empty: Target) -> None:
    second = clients()
    second.run("START TRANSACTION")
    second.run("UPDATE job SET note = 'secret' WHERE id = 'b'")

    found = holders.named(watchdog.session, [(empty.schema, "job")])
    numbers = [client.value("SELECT CONNECTION_ID()") for client in (holder, second)]
    assert {int(line.split("connection ")[1].split()[0]) for line in found} == set(numbers)
    assert [line.split("since ")[1][:19] for line in found] == sorted(line.split("since ")[1][:19] for line in found)
    assert not any("secret" in line or "UPDATE" in line for line in found)


@pytest.mark.parametrize(("max_stall_ms", "patience_s"), [(1000, 0.9), (300, 0.2), (100, 0.05)])
def test_patience_leaves_a_margin(max_stall_ms: int, patience_s: float) -> None:
    assert Limits(max_stall_ms, 1).patience_s == pytest.approx(patience_s)


def test_old_snapshots_are_waited_for_within_a_bound(session: Session, clients: Clients) -> None:
    old, before = clients(), snapshots.wait_until_young(session, 0)  # other tests' sessions may be about to end
    old.run("START TRANSACTION WITH CONSISTENT SNAPSHOT")
    number = old.connection.thread_id()
    seen = "SELECT COUNT(*) FROM information_schema.INNODB_TRX WHERE trx_started < SYSDATE() - INTERVAL 2 SECOND AND trx_mysql_thread_id ="
    until(lambda: session.value(f"{seen} {number}") or session.value("SELECT SLEEP(0.15)"))  # asked less often than its cache is kept

    assert 1 <= snapshots.wait_until_young(session, 0.2) <= before + 1
    old.run("COMMIT")
    until(lambda: session.value("SELECT SLEEP(0.2)") == 0)  # InnoDB's own cache of transactions
    assert snapshots.wait_until_young(session, 5) <= before


@pytest.fixture
def large(job: App) -> App:
    """Rows enough for an index build to take a while."""
    job.run("SET SESSION cte_max_recursion_depth = 100000")
    job.run("INSERT INTO job (id, note) WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 20000) "
            "SELECT i, REPEAT(SHA2(i, 256), 3) FROM n")
    return job


WELL_UNDER_WAY = 5


class Reader:
    """
    Begins a transaction on the table as soon as the index build is under way, and keeps it open while that waits for it.

    One that comes in the build's first moments is in its way at once, so that no build begins; it lets go and tries again.
    """

    def __init__(self, client: App, watching: App) -> None:
        self.client, self.watching = client, watching
        self.number = client.value("SELECT CONNECTION_ID()")
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def _work(self) -> None:
        until(lambda: not self._building("%"))  # the build that was lost may still be on its way out
        seen = 0
        while not self._ended.is_set():
            seen = seen + 1 if self._building("altering table") else 0
            if seen == WELL_UNDER_WAY:  # its first moments have the same name
                self.client.run("START TRANSACTION")
                self.client.rows("SELECT id FROM job LIMIT 1")
                while self._building("%") and not self._ended.is_set():
                    pass
                self.client.run("COMMIT")
                seen = 0

    def _building(self, state: str) -> bool:
        return bool(self.watching.value("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'ALTER TABLE job ADD INDEX%%' "
                                        "AND STATE LIKE %s", state))

    def end(self) -> None:
        self._ended.set()
        self._thread.join(10)


BUILD = "ALTER TABLE job ADD INDEX n (note(192)), ALGORITHM=INPLACE, LOCK=NONE"


def test_an_index_build_that_finds_the_table_held_at_its_end_is_lost_named_and_capped(
        empty: Target, watchdog: Watchdog, large: App, clients: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    told, readers = list[str](), [Reader(clients(), clients())]

    def lost(line: str) -> None:
        told.append(line)
        readers[-1].end()
        readers.append(Reader(clients(), clients()))

    limits = Limits(300, 20)
    with pytest.raises(LockWaited, match="3 builds, which were lost: job is held by connection") as raised, \
            alone(empty, watchdog, limits, [(empty.schema, "job")], [], lost) as (_session, gap):
        gap.fire(BUILD, is_long=True)
    readers[-1].end()

    assert raised.value.exit_code == 4
    assert [f"connection {reader.number} " in line for reader, line in zip(readers, told, strict=False)] == [True] * 3
    assert "`n`" not in large.create_table("job")


def test_a_lost_build_is_made_again_once_the_table_is_free(empty: Target, watchdog: Watchdog, large: App, clients: Clients) -> None:
    told, reader = list[str](), Reader(clients(), clients())

    def lost(line: str) -> None:
        told.append(line)
        reader.end()

    with alone(empty, watchdog, Limits(300, 20), [(empty.schema, "job")], [], lost) as (_session, gap):
        gap.fire(BUILD, is_long=True)

    assert len(told) == 1
    assert f"job is held by connection {reader.number} (root@" in told[0]
    assert "KEY `n` (`note`(192))" in large.create_table("job")
