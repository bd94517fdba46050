"""What cannot be handed over is refused beforehand with its reason; a hand-over that ends early leaves one whole table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from flows import actions
from flows.conductor import PlainConductor
from flows.params import RunRequest
from flows.standing import standing as standing_of
from steps import ddl, handover_swap
from steps.errors import Busy, Stopped
from steps.handover import ON_SCHEMA, ON_SERVER
from steps.handover_names import KEY_PREFIX, Names, standing
from steps.mysql import Session
from steps.rollout import Person, opened
from steps.target import Target
from tests.conftest import App, statements
from tests.mysql.handover.stage import WIDEN, Make, climb, everything, handed
from tests.plans import ADD_STATE, Ddl

NEW_TABLE = f"""
CREATE TABLE _job_rollout_new LIKE job;
ALTER TABLE _job_rollout_new {WIDEN.up};
INSERT INTO _job_rollout_new SELECT * FROM job;
ALTER TABLE _job_rollout_new
  ADD CONSTRAINT {KEY_PREFIX}job_ownerId_fkey FOREIGN KEY (ownerId) REFERENCES owner (id) ON DELETE RESTRICT ON UPDATE CASCADE;
CREATE TRIGGER pt_osc_t_job_del AFTER DELETE ON job FOR EACH ROW DELETE IGNORE FROM _job_rollout_new WHERE id = OLD.id
"""


def version(folder: Path, says: str) -> str:
    script = folder / "pt"
    script.write_text(f"#!/bin/sh\necho '{says}'\n")
    script.chmod(0o755)
    return str(script)


@pytest.mark.parametrize(("says", "reason"), [
    (None, "no-such-tool was not found; install Percona Toolkit 3.7 or newer"),
    ("pt-online-schema-change 3.2.1", "is version 3.2.1, which does not work with MySQL 8.4 and 9; install Percona Toolkit 3.7 or newer"),
    ("Hello 3.7.1", "does not say which version of pt-online-schema-change it is"),
], ids=["absent", "too old", "another program"])
def test_without_a_fit_tool_the_copy_is_refused_with_how_to_get_one(tmp_path: Path, make: Make, says: str | None, reason: str) -> None:
    rollout = make(handed(tmp_path / "p", version(tmp_path, says) if says else "no-such-tool"))

    [finding] = ddl.blocking_copies(rollout, rollout.ladder(), 0, rollout.ladder().expanded)

    assert (finding.check, finding.severity, finding.subject) == ("copy-blocks", "refuse", "step 010_widen")
    assert reason in finding.what


@pytest.mark.parametrize(("sql", "reason"), [
    ("CREATE TRIGGER theirs BEFORE INSERT ON job FOR EACH ROW SET NEW.note = 'x'", "the table has triggers (theirs)"),
    ("ALTER TABLE job ADD parentId BIGINT, ADD CONSTRAINT self FOREIGN KEY (parentId) REFERENCES job (id)", "a foreign key on itself"),
    ("ALTER TABLE job ADD CONSTRAINT ck CHECK (status <> '')", "the table has CHECKs (ck)"),
    (f"ALTER TABLE result ADD CONSTRAINT {'x' * 60} FOREIGN KEY (jobId) REFERENCES job (id)", "name is longer than 55"),
], ids=["triggers", "self key", "check", "long name"])
def test_a_table_that_the_tool_cannot_copy_well_is_refused_with_the_reason(tmp_path: Path, tool: str, app: App, make: Make, sql: str,
                                                                          reason: str) -> None:
    app.run(sql)
    rollout = make(handed(tmp_path / "p", tool))

    [finding] = ddl.blocking_copies(rollout, rollout.ladder(), 0, rollout.ladder().expanded)

    assert reason in finding.what


def test_what_a_kill_left_is_told_and_stops_neither_the_rehearsal_nor_the_next_run(
        tmp_path: Path, tool: str, app: App, make: Make) -> None:
    writes = "AFTER UPDATE ON job FOR EACH ROW REPLACE INTO _job_rollout_new (id, status) VALUES (NEW.id, NEW.status)"
    for statement in statements(NEW_TABLE.partition("AFTER DELETE")[0] + writes):
        app.run(statement)
    drops = "cleanup.drop=['status']", "cleanup.drop_indexes=['job_kind']"  # the trigger names a column that cleanup removes
    plan = handed(tmp_path / "p", tool, *drops)
    rollout = make(plan)
    left = ["trigger pt_osc_t_job_del", "table _job_rollout_new"]

    assert standing_of(rollout)["handover_left"] == left
    [told] = [finding for finding in actions.look_first(rollout) if finding.check == "handover"]
    assert (told.severity, all(each in told.what for each in left)) == ("warn", True)

    actions.run(rollout, RunRequest(plan=str(tmp_path / "p"), by="t", reason="r", through="pre_deploy"), PlainConductor())
    assert app.triggers() == ["rollout_small_bi", "rollout_small_bu"]
    assert standing_of(make(plan))["handover_left"] == []
    assert "`kind` varchar(64)" in app.create_table("job")


@pytest.fixture
def limited(app: App, empty: Target) -> Iterator[tuple[App, Target]]:
    """An account without any right yet, and who may grant it some."""
    app.run("CREATE USER copier@'%' IDENTIFIED BY 'secret'")
    app.run("SET GLOBAL log_bin_trust_function_creators = 1")
    yield app, Target(empty.url.set(username="copier", password="secret"))
    app.run("SET GLOBAL log_bin_trust_function_creators = 0")
    app.run("DROP USER copier@'%'")


def test_exactly_the_asked_rights_carry_a_hand_over_and_each_one_missing_is_told_beforehand(
        tmp_path: Path, tool: str, limited: tuple[App, Target]) -> None:
    app, target = limited
    app.run(f"GRANT {', '.join(ON_SCHEMA)} ON `{target.schema}`.* TO copier@'%'")
    app.run(f"GRANT {', '.join(ON_SERVER)} ON *.* TO copier@'%'")
    app.run("GRANT CREATE, DROP, SELECT, INSERT, UPDATE, ALTER, INDEX, REFERENCES, TRIGGER ON `\\_rollout\\_rehearsal\\_%`.* TO copier@'%'")
    app.run("GRANT SELECT ON performance_schema.* TO copier@'%'")
    with opened(handed(tmp_path / "p", tool), target, Person("tester", "because")) as rollout:
        ladder = rollout.ladder()
        for right in ("DROP", "LOCK TABLES"):
            app.run(f"REVOKE {right} ON `{target.schema}`.* FROM copier@'%'")
            [finding] = ddl.blocking_copies(rollout, ladder, 0, ladder.expanded)
            pattern = target.schema.replace("_", "\\_")  # as GRANT takes it, for this schema alone
            assert f"the account lacks {right} on `{pattern}`.*" in finding.what
            app.run(f"GRANT {right} ON `{target.schema}`.* TO copier@'%'")
    with opened(handed(tmp_path / "p2", tool), target, Person("tester", "because")) as rollout:
        assert ddl.blocking_copies(rollout, rollout.ladder(), 0, rollout.ladder().expanded) == []
        climb(rollout, 1)
        assert rollout.position() == 1
    assert "`kind` varchar(64)" in app.create_table("job")


def test_a_copy_that_would_come_after_the_sync_triggers_is_refused(tmp_path: Path, tool: str, make: Make) -> None:
    late = Ddl("900_widen", WIDEN.up, WIDEN.down, late=True)
    rollout = make(handed(tmp_path / "p", tool, steps=(ADD_STATE, late)))

    [finding] = ddl.blocking_copies(rollout, rollout.ladder(), 0, rollout.ladder().expanded)

    assert "the sync triggers stand by then" in finding.what


def test_a_copy_of_an_earlier_run_that_still_works_is_left_alone(tmp_path: Path, tool: str, app: App, empty: Target, make: Make) -> None:
    rollout, other = make(handed(tmp_path / "p", tool)), App(empty)
    app.run("CREATE TABLE _job_rollout_new LIKE job")
    other.value("SELECT GET_LOCK(%s, 0)", Names(empty.schema, "job").lock)

    with pytest.raises(Busy, match=f"still copies it \\(connection {other.connection.thread_id()}\\)"):
        climb(rollout, 1)

    assert "_job_rollout_new" in everything(app)
    other.close()


def test_what_the_narrower_column_cannot_hold_is_never_cut_off(tmp_path: Path, tool: str, app: App, make: Make) -> None:
    climb(make(handed(tmp_path / "a", tool, blocked_s=3600)), 1)
    app.run("UPDATE job SET kind = REPEAT('k', 40) WHERE id = 1000")
    before = everything(app)

    with pytest.raises(Stopped, match="table itself is as it was"):
        climb(make(handed(tmp_path / "b", tool)), 0)

    assert everything(app) == before


def test_a_copy_with_other_rows_does_not_take_the_tables_place(tmp_path: Path, tool: str, app: App, make: Make,
                                                              monkeypatch: pytest.MonkeyPatch) -> None:
    rollout, before = make(handed(tmp_path / "p", tool)), everything(app)
    look = handover_swap.refuse_another_shape

    def spoilt(*given: Any) -> None:
        app.run("UPDATE _job_rollout_new SET note = CONCAT(note, 'x') WHERE id = 1501")
        look(*given)

    monkeypatch.setattr(handover_swap, "refuse_another_shape", spoilt)

    with pytest.raises(Stopped, match="differs from the table"):
        climb(rollout, 1)

    assert everything(app) == before


def test_ctrl_c_ends_the_tool_and_takes_its_triggers_and_copy_away(tmp_path: Path, tool: str, app: App, make: Make,
                                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    rollout, before = make(handed(tmp_path / "p", tool, "backfill.first_chunk_rows=50")), everything(app)
    say = rollout.say

    def interrupted(what: str, **fields: Any) -> None:
        say(what, **fields)
        if "Copying approximately" in fields.get("line", ""):
            raise KeyboardInterrupt

    monkeypatch.setattr(rollout, "say", interrupted)

    with pytest.raises(KeyboardInterrupt):
        climb(rollout, 1)

    assert everything(app) == before
    assert app.value("SELECT IS_USED_LOCK(%s)", Names(rollout.schema, rollout.table).lock) is None


def cut_short(monkeypatch: pytest.MonkeyPatch, at: int) -> Callable[[], None]:
    """From now on the *at*-th statement that a hold sends is never sent; returns what puts that right."""
    sent, real = [0], Session.verbatim

    def verbatim(session: Session, sql: str) -> int:
        if sql.startswith(("ALTER", "RENAME", "DROP")):
            sent[0] += 1
            if sent[0] == at:
                raise KeyboardInterrupt
        return real(session, sql)

    monkeypatch.setattr(Session, "verbatim", verbatim)
    return lambda: monkeypatch.setattr(Session, "verbatim", real)


def test_a_swap_cut_short_at_any_statement_is_ended_or_undone_and_no_key_ever_points_nowhere(tmp_path: Path, tool: str, app: App,
                                                                                            make: Make,
                                                                                            monkeypatch: pytest.MonkeyPatch) -> None:
    app.run("DELETE FROM job WHERE id > 50")
    rollout, before = make(handed(tmp_path / "p", tool, blocked_s=3600)), everything(app)
    climb(rollout, 1)
    wanted = everything(app)
    climb(rollout, 0)
    ended = []
    for at in range(1, 20):
        for statement in statements(NEW_TABLE):
            app.run(statement)
        put_right = cut_short(monkeypatch, at)
        try:
            handover_swap.swap(rollout)
            swapped = True
        except KeyboardInterrupt:
            swapped = False
        put_right()
        parents = app.rows("SELECT REFERENCED_TABLE_NAME FROM information_schema.KEY_COLUMN_USAGE WHERE TABLE_SCHEMA = DATABASE() AND "
                           "TABLE_NAME = 'result' AND REFERENCED_TABLE_NAME IS NOT NULL")
        assert parents in ([("job",)], [("_job_rollout_new",)])  # never the replaced original

        handover_swap.finish(rollout)

        assert standing(rollout.session, Names(rollout.schema, "job")) == set()
        ended.append(everything(app) == wanted)
        assert everything(app) in (before, wanted), at
        if swapped:
            break
        if ended[-1]:
            climb(rollout, 0)
    assert ended == [False, False, *[True] * (len(ended) - 2)]
    assert len(ended) > 6
