"""Climbing and descending on the live table: few locks, and no kill that a rerun does not mend (cases C28, C84, C94, C96)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steps import ddl
from steps.errors import Drifted, NoGap, Stopped
from steps.hold_clock import HoldClock
from steps.mysql import Session
from steps.phase import Phase
from steps.plan import Plan
from steps.rollout import Rollout
from steps.target import Target
from tests.conftest import App
from tests.mysql.conftest import Bystander, Clients, Opened, expand, go_back
from tests.plans import ADD_STATE, Ddl, Renamed, small

INDEX = Ddl("090_index", "ADD INDEX `by_state` (`state`)", "DROP INDEX `by_state`", late=True)
SEVERAL = [ADD_STATE, Renamed("note", "internalNote"), Ddl("030_a", "ADD COLUMN `a` INT NULL", "DROP COLUMN `a`"), INDEX]
CHANGES = ("ALTER", "CREATE DEFINER", "CREATE TRIGGER", "DROP TRIGGER")


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return small(tmp_path, steps=SEVERAL)


@pytest.fixture
def filled(job: App) -> App:
    job.run("INSERT INTO job (id, status, note) VALUES ('a', 'completed', 'x'), ('b', 'failed', 'boom é'), ('c', 'pending', NULL)")
    return job


def state(client: App) -> tuple[Any, ...]:
    """Everything that must be the same however the run was interrupted."""
    return client.create_table("job"), client.rows("SHOW TRIGGERS"), client.rows("SELECT * FROM job ORDER BY id")


def without_times(found: tuple[Any, ...]) -> tuple[Any, ...]:
    return found[0], [(row[0], row[1], row[3]) for row in found[1]], found[2]


class Interrupter:
    """Breaks every statement that changes the live table once: before it is sent, or just after it was."""

    def __init__(self, schema: str, breaking: Callable[[Session], object], *, after: bool, most: int = 100) -> None:
        self.schema, self.breaking, self.after, self.most = schema, breaking, after, most
        self.broken: list[str] = []
        self._real = Session.verbatim

    def verbatim(self, session: Session, sql: str) -> int:
        breaks = (session.schema == self.schema and sql.startswith(CHANGES) and sql not in self.broken and len(self.broken) < self.most)
        if breaks and not self.after:
            self.broken.append(sql)
            self.breaking(session)
        count = self._real(session, sql)
        if breaks and self.after:
            self.broken.append(sql)
            self.breaking(session)
        return count

    def installed(self) -> Callable[[Session, str], int]:
        return lambda session, sql: self.verbatim(session, sql)  # noqa: PLW0108  # a bound method would not get the session


def killed(_: Session) -> None:
    raise KeyboardInterrupt


def again_and_again(run: Callable[[], object]) -> int:
    """Run until it comes through; how often it was broken."""
    for number in range(20):
        try:
            run()
        except KeyboardInterrupt:
            continue
        return number
    raise AssertionError("never came through")


@pytest.mark.parametrize("after", [False, True], ids=["before it is sent", "after it was sent"])
def test_killed_at_any_change_a_rerun_ends_as_if_nothing_had_been(filled: App, plan: Plan, opened_on: Opened, empty: Target,
                                                                  monkeypatch: pytest.MonkeyPatch, after: bool) -> None:
    def rollout() -> Rollout:
        made = opened_on(plan)
        made._rehearsed = first._rehearsed  # proven once is enough here
        return made

    base = without_times(state(filled))
    first = opened_on(plan)
    expand(first)
    wanted = without_times(state(filled))
    go_back(rollout())
    assert without_times(state(filled)) == base

    interrupter = Interrupter(empty.schema, killed, after=after)
    monkeypatch.setattr(Session, "verbatim", interrupter.installed())
    assert again_and_again(lambda: expand(rollout())) >= 6
    assert without_times(state(filled)) == wanted

    assert again_and_again(lambda: go_back(rollout())) >= 4
    assert without_times(state(filled)) == base
    assert filled.value("SELECT COUNT(*) FROM _rollout_plan") == 0


def test_a_killed_hold_stops_and_a_rerun_ends_equal(filled: App, plan: Plan, opened_on: Opened, empty: Target, clients: Clients,
                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    killer = clients()
    interrupter = Interrupter(empty.schema, lambda session: killer.run(f"KILL {session.connection_id}"), after=True, most=1)
    with monkeypatch.context() as patched:
        patched.setattr(Session, "verbatim", interrupter.installed())
        rollout = opened_on(plan)
        with pytest.raises(Stopped) as raised:
            expand(rollout)

    assert (raised.value.exit_code, raised.value.subject) == (4, "step rename_note_to_internalNote")
    assert interrupter.broken[0].startswith("ALTER TABLE `job` ADD COLUMN `state`")
    assert "`state`" in filled.create_table("job")
    assert filled.run("UPDATE job SET note = 'y' WHERE id = 'a'") == 1  # nobody waits any more
    assert rollout.ledger.runs()[-1]["exit_code"] == 4

    expand(opened_on(plan))
    assert filled.rows("SELECT status, state, note, internalNote FROM job WHERE id = 'a'") == [("completed", "succeeded", "y", "y")]
    assert filled.triggers() == ["rollout_small_bi", "rollout_small_bu"]


def test_an_answer_that_got_lost_is_looked_up_not_guessed(filled: App, plan: Plan, opened_on: Opened, empty: Target, clients: Clients,
                                                          monkeypatch: pytest.MonkeyPatch) -> None:
    killer = clients()
    real = ddl._send

    def lost(session: Session, *rest: Any) -> None:
        real(session, *rest)
        if "by_state" in rest[0].statement:
            killer.run(f"KILL {session.connection_id}")
            session.query("SELECT 1")  # the driver now meets the dead connection as if the ALTER's own answer had been cut

    monkeypatch.setattr(ddl, "_send", lost)
    monkeypatch.setattr(ddl, "_landed_as_rehearsed", lambda *_: None)
    rollout = opened_on(plan)
    expand(rollout)

    assert "KEY `by_state`" in filled.create_table("job")
    assert [e["outcome"] for e in rollout.ledger.events() if e["step"] == "090_index"] == ["done, seen after a lost connection"]


def test_what_was_done_between_the_look_and_the_hold_is_left_out(filled: App, plan: Plan, opened_on: Opened, session: Session) -> None:
    rollout = opened_on(plan)
    rollout.ledger.create()
    ladder = rollout.ladder()
    [group, *_] = ddl.grouped(ddl.moves(ladder, 0, ladder.before_first_pass, 3), rollout, 3, with_sync=False)
    for stair in ladder.stairs[:2]:
        session.verbatim(stair.up.statement)

    ddl.carry_out(rollout, group, ladder, "forward")
    ddl.carry_out(rollout, group, ladder, "forward")

    assert rollout.position() == 3
    assert [e["step"] for e in rollout.ledger.events() if not e["step"].startswith("hold")] == ["030_a"]


def test_clients_never_wait_longer_than_allowed_while_everything_is_put_on(filled: App, plan: Plan, opened_on: Opened,
                                                                          clients: Clients) -> None:
    rollout = opened_on(plan)
    with Bystander(clients()) as bystander:
        expand(rollout)
        go_back(opened_on(plan))

    assert bystander.longest_s < 10  # the machine may be busy; waiting for good would be a minute and more
    assert bystander.done > 2


def test_a_held_table_stops_with_its_holder_and_the_same_command_goes_on(filled: App, plan: Plan, opened_on: Opened,
                                                                         clients: Clients) -> None:
    holder = clients()
    holder.run("START TRANSACTION")
    holder.rows("SELECT * FROM job")
    before = state(filled)
    quick = plan.model_copy(update={"plan": plan.plan.model_copy(update={"gap_wait_s": 0})})
    rollout = opened_on(quick)

    with pytest.raises(NoGap, match="job is held by connection"):
        expand(rollout)
    assert state(filled) == before
    assert [(e["step"], e["outcome"]) for e in rollout.ledger.events()] == [
        ("hold begins: 5 objects", "begins"), ("hold for 5 objects", "failed")]
    assert rollout.ledger.runs()[-1]["exit_code"] == 4

    holder.run("COMMIT")
    expand(opened_on(plan))
    assert rollout.ledger.phase_state(Phase.PRE_DEPLOY) == "done"


def test_a_foreign_change_is_refused_with_the_nearest_stair_and_nothing_is_touched(filled: App, plan: Plan, opened_on: Opened) -> None:
    expand(opened_on(plan))
    filled.run("ALTER TABLE job MODIFY COLUMN a BIGINT NULL")
    before = state(filled)

    with pytest.raises(Drifted, match="nearest is 090_index, but column a: has bigint NULL, expected int NULL") as raised:
        expand(opened_on(plan))

    assert raised.value.exit_code == 3
    assert state(filled) == before


def test_strangers_are_reported_and_left_alone(filled: App, plan: Plan, opened_on: Opened) -> None:
    filled.run("ALTER TABLE job ADD COLUMN theirs INT NULL AFTER id, ADD INDEX theirs (theirs)")
    before = filled.create_table("job")
    expand(opened_on(plan))
    filled.run("ALTER TABLE job ADD COLUMN later INT NULL")

    rollout = opened_on(plan)
    assert rollout.ladder().strangers(rollout.live(), rollout.position()) == ["columns: later"]
    go_back(rollout)
    filled.run("ALTER TABLE job DROP COLUMN later")
    assert filled.create_table("job") == before


@pytest.mark.parametrize(("head", "holds", "alone"), [
    ("", 2, []), ("large_rows = 1", 1, ["090_index"]), ("max_stall_ms = 100", 3, [])])
def test_the_budget_decides_how_many_holds_there_are_and_the_end_is_the_same(
        filled: App, tmp_path: Path, opened_on: Opened, monkeypatch: pytest.MonkeyPatch, head: str, holds: int, alone: list[str]) -> None:
    monkeypatch.setattr(Rollout, "slowness", 1.0)  # on a busy machine estimates grow and holds are given back early
    monkeypatch.setattr(HoldClock, "elapsed_ms", 0.0)
    filled.run("ANALYZE TABLE job")
    rollout = opened_on(small(tmp_path, steps=SEVERAL, head=head))
    expand(rollout)

    steps = [e["step"] for e in rollout.ledger.events() if not e["step"].startswith("pace of")]
    assert sum(step.startswith("hold for") for step in steps) == holds
    inside = [s for s in steps if not s.startswith(("hold", "first pass"))]
    assert inside == ["010_add_state", "rename_note_to_internalNote", "030_a", "trigger rollout_small_bu", "trigger rollout_small_bi",
                      "canary", "090_index"]
    assert [s for s, before in zip(steps[1:], steps, strict=False) if s in alone and before == "first pass"] == alone
    assert filled.rows("SELECT state, internalNote FROM job ORDER BY id") == [("succeeded", "x"), ("failed", "boom é"), ("pending", None)]
    assert "KEY `by_state`" in filled.create_table("job")


def test_a_copy_that_would_block_for_too_long_is_found_beforehand(filled: App, tmp_path: Path, opened_on: Opened) -> None:
    widen = Ddl("005_widen", "MODIFY COLUMN `status` VARCHAR(64) NOT NULL DEFAULT 'pending'",
                "MODIFY COLUMN `status` VARCHAR(32) NOT NULL DEFAULT 'pending'")
    strict = opened_on(small(tmp_path, steps=[widen, ADD_STATE], head="max_blocked_s = 0"))

    [finding] = ddl.blocking_copies(strict, strict.ladder(), 0, strict.ladder().expanded)
    assert (finding.check, finding.severity, finding.subject) == ("copy-blocks", "refuse", "step 005_widen")
    assert "max_blocked_s" in finding.remedy
    assert ddl.blocking_copies(strict, strict.ladder(), 1, strict.ladder().expanded) == []
    assert [found.subject for found in ddl.blocking_copies(strict, strict.ladder(), 1, 0)] == ["step 005_widen (way back)"]
    calm = opened_on(small(tmp_path, steps=[widen, ADD_STATE]))
    assert ddl.blocking_copies(calm, calm.ladder(), 0, calm.ladder().expanded) == []


def test_a_second_time_nothing_is_sent(filled: App, plan: Plan, opened_on: Opened) -> None:
    first = opened_on(plan)
    expand(first)
    before, sent = state(filled), [event for event in first.ledger.events() if event["statement"]]

    expand(opened_on(plan))

    assert state(filled) == before
    assert [event for event in first.ledger.events() if event["statement"]] == sent
