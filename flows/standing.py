"""Where a rollout stands, from catalogue and ledger, without any lock and without Prefect."""

from __future__ import annotations

from typing import Any

from flows import rollout as runbook
from steps import approvals, contract, expiry, gate_words, handover_names, own_shadow_write, passing, pre_deploy, under_way, way_back_waits
from steps.checks import transport
from steps.errors import RolloutError
from steps.mysql import VALUE
from steps.own_names import folds
from steps.ownership import lock_name
from steps.parity_looks import alarm, last_look
from steps.phase import FORWARD, Phase
from steps.plan_identity import plan_differences
from steps.rollout import Rollout
from steps.scratch import leftover

GOES_ON = (4, 7)
"""Exit codes of a run that the same command continues."""


def standing(rollout: Rollout) -> dict[str, Any]:
    """
    One document: phases, stair, sync, passes, who works on it, what comes next. Safe at any time.

    `stairs` are all of the ladder, cleanup's among them, as in `rollout plan`: null before the first run, for only a rehearsal can
    count them. `pre_deploy_stairs` are those that lead to the end of pre_deploy.
    """
    recorded = rollout.ledger.phases()
    phases = [{"phase": phase.value, "state": recorded.get(phase, {}).get("state", "not begun"),
               "at": recorded.get(phase, {}).get("at"), "detail": recorded.get(phase, {}).get("detail", {})} for phase in FORWARD]
    known = rollout.ledger.plan()
    gates = waiting_gates(rollout)
    last = _last_run(rollout)
    schema, at_work, left = _schema(rollout, begun=known is not None), owner(rollout), under_way.told(rollout.ledger)
    return {"table": f"{rollout.schema}.{rollout.table}", "plan": rollout.plan.id, "path": rollout.plan.plan.path,
            "same_plan_as_begun": not plan_differences(rollout) if known else None,
            "contract": _contract(rollout, phases), "phases": phases, **schema,
            "passes": passing.passes(rollout.ledger, at_work=bool(at_work and at_work["alive"]),
                                     planned_limit=rollout.plan.backfill.rows_per_s),
            "parity_watch": last_look(rollout), "connection": transport.told(rollout.session), "working_on_it": at_work,
            "under_way": left, "last_run": last,
            "next": _way_back(rollout, last) or _next(rollout, phases, schema, gates, [] if at_work and at_work["alive"] else left),
            "gates": gates,
            "gates_closed": [gate_words.told(gate, rollout.plan.called) for gate in expiry.closed(rollout)],
            "rehearsal_left": leftover(rollout.session, rollout.target, rollout.plan),
            "handover_left": handover_names.left(rollout.session, rollout.schema, rollout.table)}


def _last_run(rollout: Rollout) -> dict[str, Any] | None:
    """How the last run or rollback ended: who, when, and its last words."""
    run = next(iter(reversed(rollout.ledger.runs())), None)
    return run and {key: run[key] for key in ("verb", "actor", "reason", "started_at", "ended_at", "exit_code", "outcome")}


def _way_back(rollout: Rollout, last: dict[str, Any] | None) -> str:
    """What goes on with a way back that waits or was cut short: nobody goes forward by accident meanwhile."""
    waits = way_back_waits.last(rollout)
    if waits:
        return f"the way back that {waits['by']} asked for waits: {waits['reason']}; {waits['remedy']}"
    if last and last["exit_code"] in GOES_ON and (last["verb"] == "rollback" or runbook.WAITS in str(last["outcome"])):
        return f"the way back: {last['outcome']}"
    return ""


def waiting_gates(rollout: Rollout) -> list[dict[str, Any]]:
    """What waits for an answer or for its time, with the calls that answer; and what was approved and not used yet."""
    return [gate_words.told(gate, rollout.plan.called) for gate in approvals.open_now(rollout)]


def _schema(rollout: Rollout, *, begun: bool) -> dict[str, Any]:
    if not begun:
        return {"stair": None, "stairs": None, "pre_deploy_stairs": len(rollout.plan.pre_deploy.step), "sync": rollout.sync_state().value,
                "strangers": []}
    ladder = rollout.ladder()
    known = {"stairs": ladder.top, "pre_deploy_stairs": ladder.expanded, "sync": rollout.sync_state().value}
    try:
        live = rollout.live()
        position = ladder.position(live, rollout.table)
        return {"stair": position, **known, "strangers": ladder.strangers(live, position)}
    except RolloutError as error:
        return {"stair": None, **known, "strangers": [], "drift": str(error)}


