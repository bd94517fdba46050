"""
The one list of deployments: `rollout serve` serves them on one machine, `deploy/prefect.yaml` is made of them for a work pool.

Without a concurrency limit of Prefect's: it takes a flow down, wherever that is, once its lease cannot be renewed because the API is
away; ours is in MySQL, and says Busy (:mod:`flows.one_at_a_time`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flows import cockpit, deployments, looking, one_at_a_time, parity_watch
from flows.one_at_a_time import LOOK, TAG
from flows.params import Through

cockpit.prepare()

from prefect.flows import Flow  # noqa: E402  # only after the settings above


@dataclass(frozen=True)
class Deployed:
    """
    One deployment: a *flow*, tagged with its *direction*; *cron* in UTC and its *parameters*, where it runs by itself.

    A schedule is off until somebody switches it on: only people know when there is something to watch.
    """

    flow: Flow[..., Any]
    direction: str
    cron: str | None = None
    parameters: dict[str, Any] | None = None

    @property
    def name(self) -> str:
        return str(self.flow.name)

    @property
    def entrypoint(self) -> str:
        """Where any process with the package installed finds the flow."""
        return f"{self.flow.fn.__module__}.{self.flow.fn.__name__}"

    @property
    def tags(self) -> list[str]:
        return [TAG, self.direction]


DEPLOYED: tuple[Deployed, ...] = (
    Deployed(looking.check, LOOK),
    Deployed(looking.plan, LOOK),
    Deployed(looking.rehearse, LOOK),
    Deployed(deployments.rollout, one_at_a_time.FORWARD),
    Deployed(parity_watch.parity_watch, LOOK, cron="17 * * * *", parameters={"request": {
        "plan": "ai_analysis_job", "by": "parity watch", "reason": "the schedule"}}),
    Deployed(deployments.rollback, one_at_a_time.BACK),
    *(Deployed(getattr(deployments, f"rollback_{phase.value}"), one_at_a_time.BACK) for phase in Through),
)


def served() -> list[Any]:
    """Every deployment as Prefect's runner takes it."""
    from prefect.schedules import Cron  # noqa: PLC0415  # as the runner
    from prefect.types.entrypoint import EntrypointType  # noqa: PLC0415

    return [each.flow.to_deployment(name=each.name, tags=each.tags, parameters=each.parameters,
                                    schedules=[Cron(each.cron, timezone="UTC", active=False)] if each.cron else None,
                                    entrypoint_type=EntrypointType.MODULE_PATH) for each in DEPLOYED]


def serve() -> None:
    """Serve every deployment, to be triggered in the UI; ends with SIGTERM or Ctrl-C."""
    from prefect import serve as prefect_serve  # noqa: PLC0415  # pulls in the runner

    prefect_serve(*served())
