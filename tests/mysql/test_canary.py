"""The canary writes as both generations, proves the triggers, and leaves nothing behind (case C40)."""

from __future__ import annotations

from pathlib import Path

import pytest

from steps import canary, sync, waits
from steps.agreement import Pair
from steps.errors import CanaryFailed, LockTimeout, LockWaited, Refused, Stopped
from steps.hold import Limits, hold
from steps.mysql import Session
from steps.plan import Plan
from steps.target import Target
from steps.watchdog import Watchdog
from tests.conftest import App
from tests.mysql.conftest import Aside, Clients, Opened, expand
from tests.plans import ADD_STATE, STATE, Renamed, small

BOTH = [ADD_STATE, Renamed("doneAt", "finishedAt"), Renamed("note", "internalNote")]
ADDED = f"{STATE}, ADD COLUMN finishedAt DATETIME(3) NULL, ADD COLUMN internalNote TEXT NULL"


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return small(tmp_path, steps=BOTH)


def with_triggers(job: App, session: Session, plan: Plan, added: str = ADDED) -> tuple[Pair, ...]:
    job.run(f"ALTER TABLE job {added}")
    pairs = sync.pairs(session, plan, str(session.schema))
    for trigger in sync.sync_triggers(plan.id, pairs):
        session.verbatim(trigger.create("job", "CURRENT_USER", None))
    return pairs


def sing(session: Session, pairs: tuple[Pair, ...]) -> tuple[str, ...]:
    return canary.sing(session, "job", str(session.schema), pairs)


def settings(session: Session) -> tuple[int, ...]:
    return session.one("SELECT @@session.autocommit, @@session.foreign_key_checks")


def locked(job: App, errno: int, times: int) -> None:
    """A trigger that meets *errno* the first *times* that a session inserts a row, as if what it writes were held by somebody."""
    job.run(f"CREATE TRIGGER held AFTER INSERT ON job FOR EACH ROW BEGIN SET @met = IFNULL(@met, 0) + 1; IF @met <= {times} THEN "
            f"SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = {errno}, MESSAGE_TEXT = 'try restarting transaction'; END IF; END")


def test_right_triggers_pass_and_no_row_is_left(job: App, session: Session, plan: Plan) -> None:
    job.run("INSERT INTO job (id) VALUES ('mine')")
    pairs = with_triggers(job, session, plan)

    [note] = sing(session, pairs)

    assert note.startswith("canary wrote ")
    assert int(note.split()[2]) > 2 * (len(plan.sync[0].to_new) + len(plan.sync[0].to_old))
    assert job.rows("SELECT id, status, state FROM job") == [("mine", "pending", "pending")]
    assert settings(session) == (1, 1)


@pytest.mark.parametrize("spoil", [
    "CREATE TRIGGER late BEFORE UPDATE ON job FOR EACH ROW SET NEW.state = 'pending'",
    "CREATE TRIGGER late BEFORE INSERT ON job FOR EACH ROW SET NEW.status = 'pending'",
    "CREATE TRIGGER late BEFORE UPDATE ON job FOR EACH ROW SET NEW.internalNote = UPPER(NEW.internalNote)",
    "CREATE TRIGGER late BEFORE INSERT ON job FOR EACH ROW SET NEW.finishedAt = NULL",
    "DROP TRIGGER rollout_small_bu",
    "DROP TRIGGER rollout_small_bi",
])
def test_triggers_that_do_something_else_fail_and_no_row_is_left(job: App, session: Session, plan: Plan, spoil: str) -> None:
    pairs = with_triggers(job, session, plan)
    job.run(spoil)

    with pytest.raises(CanaryFailed) as raised:
        sing(session, pairs)

    assert raised.value.exit_code == 4
    assert job.value("SELECT COUNT(*) FROM job") == 0
    assert settings(session) == (1, 1)


def test_the_table_lock_of_a_hold_survives_the_canary(empty: Target, job: App, session: Session, plan: Plan, clients: Clients) -> None:
    pairs = with_triggers(job, session, plan)
    with hold(empty, Watchdog(session), Limits(1000, 5), [(empty.schema, "job")], [], lambda _: None) as (holding, _):
        aside = Aside(clients(), "INSERT INTO job (id, state) VALUES ('a', 'running')")
        sing(holding, pairs)
        still = holding.value("SELECT COUNT(*) FROM performance_schema.metadata_locks WHERE OBJECT_NAME = 'job' AND OBJECT_SCHEMA = "
                              "DATABASE() AND LOCK_TYPE = 'SHARED_NO_READ_WRITE' AND LOCK_STATUS = 'GRANTED'")
        assert (still, aside.ended) == (1, False)

    assert aside.join().error is None
    assert job.rows("SELECT id, status, state FROM job") == [("a", "processing", "running")]


