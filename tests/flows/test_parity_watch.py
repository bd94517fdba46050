"""Looks over the weeks of shadow write: what they find, where they go on, for whom they step aside, and what they leave on record."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pymysql
import pytest

from flows.conductor import PlainConductor
from flows.params import Through
from flows.watching import WatchRequest, WatchResult, watch
from steps import control, parity_round, parity_watch, throttle
from steps.errors import Busy, ParityLost, ParityUnseen
from steps.exact_look import WATCH
from steps.ownership import Ownership
from steps.pace import Progress
from steps.parity_looks import Look
from steps.rollout import Rollout
from tests.flows.deploy_stage import Stage

SOAKED = Through.SHADOW_WRITE
FAULT = "UPDATE job SET status = 'completed', state = 'locked' WHERE id = %s"  # what the triggers leave alone and no map knows
MENDED = "UPDATE job SET state = 'succeeded' WHERE id = %s"
FLEET = {"v0": {"attribute": "program_name", "value": "app-v0"}, "others": [{"attribute": "program_name", "value": "test"}], "wait_s": 0}
CHUNK = 5


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks at wishes and health before each chunk."""
    for every in ("LOOK_EVERY_S", "HEALTH_EVERY_S"):
        monkeypatch.setattr(throttle, every, 0)


def planned(stage: Stage, **more: Any) -> None:
    stage.plan(command="true", rollback_command="true", **more)
    text = (stage.folder / "plan.toml").read_text()
    (stage.folder / "plan.toml").write_text(f"{text}\n[backfill]\nfirst_chunk_rows = {CHUNK}\nlargest_chunk_rows = {CHUNK}\n")


@pytest.fixture
def soaking(stage: Stage) -> Stage:
    """Forty rows in step, all five phases done."""
    with stage.app.connection.cursor() as cursor:
        cursor.executemany("INSERT INTO job (id, status) VALUES (%s, %s)",
                           [(f"k{n:02}", ("pending", "processing", "completed", "failed")[n % 4]) for n in range(38)])
    stage.app.run("TRUNCATE performance_schema.events_statements_summary_by_digest")  # full, it takes no new ones
    planned(stage)
    stage.run(SOAKED)
    return stage


def request(stage: Stage, budget_s: int = 60) -> WatchRequest:
    return WatchRequest(plan=str(stage.folder), by="ann", reason="the soak", budget_s=budget_s)


def looked(stage: Stage, told: Callable[[Rollout, Progress], object] | None = None) -> WatchResult:
    """One look, on sessions of its own that end with it; *told* hears of each chunk."""
    with ExitStack() as stack:
        mine, stage.stack = stage.stack, stack
        rollout = stage.rollout()
        stage.stack = mine
        if told:
            rollout.told = lambda progress: told(rollout, progress)
        return watch(rollout, request(stage), PlainConductor())


def events(stage: Stage) -> list[tuple[str, dict[str, Any]]]:
    return [(str(outcome), json.loads(detail)) for outcome, detail in stage.app.rows(
        "SELECT outcome, detail FROM _rollout_event WHERE step = %s ORDER BY id", WATCH)]


def conditions(stage: Stage) -> list[str]:
    return [str(row[0]) for row in stage.app.rows("SELECT outcome FROM _rollout_event WHERE step = 'conditions' ORDER BY id")]


def unmet(stage: Stage) -> list[str]:
    return parity_watch.unmet(stage.rollout())


