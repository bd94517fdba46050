"""Sessions: settings in force, names and values that mean only themselves, errors without row contents."""

from __future__ import annotations

import datetime as dt
import decimal
import threading
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steps import session_settings
from steps.errors import ConnectionLost, LockTimeout, Refused, StatementFailed, Unreachable
from steps.mysql import VALUE, Session, Waits, quote
from steps.target import Target
from tests.conftest import App
from tests.mysql.conftest import Aside, Clients

NAMES = ["100%", "rate%s", "%(x)s", "%%", "a:b", ":x", "a?b", "we`ird", "`", "ä b", "order", "a'b\"c\\", "${x}", "{0}", " lead", "x" * 64]
BIND = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def test_the_settings_are_in_force(session: Session, empty: Target) -> None:
    with Session(empty, waits=Waits(lock_wait_timeout_s=7, innodb_lock_wait_timeout_s=3)) as other:
        shown = ("SELECT @@session.time_zone, @@session.lock_wait_timeout, @@session.innodb_lock_wait_timeout, "
                 "@@session.transaction_isolation, @@session.autocommit, @@session.character_set_client, @@session.collation_connection, "
                 "@@session.sql_safe_updates, @@session.information_schema_stats_expiry")
        rest = ("READ-COMMITTED", 1, "utf8mb4", "utf8mb4_0900_ai_ci", 0, 0)

        assert session.one(shown) == ("+00:00", 2, 2, *rest)
        assert other.one(shown) == ("+00:00", 7, 3, *rest)
    assert set(session.value("SELECT @@session.sql_mode").split(",")) == set(session_settings.SQL_MODE.split(","))
    assert session.value("SELECT CONNECTION_ID()") == session.connection_id
    assert session.value("SELECT ABS(TIMESTAMPDIFF(SECOND, NOW(), UTC_TIMESTAMP()))") == 0


