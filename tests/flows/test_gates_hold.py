"""What a yes at a gate covers: what its approver saw, and no more than that; and what a no, a lost parity or a way back does to it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from types import ModuleType

import pytest

from flows import actions
from flows.conductor import PlainConductor
from flows.params import RunRequest, Through
from steps import approving, cleanup_conditions, gate_times, parity_looks, waits
from steps.approving import Answered
from steps.errors import ApprovalMissing, GateClosed, ParityLost, Rejected, RolloutError, Stopped
from steps.ledger import Event
from steps.ownership import Ownership
from steps.phase import Phase
from steps.rollout import Person, Rollout
from tests.flows.deploy_stage import ACCEPTED, Stage
from tests.flows.serving import until
from tests.flows.test_expiry import SINCE
from tests.flows.test_gates import answered, at, gated, rollout, run, states, trail
from tests.flows.test_parity_watch import FAULT, MENDED, ends_after, looked, soaking  # noqa: F401  # soaking is used by its name

Change = Callable[[Stage, pytest.MonkeyPatch], object]
BY_BEN = 'approvers = ["ben"]\nfour_eyes = true'
UNREADY = ("cleanup-unseen", "cleanup-unready")
PASSED = ["waiting", "approved", "opened"]


def lost(stage: Stage, rows: int = 3) -> None:
    rollout(stage).ledger.record(Event("shadow_write", "parity watch", "found", detail={"differing": rows}))


def kept(stage: Stage) -> bool:
    return "`status`" in stage.app.create_table("job") and "cleanup" not in states(stage)


def cleanup_asked(stage: Stage, rules: str, by: str = "ann") -> None:
    """All that is before cleanup is done, and *by* has asked for it."""
    gated(stage, rules)
    run(stage, Through.SHADOW_WRITE)
    with pytest.raises(ApprovalMissing):
        run(stage, Through.CLEANUP, by=by)


def deploy_asked(stage: Stage) -> None:
    gated(stage, 'approve = ["deploy"]')
    with pytest.raises(ApprovalMissing):
        run(stage)


def no_at_once(stage: Stage, monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str) -> list[Future[Answered]]:
    """Carl's no to deploy, from a thread, as soon as that is called: it has ended, or waits for somebody's lock, before that goes on."""
    real, said = getattr(module, name), list[Future[Answered]]()
    locked = "SELECT COUNT(*) FROM performance_schema.threads WHERE PROCESSLIST_STATE = 'User lock' AND PROCESSLIST_DB = %s"

    def called(*words: object) -> object:
        if not said:
            said.append(stage.stack.enter_context(ThreadPoolExecutor(1)).submit(lambda: answered(stage, by="carl", approve=False)))
            until(lambda: said[0].done() or stage.app.value(locked, stage.target.schema))
        return real(*words)

    monkeypatch.setattr(module, name, called)
    return said


@pytest.fixture
def stopped(stage: Stage) -> Stage:
    """Cleanup was approved by ben and let pass, and stopped before it changed anything: a view names the old column. The view is gone."""
    cleanup_asked(stage, f'{BY_BEN}\n[gates.window]\nnot_after = {at(datetime.now(UTC) + timedelta(hours=1))}\nphases = ["cleanup"]')
    assert answered(stage, Phase.CLEANUP).outcome == "approved"
    stage.app.run("CREATE VIEW seen AS SELECT status FROM job")
    with pytest.raises(Stopped, match="seen"):
        run(stage, Through.CLEANUP)
    stage.app.run("DROP VIEW seen")
    assert (trail(stage, "cleanup"), kept(stage)) == (PASSED, True)
    return stage


def test_a_gate_that_was_passed_counts_again_for_a_phase_that_has_changed_nothing(stopped: Stage) -> None:
    assert run(stopped, Through.CLEANUP).did == ["cleanup"]

    assert (trail(stopped, "cleanup"), states(stopped)["cleanup"], kept(stopped)) == ([*PASSED, "opened"], "done", False)


def test_a_no_counts_while_the_phase_that_was_let_pass_has_changed_nothing(stopped: Stage) -> None:
    assert answered(stopped, Phase.CLEANUP, by="carl", approve=False).outcome == "rejected"

    with pytest.raises(ApprovalMissing):
        run(stopped, Through.CLEANUP)
    assert (trail(stopped, "cleanup"), kept(stopped)) == ([*PASSED, "rejected", "waiting"], True)


def test_a_no_that_comes_while_another_run_has_the_table_ends_the_yes_for_the_next(stopped: Stage) -> None:
    with Ownership(stopped.target, rollout(stopped).ledger, "other"):
        answered(stopped, Phase.CLEANUP, by="carl", approve=False)

    with pytest.raises(ApprovalMissing):
        run(stopped, Through.CLEANUP)
    assert (trail(stopped, "cleanup")[-1], kept(stopped)) == ("waiting", True)


@pytest.mark.parametrize(("change", "why", "then"), [
    (lambda stage, _: gated(stage, BY_BEN, command="echo other", rollback_command="true"),
     "is void: settings changed since", ["expired", "waiting"]),
    (lambda stage, _: lost(stage), "is void, since conditions have ceased to hold; .*parity is lost: 3 rows", ["expired", "waiting"]),
    (lambda stage, _: stage.app.run(SINCE, "approved"), "the approval by ben of .* was not used by 2026-01-01", ["expired", "waiting"]),
    (lambda _, patch: patch.setattr(waits, "clock", lambda: datetime.now(UTC) + timedelta(hours=2)), "the change window .* is closed",
     ["waiting"])], ids=["settings", "parity", "time", "window"])
def test_a_gate_that_was_passed_does_not_count_for_what_has_changed_since(stopped: Stage, monkeypatch: pytest.MonkeyPatch, change: Change,
                                                                         why: str, then: list[str]) -> None:
    change(stopped, monkeypatch)

    with pytest.raises(GateClosed) as closed:
        run(stopped, Through.CLEANUP, by="mallory")

    assert (trail(stopped, "cleanup"), kept(stopped)) == ([*PASSED, *then], True)
    closed.match(why)


@pytest.mark.parametrize("rules", ['approvers = ["ben"]', "four_eyes = true"])
def test_who_runs_cleanup_does_not_waive_conditions_for_anothers_yes(stage: Stage, rules: str) -> None:
    cleanup_asked(stage, rules)
    answered(stage, Phase.CLEANUP)
    lost(stage)

    with pytest.raises(ApprovalMissing, match="since conditions have ceased to hold; conditions are not met: parity is lost: 3 rows"):
        run(stage, Through.CLEANUP, accepted=(*UNREADY, "cleanup"))

    assert (trail(stage, "cleanup"), kept(stage)) == (["waiting", "approved", "expired", "waiting"], True)


def test_a_no_that_comes_while_a_run_decides_waits_and_is_too_late(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    deploy_asked(stage)
    answered(stage)
    no = no_at_once(stage, monkeypatch, gate_times, "of")

    assert run(stage).did == ["deploy"]
    assert no[0].result().outcome == "too late"
    assert (trail(stage), states(stage)["deploy"]) == ([*PASSED, "not counted"], "done")


def test_a_yes_and_a_no_of_the_same_moment_count_one_after_the_other(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    deploy_asked(stage)
    no = no_at_once(stage, monkeypatch, approving, "refuse_approver")
    yes = answered(stage)

    assert (yes.outcome, yes.gate.state, no[0].result().outcome) == ("approved", "approved", "rejected")
    with pytest.raises(ApprovalMissing):
        run(stage)
    assert (trail(stage), states(stage)) == (["waiting", "approved", "rejected", "waiting"], {"pre_deploy": "done"})


@pytest.mark.parametrize(("change", "error", "why", "then"), [
    (lost, ApprovalMissing, "conditions are not met: parity is lost: 3 rows disagree", ["waiting"]),
    (lambda stage: answered(stage, Phase.CLEANUP, by="carl", approve=False), Rejected, "was rejected by carl meanwhile", ["rejected"])],
    ids=["parity", "rejected"])
def test_what_changes_while_a_person_types_his_yes_counts(stage: Stage, change: Callable[[Stage], object], error: type[RolloutError],
                                                          why: str, then: list[str]) -> None:
    cleanup_asked(stage, "", by="ben")
    desk = rollout(stage)

    def confirm(_what: str) -> bool:
        change(stage)
        return True

    desk.person = Person("ann", "CHG-1", None, confirm)
    with pytest.raises(error, match=why):
        actions.run(desk, RunRequest(plan=str(stage.folder), by="ann", reason="CHG-1", through=Through.CLEANUP), PlainConductor())

    assert (trail(stage, "cleanup"), kept(stage)) == (["waiting", *then], True)


@pytest.mark.parametrize(("seen", "now", "counts"), [(1, 1_000_000, False), (3, 2, True)])
def test_a_yes_to_rows_that_differ_counts_for_as_many_and_for_fewer(stage: Stage, seen: int, now: int, counts: bool) -> None:
    cleanup_asked(stage, BY_BEN)
    lost(stage, seen)
    answered(stage, Phase.CLEANUP, accepted=("cleanup-unready",))
    lost(stage, now)
    if counts:
        assert run(stage, Through.CLEANUP).did == ["cleanup"]
    else:
        with pytest.raises(ApprovalMissing, match=f"parity is lost: {now} rows disagree"):
            run(stage, Through.CLEANUP)

    assert (trail(stage, "cleanup")[2:], kept(stage)) == ((["opened"], False) if counts else (["expired", "waiting"], True))


def test_findings_that_who_asks_accepts_are_part_of_what_was_approved(stage: Stage) -> None:
    cleanup_asked(stage, BY_BEN)
    answered(stage, Phase.CLEANUP)

    with pytest.raises(ApprovalMissing, match=r"the approval by ben of .* is void: accepted findings changed since"):
        run(stage, Through.CLEANUP, accepted=("cleanup-unseen", "cleanup-dependents"))

    assert (trail(stage, "cleanup"), kept(stage)) == (["waiting", "approved", "expired", "waiting"], True)


def disturbed(stage: Stage) -> None:
    with Ownership(stage.target, rollout(stage).ledger, "other"):
        assert looked(stage).outcome == "unfinished"


@pytest.mark.usefixtures("soaking")
def test_rows_that_differ_are_told_until_a_look_at_every_row_finds_none(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def told() -> tuple[list[str], bool]:
        here: Rollout = stage.rollout()
        return cleanup_conditions.unmet(here), "found 1 rows that differ" in str(parity_looks.alarm(here))

    still = (["parity is lost: 1 rows disagree (keys: k07)"], True)
    stage.app.run(FAULT, "k07")
    with pytest.raises(ParityLost):
        looked(stage)
    before = stage.app.rows("SELECT * FROM job WHERE id = 'k07'")
    disturbed(stage)

    assert told() == still
    with pytest.raises(ApprovalMissing, match="parity is lost: 1 rows disagree"):
        run(stage, Through.CLEANUP, accepted=ACCEPTED, deployed_by="ben")
    assert (trail(stage, "cleanup"), kept(stage), stage.app.rows("SELECT * FROM job WHERE id = 'k07'")) == (["waiting"], True, before)

    stage.app.run(MENDED, "k07")
    with monkeypatch.context() as short:
        ends_after(3, short)
        assert looked(stage).outcome == "unfinished"
    assert told() == still
    assert (looked(stage).outcome, told()) == ("clean", ([], False))


@pytest.mark.usefixtures("soaking")
def test_a_look_that_could_not_read_rows_does_not_hide_those_that_differ(stage: Stage) -> None:
    stage.app.run(FAULT, "k07")
    with pytest.raises(ParityLost):
        looked(stage)
    stage.app.run("ALTER TABLE job RENAME COLUMN state TO gone")
    with pytest.raises(ParityLost, match="stands on stair 0 of 1"):
        looked(stage)
    stage.app.run("ALTER TABLE job RENAME COLUMN gone TO state")

    assert cleanup_conditions.unmet(stage.rollout()) == ["parity is lost: 1 rows disagree (keys: k07)"]