def test_columns_of_any_kind_that_an_insert_has_to_name_get_a_value(job: App, session: Session, plan: Plan) -> None:
    kinds = ("TINYINT", "INT UNSIGNED", "BIGINT", "DECIMAL(10,2)", "DOUBLE", "BIT(3)", "CHAR(3)", "VARCHAR(5)", "TEXT", "BINARY(16)",
             "VARBINARY(8)", "BLOB", "DATE", "DATETIME(6)", "TIMESTAMP", "TIME", "YEAR", "JSON", "ENUM('a','b')", "SET('a','b')",
             "VARCHAR(36) CHARACTER SET ascii")
    needed = ", ".join(f"ADD COLUMN needed{n} {kind} NOT NULL" for n, kind in enumerate(kinds))
    pairs = with_triggers(job, session, plan, f"{ADDED}, {needed}, ADD UNIQUE INDEX u (needed6, needed1)")

    assert sing(session, pairs)[0].startswith("canary wrote")


@pytest.mark.parametrize("key", [
    "INT AUTO_INCREMENT PRIMARY KEY", "BINARY(16) NOT NULL PRIMARY KEY", "BIGINT UNSIGNED NOT NULL PRIMARY KEY"])
def test_any_key_will_do(job: App, session: Session, plan: Plan, key: str) -> None:
    job.run("ALTER TABLE job DROP PRIMARY KEY, DROP COLUMN id")
    job.run(f"ALTER TABLE job ADD COLUMN no {key} FIRST")
    pairs = with_triggers(job, session, plan)

    assert sing(session, pairs)[0].startswith("canary wrote")


def test_renamed_columns_of_any_kind_pass(job: App, session: Session, tmp_path: Path) -> None:
    kinds = ("VARCHAR(1)", "VARCHAR(5)", "CHAR(7)", "VARCHAR(20) CHARACTER SET ascii", "VARCHAR(20) CHARACTER SET latin1", "DATETIME",
             "DATETIME(1)", "DATETIME(6)", "TIMESTAMP(3)", "DATE", "INT", "TINYINT", "BIGINT UNSIGNED", "DECIMAL(9,3)", "JSON", "BLOB")
    job.run("ALTER TABLE job " + ", ".join(f"ADD COLUMN a{n} {kind} NULL, ADD COLUMN b{n} {kind} NULL" for n, kind in enumerate(kinds)))
    plan = small(tmp_path, steps=[Renamed(f"a{n}", f"b{n}") for n in range(len(kinds))], tail="")
    pairs = sync.pairs(session, plan, str(session.schema))
    for trigger in sync.sync_triggers(plan.id, pairs):
        session.verbatim(trigger.create("job", "CURRENT_USER", None))

    assert sing(session, pairs)[0].startswith("canary wrote")


def test_a_table_that_refuses_its_row_could_not_be_looked_at(job: App, session: Session, plan: Plan) -> None:
    pairs = with_triggers(job, session, plan, ADDED + ", ADD COLUMN mail VARCHAR(50) NOT NULL, ADD CONSTRAINT c CHECK (mail LIKE '%%@%%')")

    with pytest.raises(Refused, match="could not look: MySQL error 3819") as raised:
        sing(session, pairs)

    assert "--accept canary" in raised.value.remedy
    assert job.value("SELECT COUNT(*) FROM job") == 0
    assert settings(session) == (1, 1)


@pytest.mark.parametrize("errno", [1213, 1205])
def test_one_deadlock_or_lock_wait_is_tried_again(job: App, session: Session, plan: Plan, errno: int) -> None:
    pairs = with_triggers(job, session, plan)
    locked(job, errno, 1)
    patience = session.value("SELECT @@session.innodb_lock_wait_timeout")

    assert sing(session, pairs)[0].startswith("canary wrote")
    assert session.value("SELECT @met") > 1
    assert session.value("SELECT @@session.innodb_lock_wait_timeout") == patience
    assert job.value("SELECT COUNT(*) FROM job") == 0


@pytest.mark.parametrize(("errno", "cause"), [(1213, "met a deadlock with"), (1205, "waited in vain for a lock of")])
def test_locks_in_every_try_are_named_as_the_cause(job: App, session: Session, plan: Plan, errno: int, cause: str) -> None:
    pairs = with_triggers(job, session, plan)
    locked(job, errno, 99)

    with pytest.raises(LockWaited, match=f"{cause} another transaction in each of 3 tries: MySQL error {errno}") as raised:
        sing(session, pairs)

    assert "run the same command again" in raised.value.remedy
    assert session.value("SELECT @met") == canary.TRIES
    assert job.value("SELECT COUNT(*) FROM job") == 0
    assert settings(session) == (1, 1)


