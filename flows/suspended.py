"""Suspended flow runs, told from outside that they may go on. Best effort: the ledger has the answer already, and decides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import structlog

from flows import api, cockpit

cockpit.prepare()

from prefect.client.orchestration import SyncPrefectClient  # noqa: E402  # only after the settings above
from prefect.client.schemas.objects import State  # noqa: E402
from prefect.exceptions import ObjectNotFound  # noqa: E402

WITHIN_S = 10.0
log: structlog.stdlib.BoundLogger = structlog.get_logger("rollout")


@dataclass
class Resumed:
    """Which of the flow runs go on now, which wait for something else, and why another one that is suspended could not be told."""

    runs: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)
    trouble: str = ""


def resume(flow_runs: list[str], answer: Callable[[str], dict[str, Any] | None]) -> Resumed:
    """
    Resume those of *flow_runs* that are suspended with what *answer* has to say to the key under which they wait, a gate's id for one;
    None, and they wait for something else. Safe to repeat; without a configured API there are none.
    """
    found = Resumed()
    if not api.address():
        return found
    found.trouble = api.why_not() or ""
    if found.trouble:
        return found
    try:
        with api.client(WITHIN_S) as client:
            for name in flow_runs:
                state = _paused(client, name)
                if state is None:
                    continue
                said = answer(str(state.state_details.pause_key))
                if said is None:
                    found.elsewhere.append(name)
                    continue
                taken = client.resume_flow_run(UUID(name), run_input=said)
                if taken.status.value == "ACCEPT":
                    found.runs.append(name)
                else:
                    found.trouble = str(getattr(taken.details, "reason", taken.status.value))
    except Exception as trouble:  # noqa: BLE001  # whatever the cockpit's trouble is, it is told
        found.trouble = api.told(trouble)
    return found


def suspended(flow_run: str) -> bool:
    """Whether that flow run waits suspended now; no where the API cannot say."""
    if not api.address() or api.why_not():
        return False
    try:
        with api.client(WITHIN_S) as client:
            return _paused(client, flow_run) is not None
    except Exception as trouble:  # noqa: BLE001  # whatever the cockpit's trouble is, nobody can answer there
        log.warning("Prefect was not asked whether a run waits", flow_run=flow_run, reason=api.told(trouble))
        return False


def cancelled(flow_runs: list[str]) -> bool:
    """Whether all those flow runs ended since somebody cancelled them; no where the API cannot say."""
    if not api.address() or api.why_not():
        return False
    try:
        with api.client(WITHIN_S) as client:
            states = [client.read_flow_run(UUID(name)).state for name in flow_runs]
    except Exception as trouble:  # noqa: BLE001  # whatever the cockpit's trouble is, the question stays
        log.warning("Prefect was not asked whether runs were cancelled", reason=api.told(trouble))
        return False
    return all(state and state.is_cancelled() for state in states)


def _paused(client: SyncPrefectClient, flow_run: str) -> State[Any] | None:
    try:
        state = client.read_flow_run(UUID(flow_run)).state
    except ObjectNotFound:
        return None
    return state if state and state.is_paused() else None
