"""The table's own triggers stand on the clone in their order; a body that could reach anything outside is never made there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from steps import catalogue
from steps.errors import Refused
from steps.mysql import Session, quote
from steps.rehearsal import rehearse
from steps.scratch import scratch_name
from steps.target import Target
from tests.conftest import App
from tests.plans import ADD_STATE, SYNC, Ddl, small

LOG = "CREATE TABLE log (n INT AUTO_INCREMENT PRIMARY KEY, what VARCHAR(99) NOT NULL)"
NOTED = "FOR EACH ROW BEGIN INSERT INTO log (what) VALUES (CONCAT('seen ', NEW.status)); SET NEW.note = UPPER(NEW.note); END"


@pytest.fixture
def logged(job: App) -> App:
    """The table with one row and a trigger on each event that writes elsewhere."""
    job.run("INSERT INTO job (id, status, note) VALUES ('a', 'failed', 'quiet')")
    job.run(LOG)
    job.run(f"CREATE TRIGGER first_bu BEFORE UPDATE ON job {NOTED}")
    job.run(f"CREATE TRIGGER first_bi BEFORE INSERT ON job {NOTED}")
    job.run("CREATE TRIGGER last_ad AFTER DELETE ON job FOR EACH ROW INSERT INTO log (what) VALUES (OLD.note)")
    return job


def end_state(app: App, session: Session, target: Target) -> tuple[object, ...]:
    return (app.create_table("job"), app.create_table("log"), sorted(app.triggers()), app.rows("SELECT * FROM job"),
            app.rows("SELECT * FROM log"), [name for (name,) in session.query("SHOW DATABASES") if name == scratch_name(target, "job")])


def test_steps_and_sync_are_rehearsed_beside_the_tables_own_triggers_and_nothing_live_is_written(
        session: Session, empty: Target, logged: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, seen = end_state(logged, session, empty), list[list[str]]()
    real = catalogue.triggers

    def watched(on: Session, schema: str, table: str) -> list[catalogue.Trigger]:
        found = real(on, schema, table)
        seen.extend([[t.name for t in found if (t.timing, t.event) == ("BEFORE", "UPDATE")]] if schema == on.schema != empty.schema else [])
        return found

    monkeypatch.setattr(catalogue, "triggers", watched)

    found = rehearse(session, empty, small(tmp_path))

    assert found.sample is not None
    assert found.sample.changed == 1
    assert ["first_bu", "rollout_small_bu"] in seen
    assert [note for note in found.notes if "could not look" in note] == []
    assert end_state(logged, session, empty) == before


def test_a_trigger_that_a_step_breaks_is_told_with_the_step(session: Session, empty: Target, logged: App, tmp_path: Path) -> None:
    before = end_state(logged, session, empty)
    step = Ddl("020_note", "DROP COLUMN `note`", "ADD COLUMN `note` TEXT NULL AFTER `status`")

    with pytest.raises(Refused, match=r"step 020_note: afterwards the table's own triggers \(.*first_bi.*\) fail on every write: .*1054"):
        rehearse(session, empty, small(tmp_path, steps=[ADD_STATE, step]))

    assert end_state(logged, session, empty) == before


def test_a_trigger_that_only_cleanup_breaks_is_told_and_does_not_stop_the_phases_before(
        session: Session, empty: Target, logged: App, tmp_path: Path) -> None:
    logged.run("CREATE TRIGGER untouched BEFORE UPDATE ON job FOR EACH ROW SET NEW.doneAt = NEW.doneAt")
    before = end_state(logged, session, empty)

    found = rehearse(session, empty, small(tmp_path, tail=SYNC + '\n[cleanup]\ndrop = ["status"]\n'))

    [note] = [note for note in found.notes if "cleanup" in note and "fail on every write" in note]
    assert "(first_bi, first_bu)" in note
    assert "untouched" not in note
    assert [stair.phase for stair in found.ladder.stairs] == ["pre_deploy", "cleanup", "cleanup"]
    assert end_state(logged, session, empty) == before


def test_a_trigger_that_fights_the_sync_is_found_before_anything_is_touched(session: Session, empty: Target, logged: App,
                                                                            tmp_path: Path) -> None:
    logged.run("CREATE TRIGGER fights BEFORE UPDATE ON job FOR EACH ROW SET NEW.status = 'failed'")
    before = end_state(logged, session, empty)

    with pytest.raises(Refused, match="as the old generation set status to") as raised:
        rehearse(session, empty, small(tmp_path))

    assert raised.value.exit_code == 3
    assert end_state(logged, session, empty) == before


@pytest.fixture
def names(session: Session, empty: Target) -> Iterator[dict[str, str]]:
    """The test's schema and another one with a table that must stay empty."""
    other = f"{empty.schema}_away"
    session.run(f"CREATE DATABASE {quote(other)}")
    session.run(f"CREATE TABLE {quote(other)}.seen (what VARCHAR(99))")
    yield {"own": empty.schema, "other": other}
    session.run(f"DROP DATABASE {quote(other)}")


