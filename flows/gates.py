"""
The typed pause: a run of a deployment that meets a closed gate, or needs a person's word, is suspended, and asks in the Prefect UI.

Everything is released and on record by then; the suspended run has no process and holds nothing. Resumed, its body starts from the
top, and hears first what was answered (:mod:`flows.hearing`); the ledger decides whether that counts, and the run meets its gate again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from flows import actions, cockpit, events, soak
from flows.gate_page import page
from flows.params import Request
from steps import clocks
from steps.approvals import APPROVAL
from steps.cancellation import Cancelled
from steps.errors import GateClosed, RolloutError, Stopped, WaitingForPerson
from steps.ledger import Event
from steps.meanwhile import CONFIRMATION
from steps.passes import Progress
from steps.phase import Phase
from steps.rollout import Rollout
from steps.target import Target

cockpit.prepare()

from prefect.context import FlowRunContext  # noqa: E402  # only after the settings above
from prefect.exceptions import Pause  # noqa: E402
from prefect.flow_runs import suspend_flow_run  # noqa: E402
from prefect.input import RunInput  # noqa: E402

from flows import asleep, hearing, visits  # noqa: E402
from flows.gate_forms import Confirmation, form_of, keys_of  # noqa: E402


@dataclass(frozen=True)
class Asked:
    """What a suspended run asks, under which key, for how long; and what to do with the answer."""

    key: str
    model: type[RunInput]
    timeout_s: int
    take: Callable[[Rollout, Any], None]


def in_deployment() -> bool:
    """Whether this is the run of a deployment, which alone can be suspended."""
    context = FlowRunContext.get()
    return bool(context and context.flow_run and context.flow_run.deployment_id)


def carried_out(request: Request, database: Target, confirm: Callable[[str], bool | str] | None, told: Callable[[Progress], None],
                flow_run: str | None, action: Callable[[Rollout], actions.Result]) -> actions.Result:
    """
    *action* at a desk of its own; in a deployment as often as there is an answer to go on with.

    Raises: what *action* raises, and
        Rejected: a person has said no, here or from the command line.
        Refused: what the run stood on was taken back while it was suspended.
        prefect.exceptions.Pause: the run is suspended.
    """
    if not in_deployment():
        with actions.desk(request, database, confirm, told) as rollout, events.telling(rollout):
            return action(rollout)
    words, here = dict[str, str](), list[Rollout]()
    while True:
        with actions.desk(request, database, lambda what: words.get(what) or _said_meanwhile(here[-1], what, words), told) as rollout:
            here.append(rollout)
            try:
                with events.telling(rollout):
                    return action(rollout)
            except (GateClosed, WaitingForPerson) as waiting:
                closed, asked = waiting, _asked(rollout, waiting, words, flow_run)
        if asked is None:
            raise closed
        answer = _suspended(asked, closed)
        with actions.desk(request, database) as rollout, events.telling(rollout):
            asked.take(rollout, answer)


def _suspended(asked: Asked, closed: Stopped) -> Any:
    """The answer; where there is none yet the process ends here, with nothing held. An API that is away ends the run as in a shell."""
    try:
        return suspend_flow_run(wait_for_input=asked.model, timeout=asked.timeout_s, key=asked.key)
    except Pause:
        asleep.tell()
        raise
    except (RolloutError, Cancelled):
        raise
    except Exception:  # noqa: BLE001  # whatever the cockpit's trouble is, the gate is closed and on record
        raise closed from None


def _asked(rollout: Rollout, closed: Stopped, words: dict[str, str], flow_run: str | None) -> Asked | None:
    if isinstance(closed, GateClosed):
        return _gate(rollout, closed, flow_run)
    if isinstance(closed, WaitingForPerson) and closed.question:
        return _question(rollout, closed, words)
    return None


def _gate(rollout: Rollout, closed: GateClosed, flow_run: str | None) -> Asked:
    phase, gate_id, needs, opens = Phase(closed.gate["phase"]), str(closed.gate["gate"]), closed.gate["needs"], closed.gate["opens_at"]
    until, now = clocks.recorded(closed.gate["until"], None).server, clocks.now(rollout.session)
    seconds, resumed = max(1, int((until - now.server).total_seconds())), ""
    if needs == APPROVAL:
        visits.schedule(gate_id, until, now)  # it says that nobody has answered
    else:
        soak.told(rollout)
        resumed = visits.schedule(gate_id, datetime.fromisoformat(opens), now) if opens else visits.NOBODY

    def take(desk: Rollout, answer: Any) -> None:
        if needs == APPROVAL:
            hearing.answered(desk, phase, gate_id, answer, flow_run)
        else:
            hearing.resumed(desk, phase, gate_id, answer.reason)

    form = form_of(phase, needs).with_initial_data(description=page(rollout, closed, resumed))
    return Asked(gate_id, form, seconds, take)


def _question(rollout: Rollout, waiting: WaitingForPerson, words: dict[str, str]) -> Asked:
    text = (f"# {waiting.question[0].upper()}{waiting.question[1:]}: is it so?\n\nTable `{rollout.schema}.{rollout.table}`, plan "
            f"`{rollout.plan.id}`\n\nDo it, look at it, then say so here. The same from a shell: {waiting.remedy}")

    def take(desk: Rollout, answer: Confirmation) -> None:
        _on_record(desk, waiting.question, answer, words)

    return Asked(_key(rollout, waiting.question), Confirmation.with_initial_data(description=text), rollout.plan.gates.expires_s, take)


def _key(rollout: Rollout, question: str) -> str:
    """One for each time that the same thing is asked: a word once given is used once."""
    answered = sum(event["step"] == CONFIRMATION for event in rollout.ledger.events())
    return hashlib.sha256(f"{answered} {question}".encode()).hexdigest()[:32]


def _said_meanwhile(rollout: Rollout, question: str, words: dict[str, str]) -> bool | str:
    """Who said yes to *question* while the run was suspended for it; on record by then. No where nobody did, or Prefect cannot say."""
    try:
        answer: Any = Confirmation.load(keys_of(_key(rollout, question)))
    except Exception:  # noqa: BLE001  # there is none, or Prefect does not say it: the run is suspended for it
        return False
    return _on_record(rollout, question, answer, words)


def _on_record(rollout: Rollout, question: str, answer: Confirmation, words: dict[str, str]) -> str:
    """A person's word, once, in the run that goes on with it; before a way back has begun, beside the runs. Returns who gave it."""
    rollout.record(Event(Phase.DEPLOY.value, CONFIRMATION, "confirmed", detail={
        "by": answer.confirmed_by, "note": answer.note, "question": question}))
    words[question] = answer.confirmed_by
    return answer.confirmed_by
