"""
Suspended runs, looked after from outside: who goes on since the time has come, when somebody looks next, and who was cancelled meanwhile.

Best effort: the ledger decides what a run may do, and one that is resumed too early meets its gate again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

import structlog

from flows import api, suspended, visits
from steps import approvals, clocks, expiry, gate_times
from steps.approvals import TIME, WAITING, Gate
from steps.clocks import Moment
from steps.rollout import Rollout

log: structlog.stdlib.BoundLogger = structlog.get_logger("rollout")


@dataclass(frozen=True)
class Suspended:
    """A flow run that waits for a change window or a soak alone, and nobody's word; *closed* says why the gate is shut still."""

    flow_run: str
    gate: str
    closed: str = ""


def waiting_for_time(rollout: Rollout) -> list[Suspended]:
    """
    All runs that asked at a gate which nobody has to answer, as the ledger has them, with what their gate still waits for: by the time
    that is on record of it, whatever the plan at hand says. It waits for nothing where somebody else has begun its phase. One that stood
    on what was taken back since is none of them.
    """
    now = clocks.now(rollout.session)
    return [Suspended(flow_run, gate.id, _closed(rollout, gate, now)) for gate in _of_time(rollout, now) for flow_run in gate.flow_runs]


def _of_time(rollout: Rollout, now: Moment) -> list[Gate]:
    """Also those behind which somebody has asked anew, with other settings: who asked there waits there."""
    return [gate for gate in approvals.read(rollout.ledger) if gate.state == WAITING and gate.needs == TIME and gate.flow_runs
            and not gate.over(now) and not approvals.went_back_since(rollout, gate.asked_number)]


def _closed(rollout: Rollout, gate: Gate, now: Moment) -> str:
    if approvals.begun(rollout, gate.phase):
        return ""
    opens = gate.detail.get("opens_at")
    if opens:
        return "" if min(now.server, now.tool) >= datetime.fromisoformat(opens) else f"it opens at {opens}"
    return "; ".join(wait.reason for wait in gate_times.of(rollout, gate.phase, now))


def _resume(flow_run: str, gate: str) -> bool:
    found = suspended.resume([flow_run], lambda key: {"reason": visits.ITS_TIME} if key == gate else None)
    if found.trouble:
        raise api.CockpitTrouble(found.trouble)
    return bool(found.runs)


def reopen(rollout: Rollout, waiting: Callable[[Rollout], Iterable[Suspended]] = waiting_for_time,
           resume: Callable[[str, str], bool] = _resume) -> list[str]:
    """
    Resume each flow run of *waiting* whose gate is open now by *resume* (flow run, gate; whether it waited there); return those that were.

    A run that cannot be resumed is tried again at the next look, and one that waits there no longer is left alone.
    """
    resumed = []
    for run in waiting(rollout):
        if run.closed:
            continue
        try:
            goes_on = resume(run.flow_run, run.gate)
        except Exception as trouble:  # noqa: BLE001  # whatever the cockpit's trouble is, the next look tries again
            log.warning("a flow run could not be resumed", flow_run=run.flow_run, gate=run.gate, reason=api.told(trouble))
            continue
        if goes_on:
            log.info("resumed", flow_run=run.flow_run, gate=run.gate)
            resumed.append(run.flow_run)
    return resumed


def visit_again(rollout: Rollout, waits: Callable[[str], bool] = suspended.suspended) -> None:
    """
    For each gate that time alone opens see to it that somebody looks then, or once more where one still *waits* there that could go on.

    Safe to repeat; inside a flow run only.
    """
    now = clocks.now(rollout.session)
    for gate in _of_time(rollout, now):
        if gate.detail.get("opens_at") and any(waits(one) for one in gate.flow_runs):
            visits.schedule(gate.id, datetime.fromisoformat(gate.detail["opens_at"]), now)


def withdraw(rollout: Rollout, cancelled: Callable[[list[str]], bool] = suspended.cancelled) -> list[str]:
    """
    Put on record which questions nobody waits for any more: whoever asked them was a run that somebody cancelled in Prefect. A yes that
    was given to it goes with it.

    The next run asks anew. A question that a shell asked, too, stays; so does one of which Prefect cannot say.
    """
    gone = {gate.id for gate in approvals.alive(rollout)
            if gate.flow_runs and len(gate.flow_runs) == len(gate.askers) and cancelled(gate.flow_runs)}
    return expiry.withdraw(rollout, gone, lambda gate: f"flow run {', '.join(gate.flow_runs)}, which asked, was cancelled in Prefect") \
        if gone else []
