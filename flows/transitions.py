"""What became of a run or a gate, in the words that events and notifications are made of. Prefect-free."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from flows.visible import one_line
from steps.approvals import APPROVAL
from steps.cancellation import Cancelled
from steps.errors import ParityLost, ParityUnseen, RolloutError, WaitingForPerson
from steps.exact_look import WATCH
from steps.gate_words import calls
from steps.ledger import Event
from steps.parity_looks import CLEAN, CONDITIONS, FOUND, MET, UNSEEN
from steps.phase import Phase

GATE = "gate"
WAITING, OVER = "waiting", frozenset({"expired", "withdrawn"})
GATES = {outcome: outcome for outcome in (WAITING, "approved", "rejected", *OVER)}
PARITY = {CLEAN: "parity.clean", FOUND: "parity.lost", UNSEEN: "parity.unseen"}
BY_EXIT = {3: "refused", 4: "stopped", 5: "rolled-back", 6: "busy"}
SAID = {
    "phase.started": "has begun", "phase.ended": "is done", "phase.failed": "did not end", "completed": "is done",
    "taken-back": "was taken back, as somebody asked",
    "refused": "was refused", "stopped": "stopped", "failed": "failed", "rolled-back": "failed and was rolled back",
    "busy": "found the table busy", "cancelled": "was cancelled",
    "waiting": "waits", "approved": "was approved", "rejected": "was rejected", "expired": "waited in vain",
    "withdrawn": "is not asked any more",
    "parity.clean": "found both sides in step", "parity.lost": "found that parity is lost", "parity.unseen": "could not look",
    "gate.opened": "finds that cleanup's conditions hold",
}


@dataclass(frozen=True)
class Ending:
    """A transition: the event's name, what happened and what to do now, and what else is known."""

    name: str
    what: str = ""
    remedy: str = ""
    facts: dict[str, Any] = field(default_factory=dict)


def of_error(error: BaseException) -> Ending:
    """How *error* ends a run."""
    if isinstance(error, ParityLost):
        facts = {key: error.look[key] for key in ("rows_examined", "differing", "keys", "triggers", "drift") if key in error.look}
        name = PARITY[UNSEEN if isinstance(error, ParityUnseen) else FOUND]
        return Ending(name, f"{error.subject}: {error.reason}", error.remedy, facts | {"exit_code": error.exit_code})
    if isinstance(error, RolloutError):
        waits = isinstance(error, WaitingForPerson) or hasattr(error, GATE)
        name = "waiting" if waits else BY_EXIT.get(error.exit_code, "failed")
        return Ending(name, f"{error.subject}: {error.reason}", error.remedy, {"exit_code": error.exit_code})
    if isinstance(error, Cancelled):
        return Ending("cancelled", error.reason, error.remedy, {"exit_code": error.exit_code})
    return Ending("failed", f"a fault in the tool: {type(error).__name__}", "the same command continues; its log has the trace",
                  {"exit_code": 1})


def of_ledger(event: Event, plan: str) -> Ending | None:
    """What an event of the ledger means for those who are notified; None for most. A look that found something says so as it ends."""
    detail = event.detail or {}
    if event.step == GATE and event.outcome in GATES:
        return _of_gate(event, detail, plan)
    if event.step == WATCH and event.outcome == CLEAN:
        return Ending(PARITY[CLEAN], f"{event.rows} rows looked at", "", {"rows_examined": event.rows})
    if event.step == CONDITIONS and event.outcome == MET:
        return Ending("gate.opened", "verify is old enough, parity clean, nobody seen who writes the old side",
                      f"cleanup may be approved: `rollout run {plan} --through cleanup` asks")
    return None


def _of_gate(event: Event, detail: dict[str, Any], plan: str) -> Ending | None:
    """Who waits for what, or who answered; None where the same is only asked once more."""
    reasons, answer = list(detail.get("reasons") or []), f"by {detail.get('by')}: {detail.get('why')}"
    if event.outcome != WAITING:
        return Ending(GATES[event.outcome], str(detail.get("why")) if event.outcome in OVER else answer, "", {"gate": event.phase})
    if not reasons:
        return None
    opens, unmet = detail.get("opens_at"), [f"not met: {one}" for one in detail.get("unmet") or []]
    call = calls(Phase(event.phase), APPROVAL, plan, unready=bool(detail.get("unready")))[0]
    answered = f"`{call}`, or reject, or answer in the Prefect UI"
    later = f"it opens at {opens}: a suspended run goes on by itself then, or by Resume in the Prefect UI; else the same command does"
    remedy = answered if detail.get("needs") == APPROVAL else later if opens else "remove the cause"
    unmet = [] if detail.get("unready") else unmet  # a reason names them
    return Ending(GATES[WAITING], "; ".join(reasons + unmet), remedy, {"gate": event.phase})


def sentence(name: str, facts: dict[str, Any]) -> str:
    """All a person needs to know in one text: which table and phase, what, what to do, who and why."""
    phase = f", {facts['phase']}" if facts["phase"] else ""
    text = f"{facts['flow']} of table {facts['table']} (plan {facts['plan']}){phase}: {SAID.get(name, name)}"
    text += f": {facts['what']}" if facts["what"] else ""
    text += f". What to do: {facts['remedy']}" if facts["remedy"] else ""
    return one_line(f"{text}. By {facts['by']}: {facts['reason']}")
