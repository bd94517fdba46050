"""
The flow `parity_watch`: one look at a time over the weeks of shadow write, to be scheduled; and the reopening of runs whose time has come.

Its schedule, hourly, is deployed switched off: its parameters say which plan, and only people know when there is something to watch.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from flows import cockpit, descriptions, soak
from flows.params import FORM
from flows.tasks import PrefectConductor
from flows.watching import NOTHING, WatchRequest, WatchResult, watch
from steps import __version__
from steps.errors import RolloutError
from steps.rollout import Rollout

cockpit.prepare()

from prefect import flow  # noqa: E402  # only after the settings above
from prefect.client.schemas.objects import State  # noqa: E402

from flows import hearing, one_at_a_time, reopening  # noqa: E402
from flows.deployments import _told  # noqa: E402  # how every flow of ours ends


@flow(name="parity_watch", flow_run_name="parity_watch {request.plan} by {request.by}", persist_result=False, version=__version__,
      description=descriptions.PARITY_WATCH)
def parity_watch(request: WatchRequest = FORM) -> State[Any]:
    """
    Look once whether both sides are in step, who writes the old one, and whether cleanup's conditions hold. Changes nothing.

    Runs that are suspended for a change window or a soak alone go on, once its time has come.
    """
    return _told(request, lambda desk, conduct: _looked(desk, request, conduct))


def _looked(rollout: Rollout, request: WatchRequest, conduct: PrefectConductor) -> WatchResult:
    one_at_a_time.tag(rollout, one_at_a_time.LOOK)
    did: list[str] = []
    try:
        seen = watch(rollout, request, conduct)
    finally:
        with suppress(RolloutError):  # what the look has to say matters more, and the next one tries again
            hearing.catch_up(rollout)
            did += reopening.withdraw(rollout)
            did += [f"flow run {one} goes on, since its time has come" for one in reopening.reopen(rollout)]
            reopening.visit_again(rollout)
        soak.told(rollout)
    seen.did += did
    if seen.did and seen.outcome == NOTHING:
        seen.outcome = "done"
    return seen