def test_a_server_that_swallows_set_is_refused(empty: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Session.run

    def swallowing(self: Session, sql: str, *values: Any) -> int:
        return 0 if sql.startswith("SET SESSION") else real(self, sql, *values)

    monkeypatch.setattr(Session, "run", swallowing)

    with pytest.raises(Refused, match="lock_wait_timeout is 31536000 after SET 2") as raised:
        Session(empty)

    assert raised.value.exit_code == 3


def test_any_name_and_its_value_mean_only_themselves(session: Session) -> None:
    for name in NAMES:
        session.run(f"CREATE TABLE {quote(name)} ({quote(name)} VARCHAR(100) NOT NULL, KEY {quote(name)} ({quote(name)}))")
        means_itself(session, name)


def means_itself(session: Session, name: str) -> None:
    session.run(f"INSERT INTO {quote(name)} ({quote(name)}) VALUES ({VALUE})", name)

    assert session.query(f"SELECT {quote(name)} FROM {quote(name)} WHERE {quote(name)} = {VALUE} AND '100%s ?:x' = {VALUE}",
                         name, "100%s ?:x") == [(name,)]
    assert session.value("SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = "
                         f"{VALUE} AND TABLE_NAME = {VALUE}", session.schema, name) == name


@BIND
@given(st.one_of(st.text(max_size=50), st.integers(-(2**63), 2**64 - 1), st.none(), st.decimals(
    min_value=-10**20, max_value=10**20, places=6), st.datetimes(min_value=dt.datetime(1000, 1, 1))))  # noqa: DTZ001
def test_any_value_comes_back_as_it_was(session: Session, value: Any) -> None:
    kind = {str: "CHAR", decimal.Decimal: "DECIMAL(40, 6)", dt.datetime: "DATETIME(6)"}.get(type(value))

    got = session.value(f"SELECT CAST({VALUE} AS {kind})" if kind else f"SELECT {VALUE}", value)
    assert got == value


@BIND
@given(st.binary(max_size=50))
def test_any_bytes_come_back_as_they_were(session: Session, value: bytes) -> None:
    assert session.one(f"SELECT HEX({VALUE}), LENGTH({VALUE})", value, value) == (value.hex().upper(), len(value))


def test_a_value_too_many_or_too_few_is_a_fault(session: Session) -> None:
    for values in ((), (1, 2)):
        with pytest.raises(StatementFailed, match="values for 1 places"):
            session.query(f"SELECT {VALUE}", *values)


def test_verbatim_sql_is_sent_untouched(session: Session) -> None:
    assert session.read_verbatim("SELECT '%s :x ? %(a)s 12:30:00', \"a;b\", 5 % 3, @a:=1 -- it's") == [
        ("%s :x ? %(a)s 12:30:00", "a;b", 2, 1)]
    assert session.verbatim("CREATE TABLE `100%` (`rate%s` INT COMMENT '%')") == 0
    assert session.value("SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_NAME = '100%' AND TABLE_SCHEMA = "
                         f"{VALUE}", session.schema) == "rate%s"


@pytest.mark.parametrize("content", ["top secret", "it's a secret", "secret' for key 'x", "line\nsecret"])
def test_row_contents_are_cut_from_errors(session: Session, job: App, content: str) -> None:
    job.run("INSERT INTO job (id) VALUES (%s)", content)

    with pytest.raises(StatementFailed) as raised:
        session.run(f"INSERT INTO job (id) VALUES ({VALUE})", content)

    assert raised.value.errno == 1062
    assert raised.value.reason == "MySQL error 1062: Duplicate entry '…' for key 'job.PRIMARY'"
    assert "secret" not in f"{raised.value!s} {raised.value.args}"
    assert raised.value.__cause__ is None
    assert job.rows("SELECT id FROM job") == [(content,)]


@pytest.mark.parametrize(("change", "sql", "text"), [
    ("SELECT 1", "INSERT INTO job (id, doneAt) VALUES ('a', 'secr''et')", "Incorrect datetime value: '…' for column 'doneAt' at row 1"),
    ("ALTER TABLE job ADD n INT", "INSERT INTO job (id, n) VALUES ('a', 'secret')", "Incorrect integer value: '…' for column 'n' at row 1"),
    ("ALTER TABLE job ADD n TINYINT", "INSERT INTO job (id, n) VALUES ('a', 999)", "Out of range value for column 'n' at row 1"),
    ("INSERT INTO job (id) VALUES ('secret')", "UPDATE job SET doneAt = NOW() WHERE id = 5 OR CAST(id AS DOUBLE) > 0",
     "Truncated incorrect DOUBLE value: '…'"),
])
def test_names_are_kept_where_contents_are_cut(session: Session, job: App, change: str, sql: str, text: str) -> None:
    job.run(change)

    with pytest.raises(StatementFailed) as raised:
        session.run(sql)

    assert raised.value.reason.partition(": ")[2] == text


def together(session: Session, *steps: str | Callable[[], object]) -> None:
    with session.transaction():
        for step in steps:
            session.run(step) if isinstance(step, str) else step()


def test_after_an_error_the_whole_transaction_is_undone(empty: Target, job: App, clients: Clients) -> None:
    job.run("INSERT INTO job (id) VALUES ('held')")
    holder = clients()
    holder.run("START TRANSACTION")
    holder.run("UPDATE job SET note = 'mine' WHERE id = 'held'")

    with Session(empty, waits=Waits(innodb_lock_wait_timeout_s=1)) as session:
        with pytest.raises(LockTimeout) as raised:
            together(session, "INSERT INTO job (id) VALUES ('first')", "UPDATE job SET note = 'ours' WHERE id = 'held'")

        assert (raised.value.errno, raised.value.retryable, raised.value.exit_code) == (1205, True, 4)
        assert holder.value("SELECT COUNT(*) FROM information_schema.INNODB_TRX WHERE trx_mysql_thread_id = %s", session.connection_id) == 0
        holder.run("COMMIT")
        assert holder.rows("SELECT id, note FROM job") == [("held", "mine")]
        together(session, "INSERT INTO job (id) VALUES ('second')")
        assert holder.value("SELECT COUNT(*) FROM job") == 2


def test_a_commit_that_waited_in_vain_is_undone_and_not_committed_by_the_next_try(empty: Target, job: App, clients: Clients) -> None:
    backup = clients()
    with Session(empty, waits=Waits(lock_wait_timeout_s=1)) as session:
        with pytest.raises(LockTimeout):
            together(session, "INSERT INTO job (id) VALUES ('first')", lambda: backup.run("FLUSH TABLES WITH READ LOCK"))
        assert backup.value("SELECT COUNT(*) FROM information_schema.INNODB_TRX WHERE trx_mysql_thread_id = %s", session.connection_id) == 0

        backup.run("UNLOCK TABLES")
        together(session, "INSERT INTO job (id) VALUES ('second')")

    assert job.rows("SELECT id FROM job") == [("second",)]


def test_an_error_of_our_own_undoes_the_transaction_too(session: Session, job: App) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        together(session, "INSERT INTO job (id) VALUES ('a')", interrupted)

    assert job.value("SELECT COUNT(*) FROM job") == 0


@pytest.mark.parametrize("in_transaction", [False, True])
def test_a_connection_killed_between_statements_is_lost_for_good(empty: Target, job: App, in_transaction: bool) -> None:
    with Session(empty) as session:
        steps = ("INSERT INTO job (id) VALUES ('a')", lambda: job.run(f"KILL {session.connection_id}"), "INSERT INTO job (id) VALUES ('b')")
        with pytest.raises(ConnectionLost) as raised:
            together(session, *steps) if in_transaction else [session.run(s) if isinstance(s, str) else s() for s in steps]
        assert (raised.value.retryable, raised.value.exit_code) == (True, 4)

        with pytest.raises(ConnectionLost):
            session.query("SELECT 1")
    assert job.rows("SELECT id FROM job") == ([] if in_transaction else [("a",)])


def test_a_connection_killed_in_a_statement_is_lost(session: Session, clients: Clients) -> None:
    killer = clients()
    threading.Timer(0.1, lambda: killer.run(f"KILL {session.connection_id}")).start()

    with pytest.raises(ConnectionLost):
        session.query("SELECT SLEEP(10)")
    with pytest.raises(ConnectionLost):
        session.query("SELECT 1")


def test_a_killed_statement_may_be_tried_again(session: Session, clients: Clients) -> None:
    killer = clients()
    threading.Timer(0.1, lambda: killer.run(f"KILL QUERY {session.connection_id}")).start()

    with pytest.raises(LockTimeout) as raised:
        session.query("SELECT COUNT(*) FROM (SELECT 1 FROM information_schema.COLUMNS a, information_schema.COLUMNS b, "
                      "information_schema.COLUMNS c) AS long_one")

    assert raised.value.errno == 1317
    assert session.value("SELECT 1") == 1


def test_a_plain_session_takes_one_statement_only(session: Session, job: App) -> None:
    with pytest.raises(StatementFailed) as raised:
        session.verbatim("INSERT INTO job (id) VALUES ('a'); INSERT INTO job (id) VALUES ('b')")

    assert raised.value.errno == 1064
    assert job.value("SELECT COUNT(*) FROM job") == 0


def test_the_second_statement_of_a_packet_runs_only_after_the_first(empty: Target, job: App) -> None:
    entered: list[str] = []

    def guard() -> nullcontext[None]:
        entered.append("guarded")
        return nullcontext()

    with Session(empty, multi=True) as session:
        with pytest.raises(StatementFailed) as raised:
            session.packet("SET @x = (SELECT 1 UNION ALL SELECT 2)", "INSERT INTO job (id) VALUES ('a')", guard)
        assert (raised.value.errno, entered, job.value("SELECT COUNT(*) FROM job")) == (1242, [], 0)

        session.packet("SET @x = 1", "INSERT INTO job (id) VALUES ('a')", guard)
        assert (entered, job.value("SELECT COUNT(*) FROM job"), session.value("SELECT @x")) == (["guarded"], 1, 1)


def test_warnings_are_numbers_without_contents(session: Session) -> None:
    session.query("SELECT CAST('secret' AS SIGNED)")
    assert session.warnings() == ["1292"]

    session.query("SELECT 1")
    assert session.warnings() == []


@pytest.mark.parametrize("change", [{"password": "wrong-hunter22"}, {"port": 1}, {"database": "no_such_schema"}, {"username": "nobody"}])
def test_a_server_that_does_not_let_us_in_is_unreachable(empty: Target, change: dict[str, Any]) -> None:
    with pytest.raises(Unreachable) as raised:
        Session(Target(empty.url.set(**change)))

    assert raised.value.exit_code == 3
    assert not {str(empty.url.password), "hunter22"} & set(str(raised.value.args).split())
    assert "hunter22" not in str(raised.value)


def test_a_waiting_session_never_holds_a_lock_between_statements(session: Session, job: App, clients: Clients) -> None:
    """C03: what we only look at must not stop our own DDL."""
    session.query("SELECT COUNT(*) FROM job")

    assert Aside(clients(), "SET SESSION lock_wait_timeout = 1", "ALTER TABLE job ADD COLUMN n INT").join().error is None
    assert "`n` int" in job.create_table("job")
