"""A run of the ledger in Prefect's words: its end, its phases, and what was done in them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from flows import history

STARTED = datetime(2026, 11, 30, 4, 0, tzinfo=UTC)


def at(seconds: float) -> str:
    return (STARTED + timedelta(seconds=seconds)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def event(number: int, phase: str, step: str, outcome: str = "done", **more: Any) -> dict[str, Any]:
    return {"id": number, "run_id": "r", "at": at(number), "phase": phase, "direction": "forward", "step": step, "outcome": outcome,
            "statement": None, "duration_ms": None, "row_count": None, "detail": {}} | more


def told(*events: dict[str, Any], exit_code: int | None = 0, outcome: str | None = "done", ended: bool = True,
         options: dict[str, Any] | None = None) -> history.Told:
    run = {"run_id": "r", "verb": "run", "actor": "ann", "reason": "CHG-1", "host": "h", "options": options or {}, "tool_version": "0",
           "started_at": at(0), "ended_at": at(60) if ended else None, "exit_code": exit_code, "outcome": outcome, "events": list(events)}
    return history.told({"table": "s.t", "plan": "p", "runs": [run], "phases": {}}, run)


@pytest.mark.parametrize(("exit_code", "outcome", "ending"), [
    (0, "done", ("COMPLETED", "Completed")), (3, "refused", ("FAILED", "Refused")), (4, "t: held", ("FAILED", "Stopped")),
    (4, "cancelled by SIGINT", ("CANCELLED", "Cancelled")), (4, "interrupted", ("CANCELLED", "Cancelled")),
    (5, "failed", ("FAILED", "RolledBack")), (7, "both failed", ("FAILED", "RollbackFailed")), (1, "KeyError", ("FAILED", "Failed")),
    (None, "never ended: killed or lost", ("CRASHED", "Crashed")), (None, None, ("CRASHED", "Crashed"))])
def test_how_a_run_ended(exit_code: int | None, outcome: str | None, ending: tuple[str, str]) -> None:
    assert told(exit_code=exit_code, outcome=outcome, ended=outcome is not None).ending == ending


def test_each_stretch_of_a_phase_is_followed_by_what_was_done_in_it_at_its_own_time() -> None:
    run = told(event(1, "pre_deploy", "findings", "told"), event(2, "pre_deploy", "010_add", duration_ms=1500.0),
               event(5, "deploy", "command", "failed"), event(9, "deploy", "command", direction="back"))

    assert [(done.name, done.ending[1], done.parent, done.after) for done in run.done] == [
        ("1. pre_deploy", "Completed", None, None), ("010_add", "Completed", "phase-2", None),
        ("2. deploy", "Failed", None, "phase-2"), ("command", "Failed", "phase-5", None),
        ("rollback of deploy", "Completed", None, "phase-5"), ("command", "Completed", "phase-9", None)]
    assert (run.done[1].began, run.done[1].ended) == (STARTED + timedelta(seconds=0.5), STARTED + timedelta(seconds=2))
    assert (run.events, run.missed) == (4, False)


@pytest.mark.parametrize(("exit_code", "outcome", "ending"), [
    (None, None, ("CRASHED", "Crashed")), (4, "cancelled by SIGTERM", ("CANCELLED", "Cancelled"))])
def test_a_run_that_was_cut_short_was_so_in_its_last_phase(exit_code: int | None, outcome: str | None, ending: tuple[str, str]) -> None:
    run = told(event(1, "pre_deploy", "010_add"), event(2, "backfill", "pass"), exit_code=exit_code, outcome=outcome)

    assert [done.ending for done in run.done if done.parent is None] == [("COMPLETED", "Completed"), ending]


def test_what_prefect_called_it_is_no_parameter_and_what_it_missed_is_known() -> None:
    run = told(event(1, "verify", "Prefect", "untold", detail={"why": "ConnectError"}), options={"flow_run": "f", "through": "verify"})

    assert (run.flow_run, run.missed, run.done) == ("f", True, ())
    assert run.parameters == {"request": {"through": "verify", "plan": "p", "by": "ann", "reason": "CHG-1"}}
    assert "| verify | forward | Prefect | untold |" in run.page


def test_a_verdict_that_is_none_never_looks_green_and_a_gate_is_no_phase() -> None:
    run = told(event(1, "pre_deploy", "010_add"), event(2, "deploy", "gate", "waiting"), event(3, "deploy", "confirmation", "confirmed"),
               event(4, "verify", "every row", "fail"), event(5, "shadow_write", "every row", "inconclusive"), exit_code=5)

    assert [(done.name, done.ending) for done in run.done if done.parent is None] == [
        ("1. pre_deploy", ("COMPLETED", "Completed")), ("4. verify", ("FAILED", "Failed")), ("5. shadow_write", ("FAILED", "Inconclusive"))]
    assert run.asked


def test_a_flow_run_that_was_suspended_is_told_with_what_every_life_did_and_missed() -> None:
    from flows import telling

    lives = [{"run_id": f"r{number}", "options": {"flow_run": flow_run}, "started_at": at(number), "events": [event(number, "verify", "x")]}
             for number, flow_run in enumerate(("a", None, "a", "b"))]

    whole = telling._whole(lives)

    assert [(run["run_id"], run["started_at"], [one["id"] for one in run["events"]]) for run in whole] == [
        ("r2", at(0), [0, 2]), ("r1", at(1), [1]), ("r3", at(3), [3])]


@pytest.mark.parametrize(("exit_code", "name", "ending"), [
    (5, "4. verify", "Failed"), (5, "1. pre_deploy", "Completed"), (5, "settle", "RolledBack"), (0, "settle", "Completed"),
    (None, "1. pre_deploy", "Crashed")])
def test_what_prefect_saw_begin_ends_as_the_ledger_has_it(exit_code: int | None, name: str, ending: str) -> None:
    import uuid

    from prefect.client.schemas.objects import TaskRun

    from flows import past

    run = told(event(1, "pre_deploy", "010_add"), event(4, "verify", "every row", "fail"), exit_code=exit_code)

    ended = past.ended(run, uuid.uuid4(), TaskRun(flow_run_id=uuid.uuid4(), task_key="t", dynamic_key="0", name=name))

    assert ended.resource["prefect.state-name"] == ending
