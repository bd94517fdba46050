"""
The flow `parity_watch`: one look at a time over the weeks of shadow write, to be scheduled; and the reopening of runs whose time has come.

A schedule is given its parameters where it is made, since they say which plan: `rollout serve` takes none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import structlog

from flows import cockpit
from flows.watching import WatchRequest, watch
from steps.rollout import Rollout

cockpit.prepare()

from prefect import flow  # noqa: E402  # only after the settings above
from prefect.client.schemas.objects import State  # noqa: E402

from flows import api  # noqa: E402
from flows.deployments import _told  # noqa: E402  # how every flow of ours ends

log: structlog.stdlib.BoundLogger = structlog.get_logger("rollout")


@flow(name="parity_watch", flow_run_name="parity_watch {request.plan} by {request.by}", persist_result=False)
def parity_watch(request: WatchRequest) -> State[Any]:
    """Look once whether both sides are in step, who writes the old one, and whether cleanup's conditions hold. Changes nothing."""
    return _told(request, lambda desk, conduct: watch(desk, request, conduct))


@dataclass(frozen=True)
class Suspended:
    """A flow run that waits for a change window or a soak alone, and nobody's word; *closed* says why the gate is shut still."""

    flow_run: str
    gate: str
    closed: str = ""


def reopen(rollout: Rollout, suspended: Callable[[Rollout], Iterable[Suspended]], resume: Callable[[str, str], None]) -> list[str]:
    """
    Resume each flow run of *suspended* whose gate is open now by *resume* (flow run, gate); return those that were.

    Best effort: a run that cannot be resumed is tried again at the next look, and one that somebody has resumed meanwhile is left alone
    by Prefect. The ledger decides what the run may do: it meets its gate again.
    """
    resumed = []
    for run in suspended(rollout):
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
