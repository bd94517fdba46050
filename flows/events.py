"""
Every transition of a run as an event in Prefect's stream, for automations (`deploy/automations/`): table, phase, who, why, what to do.

Best effort, in order, from a thread of its own: an API that is away costs a run five seconds at its end, a slow one up to fifteen; what it
missed is in the ledger. Words of ours only, masked: never row contents, never a secret. The run's flow run is a related resource, and bears
table, plan and phase as labels, so that also who died without a word can be told.
"""

from __future__ import annotations

import contextvars
import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import uuid4

import structlog

from flows import api, cockpit
from flows.transitions import of_error, of_ledger, sentence
from steps.cancellation import Cancelled
from steps.exact_look import WATCH
from steps.ledger import Event
from steps.masking import mask, masked
from steps.rollout import Rollout

cockpit.prepare()

from httpx import HTTPStatusError  # noqa: E402  # only after the settings above
from prefect.client.orchestration import SyncPrefectClient  # noqa: E402
from prefect.context import FlowRunContext  # noqa: E402

TELL_WITHIN_S = 5.0
REQUEST_WITHIN_S = 5.0
AGAIN_AFTER_S = 1.0
MOST_WAITS = MOST_TRIES_OF_A_LABEL = 3
PREFIX = "mysql-rollout"
BACK = "rollback"
"""What the name of every flow that goes back begins with."""
LONGEST_WORDS = 2000
log: structlog.stdlib.BoundLogger = structlog.get_logger("rollout")


class Whose(NamedTuple):
    """The flow, its run and the run's name; no run for who tells from outside of one."""

    flow: str = PREFIX
    run: str = ""
    name: str = ""

    @classmethod
    def here(cls) -> Whose:
        context = FlowRunContext.get()
        if not context or not context.flow_run:
            return cls()
        return cls(str(context.flow.name if context.flow else ""), str(context.flow_run.id), str(context.flow_run.name))


