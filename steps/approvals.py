"""
Gates on record: who asked that a phase may begin, who said yes or no, until when that counts, and whether it was used.

All of it are events of the ledger, only ever appended, and what they come to is read from them in their order: an answer to what
nobody asked, to what was answered or used, or that comes too late, changes nothing.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from steps import clocks
from steps.clocks import Moment
from steps.errors import Refused
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
LATE = "too late"
FOLLOWS = {APPROVED: {WAITING}, REJECTED: {WAITING, APPROVED}, EXPIRED: {WAITING, APPROVED}, RESUMED: {WAITING},
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
    for number, run_id, at, phase, outcome, detail in _rows(ledger):
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


def _rows(ledger: Ledger) -> Iterable[tuple[int, str, str, Phase, str, dict[str, Any]]]:
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
    gates = read(rollout.ledger)
    if not gates:
        return []
    now, phases = clocks.now(rollout.session), rollout.ledger.phases()
    last = [latest(gates, phase) for phase in Phase if phases.get(phase, {}).get("state") not in STANDS]
    return [gate for gate in last if gate and gate.state in (WAITING, APPROVED) and not gate.over(now)]


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


def too_late(rollout: Rollout, gate: Gate, by: str, why: str) -> None:
    """Record an answer that does not count any more; the same of the same person once."""
    known = [(told.get("by"), told.get("why")) for _, _, _, _, outcome, told in _rows(rollout.ledger)
             if outcome == NOT_COUNTED and told["gate"] == gate.id]
    if (by, why) not in known:
        record(rollout, gate.phase, NOT_COUNTED, gate=gate.id, by=by, why=why)


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


def refuse_approver(rules: dict[str, Any], askers: list[str], by: str) -> None:
    """
    Raises:
        Refused: *by* is not among the plan's approvers, or asked himself where four eyes are wanted.
    """
    names = rules.get("approvers") or []
    if names and not any(same_person(by, name) for name in names):
        raise Refused(f"approval by {by}", f"does not count: gates.approvers are {', '.join(names)}", "one of them has to approve")
    if rules.get("four_eyes") and any(same_person(by, asker) for asker in askers):
        raise Refused(f"approval by {by}", "does not count: gates.four_eyes wants somebody else than who asked",
                      "somebody else has to approve")


@dataclass(frozen=True)
class Answered:
    """What an answer came to: its *outcome* (`approved`, `rejected`, `too late` or `nothing to do`), and *said* in words."""

    outcome: str
    said: str
    gate: Gate


def answer(rollout: Rollout, phase: Phase, by: str, reason: str, *, approve: bool, unmet: Callable[[Rollout], list[str]],
           accepted: frozenset[str] = frozenset(), gate_id: str | None = None) -> Answered:
    """
    Answer what waits for *phase*, or *gate_id* alone. The same answer again, or one that comes too late to matter, changes nothing and
    says so; a yes that was not used yet can be taken back.

    Raises:
        Refused: nobody asked, it was asked too long ago, *by* may not, or *unmet* conditions of cleanup are left and `cleanup-unready`
            is not accepted. Nothing was done.
    """
    ledger, now = rollout.ledger, clocks.now(rollout.session)
    gate = latest(read(ledger), phase, APPROVAL)
    again = f"`rollout run {rollout.plan.called}{' --through cleanup' if phase is Phase.CLEANUP else ''}` asks"
    if gate is None:
        raise Refused(f"gate of {phase.value}", "nobody has asked for this phase yet", f"{again}; nothing was done")
    if gate_id and gate.id != gate_id:
        raise Refused(f"gate of {phase.value}", "was asked anew since", "answer what is asked now; nothing was done")
    if gate.state in (OPENED, REJECTED, TOLD) or (gate.state == APPROVED and approve and not gate.over(now)):
        if approve and gate.state in (REJECTED, TOLD):
            raise Refused(f"gate of {phase.value}", f"was rejected: {_by(gate)}", f"{again} anew; nothing was done")
        used = "was approved and used: the phase has begun" if gate.state == OPENED else f"is {gate.state} already"
        said = f"gate of {phase.value} {used}{': ' + _by(gate) if _by(gate) else ''}"
        if gate.state == OPENED and not approve:
            too_late(rollout, gate, by, f"{reason}; too late: {said}")
            return Answered(LATE, f"{said}; your no is on record, and takes nothing back", gate)
        return Answered("nothing to do", said, gate)
    if gate.state not in (WAITING, APPROVED) or gate.over(now):
        raise Refused(f"gate of {phase.value}", f"waits no longer: it was asked at {gate.since} and held until "
                      f"{gate.until.shown}{clocks.difference(now)}", f"{again} anew; nothing was done")
    ledger.run_id = gate.run_id  # the audit trail shows the answer where it was asked
    if not approve:
        record(rollout, phase, REJECTED, gate=gate.id, by=by, why=reason)
        return Answered(REJECTED, f"{phase.value} is rejected; {again} anew", _now(ledger, gate))
    refuse_approver(gate.detail, gate.askers, by)
    missing = unmet(rollout) if phase is Phase.CLEANUP else []
    if missing and UNREADY not in accepted:
        raise Refused("gate of cleanup", f"conditions are not met: {'; '.join(missing)}", f"wait for them, or approve all the same with "
                      f"--accept {UNREADY}; nothing was done")
    ends = until(rollout, later(now, gate.detail.get("opens_at")))
    record(rollout, phase, APPROVED, gate=gate.id, by=by, why=reason, **ends, **({"unmet": missing} if missing else {}))
    held = _now(ledger, gate)
    return Answered(APPROVED, f"{phase.value} is approved until {held.until.shown}", held)


def _now(ledger: Ledger, gate: Gate) -> Gate:
    return next(one for one in read(ledger) if one.id == gate.id)


def _by(gate: Gate) -> str:
    return f"by {gate.answer['by']} at {gate.answered_at}: {gate.answer.get('why', '')}" if gate.answer.get("by") else ""