def _contract(rollout: Rollout, phases: list[dict[str, Any]]) -> list[str] | None:
    """How the table deviates from the frozen contract, once pre_deploy is done; None where the plan has none (issue 274)."""
    frozen, states = contract.load(rollout.plan), {row["phase"]: row["state"] for row in phases}
    if frozen is None or states[Phase.PRE_DEPLOY.value] != "done":
        return None
    gone = states[Phase.CLEANUP.value] in ("done", "cooling")
    stage = contract.Stage("cleaned" if gone else "renamed" if rollout.plan.plan.renames_in_place else "expanded")
    return contract.deviations(frozen, rollout.live(), stage, folds=folds(rollout.session))


def owner(rollout: Rollout) -> dict[str, Any] | None:
    """Who has the table and whether they are alive; one who was killed is told until the next run."""
    rows = rollout.ledger.read(
        f"SELECT plan_id, actor, host, pid, taken_at, heartbeat_at, IS_USED_LOCK({VALUE}) IS NOT NULL FROM {rollout.ledger.table('owner')} "
        f"WHERE table_schema = {VALUE} AND table_name = {VALUE}", lock_name(rollout.schema, rollout.table), rollout.schema, rollout.table)
    if not rows:
        return None
    plan, actor, host, pid, taken, beat, alive = rows[0]
    return {"plan": plan, "actor": actor, "host": host, "pid": pid, "since": f"{taken}", "heartbeat_at": f"{beat}", "alive": bool(alive)}


def _next(rollout: Rollout, phases: list[dict[str, Any]], schema: dict[str, Any], gates: list[dict[str, Any]],
          left: list[str]) -> str:
    """What a person should do now; what is broken comes before what is next."""
    called = rollout.plan.called
    if schema.get("drift"):
        return f"repair: the table is not what the plan left; undo the foreign change, then rollout run {called}"
    if left:
        return f"look after {left[0]}; the next run or rollback says what it needs"
    broken = pre_deploy.broken_sync(rollout)
    if broken:
        return f"repair: sync is broken ({broken}); rollout run {called}"
    lost = alarm(rollout)
    if lost:
        return f"repair: {lost}; `rollout watch {called} --by NAME --reason WHY` says which"
    if gates and (gates[0]["calls"] or gates[0]["state"] == approvals.APPROVED):
        return _next_gate(gates[0], called)
    wanted = Phase.SHADOW_WRITE.value if own_shadow_write.is_due(rollout) else None  # its commands came into the plan after it was done
    entry = next((row for row in phases if row["state"] != "done" or row["phase"] == wanted), None)
    return _next_phase(entry, called) if entry else "nothing"


def _next_gate(gate: dict[str, Any], called: str) -> str:
    """An approval counts for what was asked with the settings of then: `resume` goes on with those."""
    if gate["state"] == approvals.APPROVED:
        return f"{gate['phase']}, approved by {gate['answered_by']}: rollout resume {called} --by NAME --reason WHY"
    opens = f" (opens {gate['opens_at']})" if gate["opens_at"] else ""
    return f"gate of {gate['phase']}{opens}: {gate['calls'][0]}"


def _next_phase(entry: dict[str, Any], called: str) -> str:
    again = f"rollout run {called}" + (" --through cleanup" if entry["phase"] == Phase.CLEANUP.value else "")
    if entry["state"] == "waiting":
        return f"{entry['detail'].get('reason') or 'a person'}; {entry['detail'].get('remedy', '')}"
    if entry["state"] == "going back":
        return f"{entry['phase']} is half-way back: the same rollback again"
    if entry["state"] == "cooling":
        return f"cleanup's drop, due {entry['detail'].get('drop_due')}: {again}"
    if entry["phase"] == Phase.CLEANUP.value and entry["state"] in ("not begun", "undone"):
        return f"cleanup, when the old application is gone and the soak is long enough: {again}"
    return f"{entry['phase']}: {again}"
