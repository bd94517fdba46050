"""
Gates on record: who asked that a phase may begin, who said yes or no, until when that counts, and whether it was used.

All of it are events of the ledger, only ever appended, and what they come to is read from them in their order: an answer to what
nobody asked, to what was answered or used, or that comes too late, changes nothing.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from steps import clocks
from steps.clocks import Moment
from steps.ledger import Event, Ledger
from steps.masking import masked
from steps.mysql import VALUE
from steps.phase import STANDS, Phase
from steps.rollout import Rollout

STEP, SOAKING = "gate", "soaking"
WAITING, APPROVED, REJECTED, EXPIRED = "waiting", "approved", "rejected", "expired"
OPENED, RESUMED, NOT_COUNTED, TOLD = "opened", "resumed", "not counted", "told"
APPROVAL, TIME = "approval", "time"
UNREADY = "cleanup-unready"
LATE, REFUSED, WITHDRAWN = "too late", "refused", "withdrawn"
FOLLOWS = {APPROVED: {WAITING}, REJECTED: {WAITING, APPROVED}, EXPIRED: {WAITING, APPROVED}, RESUMED: {WAITING}, WITHDRAWN: {WAITING},
           NOT_COUNTED: {WAITING}, OPENED: {APPROVED, WAITING}, TOLD: {REJECTED}}


@dataclass
class Gate:
    """One asking: what for, by whom, and what became of it. *state* is the last outcome that counted."""

    id: str
    phase: Phase
    run_id: str
    since: str
    detail: dict[str, Any]
    state: str = WAITING
    answer: dict[str, Any] = field(default_factory=dict)
    answered_at: str | None = None
    askers: list[str] = field(default_factory=list)
    flow_runs: list[str] = field(default_factory=list)
    number: int = 0

    def asked(self, detail: dict[str, Any]) -> None:
        """Somebody asks, perhaps once more, perhaps in a flow run that waits for the answer."""
        self.askers.append(str(detail.get("by")))
        self.flow_runs += [str(detail["flow_run"])] if detail.get("flow_run") else []

    @property
    def needs(self) -> str:
        return str(self.detail.get("needs"))

    @property
    def until(self) -> Moment:
        """Until then an answer counts; an approval, until then it must be used."""
        known = self.answer if self.state == APPROVED else self.detail
        return clocks.recorded(known["until"], known.get("until_by_tool_clock"))

    def over(self, now: Moment) -> bool:
        """Whether either clock says that it came too late."""
        return now.server > self.until.server or now.tool > self.until.tool


def read(ledger: Ledger) -> list[Gate]:
    """Every gate of this plan on this table, in the order in which they were asked; one read."""
    found: dict[str, Gate] = {}
    for number, run_id, at, phase, outcome, detail in rows(ledger):
        gate = found.get(str(detail.get("gate")))
        if gate is None:
            if outcome in (WAITING, APPROVED, OPENED):  # a person who approves himself was not asked before
                gate = found[str(detail["gate"])] = Gate(str(detail["gate"]), phase, run_id, at, detail, outcome, detail, at, number=number)
                gate.asked(detail)
            continue
        if outcome == WAITING and gate.state == WAITING:
            gate.asked(detail)
        elif gate.state in FOLLOWS.get(outcome, set()):
            gate.state, gate.answered_at, gate.number = outcome, at, number
            gate.answer = {**detail, **gate.answer, "row": detail.get("row"), "approved": detail.get("approved")} if outcome == OPENED \
                else detail
    return list(found.values())


def rows(ledger: Ledger) -> Iterable[tuple[int, str, str, Phase, str, dict[str, Any]]]:
    for number, run_id, at, phase, outcome, detail in ledger.read(
            f"SELECT id, run_id, at, phase, outcome, detail FROM {ledger.table('event')} WHERE table_schema = {VALUE} AND table_name = "
            f"{VALUE} AND plan_id = {VALUE} AND step = {VALUE} ORDER BY id", *ledger.key, STEP):
        told = json.loads(detail) if isinstance(detail, str) else dict(detail)
        if told.get("gate"):
            yield int(number), str(run_id), at.isoformat(timespec="milliseconds") + "Z", Phase(phase), str(outcome), told


def latest(gates: list[Gate], phase: Phase, needs: str | None = None) -> Gate | None:
    """The gate of *phase* that something happened to last, of one kind where *needs* says so."""
    return max((gate for gate in gates if gate.phase is phase and (needs is None or gate.needs == needs)), key=lambda gate: gate.number,
               default=None)


def open_now(rollout: Rollout) -> list[Gate]:
    """Those that wait for an answer now, or have a yes that was not used yet: the last one of each phase that has not begun otherwise."""
    return _undecided(rollout, over=False)


def overdue(rollout: Rollout) -> list[Gate]:
    """The same of those whose time has run out, and of which nothing on record says so yet."""
    return _undecided(rollout, over=True)


def _undecided(rollout: Rollout, *, over: bool) -> list[Gate]:
    gates = read(rollout.ledger)
    if not gates:
        return []
    now, phases = clocks.now(rollout.session), rollout.ledger.phases()
    last = [latest(gates, phase) for phase in Phase if phases.get(phase, {}).get("state") not in STANDS]
    return [gate for gate in last if gate and gate.state in (WAITING, APPROVED) and gate.over(now) is over]


def flow_run(ledger: Ledger) -> str | None:
    """Prefect's name for the run at work, where it has one."""
    rows = ledger.read(f"SELECT options->>'$.flow_run' FROM {ledger.table('run')} WHERE run_id = {VALUE}", ledger.run_id)
    return str(rows[0][0]) if rows and rows[0][0] else None


def binding(rollout: Rollout, phase: Phase) -> dict[str, Any]:
    """What an approval is given for: this plan, from this stair, with these settings. Any other needs another approval."""
    settings = rollout.plan.model_dump(mode="json", exclude={"folder", "given", "table_as_written"})
    text = json.dumps(masked(settings), sort_keys=True)
    return {"identity": rollout.plan.identity_hash(), "stair": rollout.position(), "phase": phase.value,
            "settings": hashlib.sha256(text.encode()).hexdigest()}


def until(rollout: Rollout, from_then: Moment) -> dict[str, str]:
    """The end of `gates.expires_s` from a moment on, as events keep it."""
    ends = from_then.plus(rollout.plan.gates.expires_s)
    return {"until": ends.server.isoformat(timespec="milliseconds"), "until_by_tool_clock": ends.by_tool}


def later(now: Moment, opens_at: str | datetime | None) -> Moment:
    """The later of *now* and when time opens the gate: from then on `gates.expires_s` counts, for the question and for an early yes."""
    opens = datetime.fromisoformat(opens_at) if isinstance(opens_at, str) else opens_at
    return Moment(max(now.server, opens), max(now.tool, opens)) if opens else now


def new_id() -> str:
    return uuid.uuid4().hex


def record(rollout: Rollout, phase: Phase, outcome: str, **detail: Any) -> str:
    """Append to the trail, and tell whoever listens; the gate's id."""
    detail = {"gate": new_id(), **detail}
    rollout.record(Event(phase.value, STEP, outcome, detail=detail))
    return str(detail["gate"])


def same_person(one: str, other: str) -> bool:
    """Names are what people say of themselves; case and blanks make nobody another."""
    return " ".join(one.split()).casefold() == " ".join(other.split()).casefold()