def ends_after(chunks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The budget of the next look lasts for so many chunks, whatever the clock says."""
    real, seen = parity_round.go_on, [0]

    def go_on(rollout: Rollout, _over: Callable[[], str]) -> parity_round.Rows:
        def over() -> str:
            seen[0] += 1
            return "its 60 s have ended" if seen[0] > chunks else ""

        return real(rollout, over)

    monkeypatch.setattr(parity_round, "go_on", go_on)


def test_a_clean_look_is_on_record_and_opens_the_gate_once(soaking: Stage) -> None:
    before = (soaking.app.create_table("job"), soaking.app.rows("SELECT * FROM job ORDER BY id"))

    found = looked(soaking)
    again = looked(soaking)

    assert (found.outcome, again.outcome) == ("clean", "clean")
    assert (found.look["rows_examined"], found.look["complete"], found.look["differing"], found.look["triggers"]) == (40, True, 0, "on")
    assert found.look["conditions_unmet"] == []
    (outcome, detail), _second = events(soaking)
    assert (outcome, detail["rows_examined"], detail["by"], detail["why"], detail["complete"]) == ("clean", 40, "tester", "because", True)
    assert set(detail["days_since"]) == {"verify", "shadow_write"}
    assert conditions(soaking) == ["met"]
    assert unmet(soaking) == []
    assert (soaking.app.create_table("job"), soaking.app.rows("SELECT * FROM job ORDER BY id")) == before
    assert soaking.app.rows("SELECT * FROM _rollout_owner") == []
    assert soaking.app.value("SELECT COUNT(*) FROM _rollout_run") == 1


def test_rows_that_differ_are_told_by_key_and_never_by_content_until_somebody_mends_them(soaking: Stage) -> None:
    soaking.app.run(FAULT, "k07")

    with pytest.raises(ParityLost, match=r"1 rows disagree \(status and state: 1; keys: k07\)") as lost:
        looked(soaking)

    assert (lost.value.exit_code, lost.value.look["complete"], lost.value.look["rows_examined"]) == (4, True, 40)
    outcome, detail = events(soaking)[-1]
    assert (outcome, detail["differing"], detail["keys"]) == ("found", 1, ["k07"])
    assert "locked" not in json.dumps(detail)
    assert "locked" not in str(lost.value)
    assert unmet(soaking) == ["parity is lost: 1 rows disagree (keys: k07)"]
    assert soaking.app.rows("SELECT status, state FROM job WHERE id = 'k07'") == [("completed", "locked")]

    soaking.app.run(MENDED, "k07")
    assert looked(soaking).outcome == "clean"
    assert unmet(soaking) == []


def test_conditions_that_cease_and_begin_to_hold_are_told_each_time(soaking: Stage) -> None:
    looked(soaking)
    soaking.app.run(FAULT, "a")
    with pytest.raises(ParityLost):
        looked(soaking)
    soaking.app.run(MENDED, "a")
    looked(soaking)

    assert conditions(soaking) == ["met", "not met", "met"]


def test_a_trigger_that_is_gone_is_an_alarm_and_shuts_cleanup(soaking: Stage) -> None:
    soaking.app.run("DROP TRIGGER rollout_small_bi")

    with pytest.raises(ParityLost, match="sync triggers: only one of the two triggers is there"):
        looked(soaking)

    assert events(soaking)[-1][1]["triggers"] == "only one of the two triggers is there"
    assert unmet(soaking) == ["sync triggers: only one of the two triggers is there"]
    assert soaking.app.triggers() == ["rollout_small_bu"]


def test_a_trigger_with_another_body_is_an_alarm(soaking: Stage) -> None:
    soaking.app.run("DROP TRIGGER rollout_small_bi")
    soaking.app.run("CREATE TRIGGER rollout_small_bi BEFORE INSERT ON job FOR EACH ROW SET NEW.note = 'mine'")

    with pytest.raises(ParityLost, match="sync triggers: a trigger of our name has another body"):
        looked(soaking)

    assert events(soaking)[-1][0] == "found"


def test_a_foreign_column_is_told_and_is_no_alarm(soaking: Stage) -> None:
    soaking.app.run("ALTER TABLE job ADD COLUMN theirs INT NULL")

    found = looked(soaking)

    assert (found.outcome, found.look["drift"]) == ("clean", [])
    assert any("theirs" in one for one in found.look["strangers"])
    assert "`theirs`" in soaking.app.create_table("job")


def test_a_column_of_ours_that_somebody_changed_is_drift_and_an_alarm(soaking: Stage) -> None:
    soaking.app.run("ALTER TABLE job MODIFY COLUMN state VARCHAR(40) NOT NULL DEFAULT 'pending'")

    with pytest.raises(ParityLost, match="stands on no stair of the plan"):
        looked(soaking)

    assert any("stands on no stair" in one for one in unmet(soaking))


def test_what_cannot_be_looked_at_is_never_clean(soaking: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parity_round.exact_look, "still_wrong", lambda *_: iter(()))
    monkeypatch.setattr(parity_round.Walk, "disagree", lambda _self: "no_such_function()")

    with pytest.raises(ParityUnseen, match=r"could not look: rows: MySQL error 1\d\d\d") as unseen:
        looked(soaking)

    assert unseen.value.exit_code == 4
    assert events(soaking)[-1][0] == "could not look"
    assert any(one.startswith("the last look could not look") for one in unmet(soaking))


def test_a_session_of_v0_is_told_and_keeps_cleanup_shut(stage: Stage) -> None:
    url = stage.target.url

    def connect(program: str) -> pymysql.connections.Connection:
        return pymysql.connect(host=url.host, port=url.port or 3306, user=url.username, password=str(url.password or ""),
                               database=url.database, program_name=program)

    stage.app.close()
    stage.app.connection = connect("test")
    stage.app.connection.autocommit(True)
    planned(stage, fleet=FLEET)
    stage.run(SOAKED)
    old = connect("app-v0")

    found = looked(stage)

    assert found.outcome == "clean"
    assert found.look["old_writers"][0].startswith("v0 is connected: 1 of ")
    assert any("the old side is still written: v0 is connected" in one for one in unmet(stage))
    assert conditions(stage) == []
    old.close()
    while stage.app.value("SELECT COUNT(*) FROM performance_schema.session_connect_attrs WHERE ATTR_VALUE = 'app-v0'"):
        pass  # the server takes a moment; the test's own limit is the bound
    assert looked(stage).look["old_writers"] == []
    assert conditions(stage) == ["met"]


def test_statements_that_write_the_old_side_between_two_looks_are_told_and_ours_are_not(soaking: Stage) -> None:
    first = looked(soaking)
    assert first.look["old_writers"] == []
    assert first.look["writers_unseen"] == ["statements are counted from this look on"]
    soaking.app.rows("SELECT status FROM job")  # reads are not writes
    assert looked(soaking).look["old_writers"] == []

    soaking.app.run("UPDATE job SET status = 'failed' WHERE id = 'k01'")
    found = looked(soaking)

    assert [one.endswith("names status") for one in found.look["old_writers"]] == [True]
    assert any("the old side is still written: digest" in one for one in unmet(soaking))
    soaking.app.run("UPDATE job SET state = 'running' WHERE id = 'k01'")
    assert looked(soaking).look["old_writers"] == []


def test_the_canary_of_a_rollout_between_two_looks_is_no_writer(soaking: Stage) -> None:
    looked(soaking)
    soaking.back(SOAKED)
    soaking.run(SOAKED)  # the canary writes as V0 does

    found = looked(soaking)

    assert found.look["old_writers"] == []
    assert found.look["writers_unseen"] == ["statements are counted from this look on"]


def test_the_rehearsal_of_a_check_between_two_looks_is_no_writer(soaking: Stage) -> None:
    from flows import actions

    looked(soaking)
    rollout = soaking.rollout()
    actions.look_first(rollout)
    rollout.rehearsed()

    assert looked(soaking).look["old_writers"] == []


def test_a_budget_that_ends_leaves_its_place_and_the_next_look_goes_on_while_rows_change(
        soaking: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as short:
        ends_after(3, short)
        found = looked(soaking)
    assert (found.outcome, found.look["rows_examined"], found.look["complete"]) == ("unfinished", 3 * CHUNK, False)
    assert found.look["held_up"] == "its 60 s have ended"
    soaking.app.run("DELETE FROM job WHERE id IN ('a', 'k30')")
    soaking.app.run("INSERT INTO job (id, status) VALUES ('k01a', 'failed'), ('k99', 'completed')")
    soaking.app.run(FAULT, "k25")

    with pytest.raises(ParityLost, match="keys: k25"):
        looked(soaking)

    assert [(outcome, detail["rows_examined"]) for outcome, detail in events(soaking)] == [("unfinished", 15), ("found", 25)]
    assert soaking.app.value("SELECT finished_at IS NOT NULL FROM _rollout_pass WHERE `pass` = %s", WATCH) == 1


def test_a_row_that_an_earlier_look_of_the_round_found_is_not_forgotten(soaking: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    soaking.app.run(FAULT, "a")
    with monkeypatch.context() as short:
        ends_after(2, short)
        with pytest.raises(ParityLost, match="keys: a"):
            looked(soaking)
    with pytest.raises(ParityLost, match="keys: a") as rest:
        looked(soaking)
    assert (rest.value.look["complete"], rest.value.look["rows_examined"]) == (True, 30)

    with monkeypatch.context() as short:
        ends_after(1, short)
        with pytest.raises(ParityLost, match="1 rows disagree"):  # a new round has not come to it, and knows it all the same
            looked(soaking)


def test_so_many_rows_differ_that_the_rest_need_not_be_read(soaking: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parity_round, "MOST_KEPT", 7)
    soaking.app.run("UPDATE job SET status = 'completed', state = 'locked'")

    with pytest.raises(ParityLost, match=r"10 rows disagree") as lost:
        looked(soaking)

    assert (lost.value.look["rows_examined"], lost.value.look["held_up"]) == (10, "10 rows disagree, which is enough to know")


def test_a_look_that_was_killed_goes_on_where_it_was(soaking: Stage) -> None:
    rollout = soaking.rollout()
    control.limit(rollout.ledger, 2 * CHUNK)  # slow enough to be met half-way
    process = soaking.process("watch", "--budget-s", "600")
    while not soaking.app.value("SELECT SUM(rows_examined) FROM _rollout_pass WHERE `pass` = %s", WATCH):
        assert process.poll() is None, process.communicate()
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    control.limit(rollout.ledger, None)
    seen = int(soaking.app.value("SELECT rows_examined FROM _rollout_pass WHERE `pass` = %s", WATCH))
    assert 0 < seen < 40

    found = looked(soaking)

    assert (found.outcome, found.look["rows_examined"], found.look["rows_of_round"]) == ("clean", 40 - seen, 40)


def test_sigterm_ends_a_look_with_exit_4_and_the_next_one_goes_on(soaking: Stage) -> None:
    rollout = soaking.rollout()
    control.ask(rollout.ledger, control.PAUSE, "bob", "lunch")
    process = soaking.process("watch", "--budget-s", "600")
    while not soaking.app.value("SELECT COUNT(*) FROM _rollout_pace WHERE `pass` = %s AND paused_for IS NOT NULL", WATCH):
        assert process.poll() is None, process.communicate()
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=60)
    control.ask(rollout.ledger, control.RUN, "bob", "back")

    assert process.returncode == 4, output
    assert looked(soaking).outcome == "clean"


def test_a_person_who_pauses_passes_pauses_the_watch_until_its_budget_ends(soaking: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    control.ask(soaking.rollout().ledger, control.PAUSE, "bob", "lunch")
    ends_after(3, monkeypatch)

    found = looked(soaking)

    assert (found.outcome, found.look["rows_examined"]) == ("unfinished", 0)
    assert found.look["held_up"] == "its 60 s have ended; paused: bob asked for it: lunch"


def test_a_stop_that_is_meant_for_a_run_is_not_obeyed_by_the_watch(soaking: Stage) -> None:
    ledger = soaking.rollout().ledger
    control.ask(ledger, control.STOP, "bob", "not now")

    assert looked(soaking).outcome == "clean"
    assert control.wish(ledger).wanted == control.STOP


def test_a_rollback_meanwhile_is_never_busy_and_the_look_raises_no_alarm(soaking: Stage) -> None:
    went: list[str] = []

    def back(_rollout: Rollout, _progress: Progress) -> None:
        if not went:
            went.append(soaking.back(SOAKED).outcome)
            went.extend(soaking.back(phase).outcome for phase in (Through.VERIFY, Through.BACKFILL, Through.DEPLOY, Through.PRE_DEPLOY))

    found = looked(soaking, back)

    assert went == ["done"] * 5
    assert soaking.app.triggers() == []
    assert (found.outcome, found.look["complete"]) == ("unfinished", False)
    assert found.look["held_up"] == "a rollout worked on the table meanwhile"
    assert conditions(soaking) == []
    assert looked(soaking).why == "shadow_write is undone"


def test_a_look_steps_aside_for_whoever_takes_the_table_and_begins_its_round_anew_afterwards(soaking: Stage) -> None:
    with ExitStack() as stack:
        def take(rollout: Rollout, _progress: Progress) -> None:
            if not taken:
                taken.append(stack.enter_context(Ownership(rollout.target, rollout.ledger, "bob")))

        taken: list[Ownership] = []
        found = looked(soaking, take)
        assert taken
        during = looked(soaking)

    assert (found.outcome, found.look["rows_examined"], found.look["held_up"]) == ("unfinished", CHUNK, "a rollout works on the table")
    assert (during.outcome, during.look["rows_examined"], during.look["held_up"]) == ("unfinished", 0, "a rollout works on the table")
    assert looked(soaking).look["complete"] is True


def test_a_round_that_a_run_has_disturbed_begins_anew(soaking: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as short:
        ends_after(3, short)
        looked(soaking)
    soaking.back(SOAKED)
    soaking.run(SOAKED)

    found = looked(soaking)

    assert (found.outcome, found.look["rows_examined"], found.look["rows_of_round"]) == ("clean", 40, 40)


def test_two_looks_at_once_do_not_lose_each_others_place(soaking: Stage) -> None:
    second: list[BaseException] = []

    def look_too(_rollout: Rollout, _progress: Progress) -> None:
        if not second:
            with pytest.raises(Busy, match="another look") as busy:
                looked(soaking)
            second.append(busy.value)

    found = looked(soaking, look_too)

    assert (found.outcome, found.look["rows_examined"]) == ("clean", 40)
    assert len(events(soaking)) == 1
    assert looked(soaking).outcome == "clean"


@pytest.mark.parametrize("through", [None, Through.VERIFY])
def test_before_shadow_write_there_is_nothing_to_watch(stage: Stage, through: Through | None) -> None:
    planned(stage)
    if through:
        stage.run(through)

    found = looked(stage)

    assert (found.outcome, found.look) == ("nothing to do", {})
    assert found.why == ("shadow_write is not begun" if through else "plan small was never begun on this table")
    assert unmet(stage) == (["shadow_write is not begun"] if through else ["verify is not begun", "shadow_write is not begun"])


def test_once_cleanup_has_begun_there_is_nothing_to_watch(soaking: Stage) -> None:
    looked(soaking)
    text = (soaking.folder / "plan.toml").read_text()
    text = text.replace("cooling_s = 0\n", 'cooling_s = 0\ndeploy = "true"\nrollback_deploy = "true"\n')
    (soaking.folder / "plan.toml").write_text(text)
    soaking.run(Through.CLEANUP)

    found = looked(soaking)

    assert (found.outcome, found.why) == ("nothing to do", "cleanup has begun, and the old side is not kept in step any more")
    assert unmet(soaking) == []


def test_verify_that_is_too_young_and_looks_that_are_too_old_keep_cleanup_shut(soaking: Stage) -> None:
    text = (soaking.folder / "plan.toml").read_text().replace("min_age_s = 0", "min_age_s = 7200")
    (soaking.folder / "plan.toml").write_text(text)
    assert len(unmet(soaking)) == 1
    assert unmet(soaking)[0].startswith("verify passed at ")

    soaking.app.run("UPDATE _rollout_phase SET at = at - INTERVAL 2 DAY, detail = JSON_REMOVE(detail, '$.by_tool_clock')")
    soaking.app.run("UPDATE _rollout_run SET started_at = started_at - INTERVAL 2 DAY, ended_at = ended_at - INTERVAL 2 DAY")
    old = unmet(soaking)
    assert len(old) == 1
    assert f"more than a day ago: `rollout watch {soaking.folder}`" in old[0]

    assert looked(soaking).outcome == "clean"
    assert unmet(soaking) == []


def test_status_tells_the_last_look_and_its_age(soaking: Stage) -> None:
    assert soaking.standing()["parity_watch"] is None
    soaking.app.run(FAULT, "k03")
    with pytest.raises(ParityLost):
        looked(soaking)

    now = soaking.standing()

    last = now["parity_watch"]
    assert (last["outcome"], last["keys"], last["by"]) == ("found", ["k03"], "tester")
    assert last["age_s"] >= 0
    assert "counters" not in last
    assert WATCH not in {row["pass"] for row in now["passes"]}


def test_a_look_takes_no_lock_on_the_table(soaking: Stage) -> None:
    held: list[tuple[Any, ...]] = []

    def held_now(_rollout: Rollout, _progress: Progress) -> None:
        held.extend(soaking.app.rows("SELECT LOCK_TYPE, LOCK_DURATION FROM performance_schema.metadata_locks WHERE OBJECT_SCHEMA = %s "
                                     "AND OBJECT_NAME = 'job' AND OWNER_THREAD_ID <> PS_CURRENT_THREAD_ID()", soaking.target.schema))

    looked(soaking, held_now)

    assert held == []


def test_an_outcome_is_the_worst_of_what_was_seen() -> None:
    assert Look().outcome == "unfinished"
    assert Look(complete=True).outcome == "clean"
    assert Look(complete=True, could_not_look=["rows"]).outcome == "could not look"
    assert Look(could_not_look=["rows"], drift=["gone"]).outcome == "found"


def test_the_form_asks_for_nothing_that_a_look_does_not_need() -> None:
    schema = WatchRequest.model_json_schema()

    assert set(schema["properties"]) == {"plan", "by", "reason", "database", "settings", "budget_s"}
    assert {"plan", "by", "reason"} <= set(schema["required"])
    assert (schema["properties"]["budget_s"]["minimum"], schema["properties"]["budget_s"]["maximum"]) == (1, 3600)


def test_runs_whose_time_has_come_are_resumed_and_one_that_cannot_be_holds_up_no_other(soaking: Stage) -> None:
    from flows.reopening import Suspended, reopen

    waiting = [Suspended("run-1", "gate-1", "outside its window"), Suspended("run-2", "gate-2"), Suspended("run-3", "gate-3"),
               Suspended("run-4", "gate-3")]
    asked: list[tuple[str, str]] = []

    def resume(flow_run: str, gate: str) -> bool:
        asked.append((flow_run, gate))
        if flow_run == "run-2":
            raise ConnectionError("the API is away")
        return flow_run != "run-4"  # it waits there no longer

    resumed = reopen(soaking.rollout(), lambda _rollout: waiting, resume)

    assert (resumed, asked) == (["run-3"], [("run-2", "gate-2"), ("run-3", "gate-3"), ("run-4", "gate-3")])