@pytest.mark.parametrize(("body", "reason"), [
    ("INSERT INTO {own}.log (what) VALUES ('x')", "names a table with its schema"),
    ("INSERT INTO `{own}` . `log` (what) VALUES ('x')", "names a table with its schema"),
    ("INSERT INTO {other}.seen VALUES ('x')", "names a table with its schema"),
    ("BEGIN DECLARE x INT; SELECT COUNT(*) INTO x FROM {other}.seen; END", "names a table with its schema"),
    ("REPLACE INTO {other}.seen VALUES ('x')", "names a table with its schema"),
    ("BEGIN REPLACE INTO {other}.seen VALUES ('x'); END", "names a table with its schema"),
    ("CALL tell('x')", "uses CALL"),
    ("SET NEW.note = told('x')", "uses told"),
    ("SET GLOBAL max_connections = 151", "uses GLOBAL"),
    ("SET NEW.note = RELEASE_ALL_LOCKS()", "uses RELEASE_ALL_LOCKS"),
    ("INSERT INTO seen_view VALUES ('x')", "names the view seen_view"),
    ("SET NEW.note = @@hostname", "server variables"),
])
def test_a_body_that_reaches_outside_is_not_made_and_told(session: Session, empty: Target, logged: App, names: dict[str, str],
                                                          tmp_path: Path, body: str, reason: str) -> None:
    logged.run(f"CREATE PROCEDURE tell (IN what VARCHAR(9)) INSERT INTO {names['other']}.seen VALUES (what)")
    logged.run("CREATE FUNCTION told (what VARCHAR(9)) RETURNS VARCHAR(9) DETERMINISTIC RETURN what")
    logged.run(f"CREATE VIEW seen_view AS SELECT * FROM {names['other']}.seen")
    logged.run(f"CREATE TRIGGER outside BEFORE UPDATE ON job FOR EACH ROW {body.format(**names)}")
    before = end_state(logged, session, empty)

    found = rehearse(session, empty, small(tmp_path))

    (note,) = [note for note in found.notes if "outside" in note]
    assert note.startswith("could not look: trigger outside of the table was not rehearsed")
    assert reason in note
    assert end_state(logged, session, empty) == before
    assert session.query(f"SELECT * FROM {quote(names['other'])}.seen") == []


def test_a_trigger_that_replaces_rows_of_another_table_writes_to_its_stand_in(session: Session, empty: Target, logged: App,
                                                                             tmp_path: Path) -> None:
    logged.run("CREATE TABLE latest (id VARCHAR(191) PRIMARY KEY, what VARCHAR(99))")
    logged.run("CREATE TRIGGER replacing AFTER UPDATE ON job FOR EACH ROW BEGIN REPLACE INTO latest VALUES (NEW.id, NEW.status); END")
    before = end_state(logged, session, empty)

    found = rehearse(session, empty, small(tmp_path))

    assert [note for note in found.notes if "could not look" in note] == []
    assert logged.rows("SELECT * FROM latest") == []
    assert end_state(logged, session, empty) == before


@pytest.mark.parametrize("body", ["BEGIN IF NEW.note IS NULL THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'note it'; END IF; END",
                                  "BEGIN IF NEW.status = 'failed' THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'never'; END IF; END"])
def test_a_trigger_that_takes_no_plain_row_blames_no_step_and_is_told(session: Session, empty: Target, logged: App, tmp_path: Path,
                                                                     body: str) -> None:
    logged.run(f"CREATE TRIGGER strict BEFORE INSERT ON job FOR EACH ROW {body}")
    before = end_state(logged, session, empty)

    found = rehearse(session, empty, small(tmp_path))

    assert [note[:33] for note in found.notes if "could not look" in note] == ["could not look: the table's own t"]
    assert found.ladder.top == 1
    assert end_state(logged, session, empty) == before
