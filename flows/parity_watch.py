"""
The flow `parity_watch`: one look at a time over the weeks of shadow write, to be scheduled; and the reopening of runs whose time has come.

Its schedule, hourly, is deployed switched off: its parameters say which plan, and only people know when there is something to watch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import structlog

from flows import cockpit, descriptions, soak
from flows.params import FORM
from flows.tasks import PrefectConductor
from flows.watching import WatchRequest, WatchResult, watch
from steps import __version__, approvals, clocks, gate_times
from steps.errors import RolloutError
from steps.rollout import Rollout

cockpit.prepare()

from prefect import flow  # noqa: E402  # only after the settings above
from prefect.client.schemas.objects import State  # noqa: E402

from flows import api, suspended  # noqa: E402
from flows.deployments import _told  # noqa: E402  # how every flow of ours ends

log: structlog.stdlib.BoundLogger = structlog.get_logger("rollout")


@flow(name="parity_watch", flow_run_name="parity_watch {request.plan} by {request.by}", persist_result=False, version=__version__,
      description=descriptions.PARITY_WATCH)
def parity_watch(request: WatchRequest = FORM) -> State[Any]:
    """
    Look once whether both sides are in step, who writes the old one, and whether cleanup's conditions hold. Changes nothing.

    Runs that are suspended for a change window or a soak alone go on, once its time has come.
    """
    return _told(request, lambda desk, conduct: _looked(desk, request, conduct))


def _looked(rollout: Rollout, request: WatchRequest, conduct: PrefectConductor) -> WatchResult:
    try:
        return watch(rollout, request, conduct)
    finally:
        with suppress(RolloutError):  # what the look has to say matters more, and the next one tries again
            reopen(rollout)
        soak.told(rollout)


@dataclass(frozen=True)
class Suspended:
    """A flow run that waits for a change window or a soak alone, and nobody's word; *closed* says why the gate is shut still."""

    flow_run: str
    gate: str
    closed: str = ""


def waiting_for_time(rollout: Rollout) -> list[Suspended]:
    """Runs that wait at a gate which nobody has to answer, as the ledger has them, with what their gate still waits for."""
    now = clocks.now(rollout.session)
    return [Suspended(gate.flow_runs[-1], gate.id, "; ".join(wait.reason for wait in gate_times.of(rollout, gate.phase, now)))
            for gate in approvals.open_now(rollout)
            if gate.state == approvals.WAITING and gate.needs == approvals.TIME and gate.flow_runs]


def _resume(flow_run: str, _gate: str) -> None:
    found = suspended.resume([flow_run], {"reason": "the parity watch: its time has come"})
    if not found.runs:
        raise api.CockpitTrouble(found.trouble or "it is not suspended any more")


def reopen(rollout: Rollout, waiting: Callable[[Rollout], Iterable[Suspended]] = waiting_for_time,
           resume: Callable[[str, str], None] = _resume) -> list[str]:
    """
    Resume each flow run of *waiting* whose gate is open now by *resume* (flow run, gate); return those that were.

    Best effort: a run that cannot be resumed is tried again at the next look, and one that somebody has resumed meanwhile is left alone
    by Prefect. The ledger decides what the run may do: it meets its gate again.
    """
    resumed = []
    for run in waiting(rollout):
        if run.closed:
            continue
        try:
            resume(run.flow_run, run.gate)
        except Exception as trouble:  # noqa: BLE001  # whatever the cockpit's trouble is, the next look tries again
            log.warning("a flow run could not be resumed", flow_run=run.flow_run, gate=run.gate, reason=api.told(trouble))
            continue
        log.info("resumed", flow_run=run.flow_run, gate=run.gate)
        resumed.append(run.flow_run)
    return resumed