class Stream:
    """What is told of one run, in its order: what the API does not take now is told again until the run has ended. `untold` says why."""

    def __init__(self) -> None:
        self.whose, self.untold, self.phase, self.told = Whose.here(), "", "", set[str]()
        self._waiting: queue.SimpleQueue[tuple[str, str, Any] | None] = queue.SimpleQueue()
        self._next: tuple[str, str, Any] | None = None
        self._heard = self._tries = 0
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def put(self, method: str, path: str, document: Any) -> None:
        """Never waits."""
        self._waiting.put((method, path, document))
        if self._thread is None:
            context = contextvars.copy_context()
            self._thread = threading.Thread(target=lambda: context.run(self._tell_all), name="rollout-events", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Wait until what was put is told, while the API takes something every :data:`TELL_WITHIN_S`, three times that at most."""
        if self._thread is None:
            return
        self._waiting.put(None)
        for _ in range(MOST_WAITS):
            heard = self._heard
            self._thread.join(TELL_WITHIN_S)
            if not self._thread.is_alive():
                return
            if heard == self._heard:
                break
        self._closed.set()
        self.untold = self.untold or f"no answer within {TELL_WITHIN_S:g} s"
        log.warning("Prefect could not be told of events", reason=self.untold)

    def _tell_all(self) -> None:
        while not self._closed.is_set():
            try:
                with api.client(REQUEST_WITHIN_S) as client:
                    while self._one_more():
                        self._tell(client)
            except Exception as trouble:  # noqa: BLE001  # whatever the cockpit's trouble is, it is not the database's
                self.untold = api.told(trouble)
                self._closed.wait(AGAIN_AFTER_S)
            else:
                return

    def _one_more(self) -> bool:
        if self._next is None:
            self._next = self._waiting.get()
        return self._next is not None and not self._closed.is_set()

    def _tell(self, client: SyncPrefectClient) -> None:
        method, path, document = self._next or ("", "", None)
        try:
            client.request(method, path, json=document)  # type: ignore[arg-type]  # one of httpx's own words
        except HTTPStatusError as refused:
            self._tries += 1
            if not refused.response.is_client_error and (method == "POST" or self._tries < MOST_TRIES_OF_A_LABEL):
                raise  # asked again; a label only so often, that it keeps no event back
            log.warning("Prefect did not take an event", reason=api.told(refused))  # and never will
        self._next, self.untold, self._heard, self._tries = None, "", self._heard + 1, 0


_stream: ContextVar[Stream | None] = ContextVar("rollout_events", default=None)


def emit(name: str, rollout: Rollout, **payload: Any) -> None:
    """
    Tell `mysql-rollout.NAME` of *rollout*'s table, with who and why; *payload* is what else is known, in words of ours.

    Inside :func:`telling` it returns at once; outside it waits until it is told, :data:`TELL_WITHIN_S` at most. Raises nothing.
    """
    inside = _stream.get()
    stream = inside or Stream()
    table, whose = f"{rollout.schema}.{rollout.table}", stream.whose
    facts = {"plan": rollout.plan.id, "table": table, "flow": whose.flow, "phase": stream.phase, "by": rollout.person.actor,
             "reason": rollout.person.reason, "run_id": rollout.ledger.run_id, "what": "", "remedy": ""} | payload
    facts = {key: _short(value) for key, value in facts.items()}
    facts["text"] = sentence(name, facts)
    related = [{"prefect.resource.id": f"{PREFIX}.plan.{rollout.plan.id}", "prefect.resource.role": "plan"}]
    if whose.run:
        related.append({"prefect.resource.id": f"prefect.flow-run.{whose.run}", "prefect.resource.role": "flow-run",
                        "prefect.resource.name": mask(whose.name)})
    stream.told.add(name)
    stream.put("POST", "/events", [{
        "id": str(uuid4()), "occurred": datetime.now(UTC).isoformat(), "event": f"{PREFIX}.{name}", "related": related, "payload": facts,
        "resource": {"prefect.resource.id": f"{PREFIX}.{table}", "prefect.resource.name": table}}])
    if inside is None:
        stream.close()


def _short(value: Any) -> Any:
    return mask(value)[:LONGEST_WORDS] if isinstance(value, str) else masked(value)


@contextmanager
def telling(rollout: Rollout) -> Iterator[None]:
    """Tell what the block does with *rollout*: what its ledger records of gates and watches, as it happens, and how the run ended."""
    stream = Stream()
    token = _stream.set(stream)

    def heard(event: Event) -> None:
        found = of_ledger(event, rollout.plan.called)
        if found:
            emit(found.name, rollout, phase=event.phase, what=found.what, remedy=found.remedy, **found.facts)

    rollout.listeners.append(heard)
    try:
        yield
        if stream.phase:
            emit("taken-back" if stream.whose.flow.startswith(BACK) else "completed", rollout)
    except (Exception, Cancelled) as error:
        ending = of_error(error)
        if not (ending.name in ("stopped", "waiting") and "waiting" in stream.told):  # a gate has said already what it waits for
            emit(ending.name, rollout, what=ending.what, remedy=ending.remedy, **ending.facts)
        raise
    finally:
        rollout.listeners.remove(heard)
        _stream.reset(token)
        stream.close()


@contextmanager
def phase_told(name: str, rollout: Rollout) -> Iterator[None]:
    """Tell that phase *name* begins and how it ends; the flow run bears it as a label. A look of the watch is no phase."""
    stream = _stream.get()
    if stream is None or name == WATCH:
        yield
        return
    stream.phase = name
    emit("phase.started", rollout)
    if stream.whose.run:
        labels = {"phase": name, "table": f"{rollout.schema}.{rollout.table}", "plan": rollout.plan.id}
        stream.put("PATCH", f"/flow_runs/{stream.whose.run}/labels", {f"{PREFIX}.{key}": mask(value) for key, value in labels.items()})
    try:
        yield
    except (Exception, Cancelled) as error:
        ending = of_error(error)
        emit("phase.failed", rollout, what=ending.what, remedy=ending.remedy, **ending.facts)
        raise
    emit("phase.ended", rollout)