def test_a_real_row_lock_is_waited_for_and_let_go(job: App, session: Session, plan: Plan, clients: Clients,
                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = with_triggers(job, session, plan)
    job.run("CREATE TABLE log (n INT PRIMARY KEY)")
    job.run("INSERT INTO log VALUES (1)")
    job.run("CREATE TRIGGER counts AFTER INSERT ON job FOR EACH ROW UPDATE log SET n = n + 1")
    holder = clients()
    holder.run("BEGIN")
    holder.run("UPDATE log SET n = n + 1")
    monkeypatch.setattr(waits, "sleep_s", lambda _: holder.run("COMMIT"))

    assert sing(session, pairs)[0].startswith("canary wrote")
    assert job.value("SELECT n FROM log") == 2


# Inside phase 1


def test_locks_in_every_try_take_our_triggers_off_again_and_the_same_command_goes_on(job: App, plan: Plan, opened_on: Opened) -> None:
    rollout = opened_on(plan)
    rollout.rehearsed()
    locked(job, 1213, 99)

    with pytest.raises(LockWaited, match="canary on job: met a deadlock") as raised:
        expand(rollout)

    assert raised.value.exit_code == 4
    assert job.triggers() == ["held"]
    job.run("DROP TRIGGER held")
    expand(opened_on(plan))
    assert sorted(job.triggers()) == ["rollout_small_bi", "rollout_small_bu"]


def test_a_foreign_trigger_that_interferes_takes_ours_off_again(job: App, plan: Plan, opened_on: Opened) -> None:
    job.run("INSERT INTO job (id, status) VALUES ('a', 'completed')")
    rollout = opened_on(plan)
    rollout.rehearsed()
    job.run("CREATE TRIGGER theirs BEFORE UPDATE ON job FOR EACH ROW SET NEW.status = IF(NEW.status = 'failed', 'failure', NEW.status)")

    with pytest.raises(CanaryFailed) as raised:
        expand(rollout)

    assert raised.value.exit_code == 4
    assert job.triggers() == ["theirs"]
    assert rollout.ledger.runs()[-1]["exit_code"] == 4
    assert [(e["step"], e["outcome"]) for e in rollout.ledger.events()][-3:] == [
        ("trigger rollout_small_bi", "done"), ("trigger rollout_small_bu", "done"), ("hold for 5 objects", "failed")]
    assert job.rows("SELECT status, state FROM job") == [("completed", "pending")]
    with pytest.raises(Refused, match="on the clone"):
        expand(opened_on(plan))  # by now the rehearsal knows of it

    job.run("DROP TRIGGER theirs")
    assert expand(opened_on(plan))[:3] == ["done", "done", "done"]
    assert job.rows("SELECT status, state FROM job") == [("completed", "succeeded")]


@pytest.mark.parametrize(("errno", "in_hold", "tries"), [(1205, True, 1), (1205, False, 3), (1213, True, 3), (1213, False, 3)])
def test_inside_a_hold_a_lock_wait_is_not_repeated_because_every_client_waits(
        session: Session, empty: Target, monkeypatch: pytest.MonkeyPatch, errno: int, in_hold: bool, tries: int) -> None:
    tried = list[int]()

    def held(*_: object) -> tuple[str, ...]:
        tried.append(1)
        raise LockTimeout("INSERT", f"MySQL error {errno}", "", errno)

    monkeypatch.setattr(canary, "_sung", held)
    with pytest.raises(LockWaited, match="run the same command again"):
        canary.sing(session, "job", empty.schema, (), in_hold=in_hold)

    assert len(tried) == tries


@pytest.mark.parametrize("accepted", [False, True])
def test_what_could_not_be_looked_at_stops_unless_it_is_accepted(job: App, plan: Plan, opened_on: Opened, accepted: bool) -> None:
    job.run("CREATE TRIGGER theirs BEFORE INSERT ON job FOR EACH ROW BEGIN IF NEW.id LIKE 'canary%%' THEN "
            "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'not you'; END IF; END")
    rollout = opened_on(plan, *(["canary"] if accepted else []))

    if accepted:
        expand(rollout)
        assert sorted(job.triggers()) == ["rollout_small_bi", "rollout_small_bu", "theirs"]
        return
    with pytest.raises(Stopped, match="could not look: MySQL error 1644"):
        expand(rollout)

    assert job.triggers() == ["theirs"]
    assert "`finishedAt`" in job.create_table("job")  # the stairs stand, the same command continues
