"""
Gates on record: who asked that a phase may begin, who said yes or no, until when that counts, and whether it was used.

All of it are events of the ledger, only ever appended, and what they come to is read from them in their order: an answer to what
nobody asked, to what was answered or used, or that comes too late, changes nothing.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from steps import clocks, ledger_lock
from steps.clocks import Moment
from steps.errors import Busy
from steps.ledger import Event, Ledger
from steps.mysql import VALUE
from steps.ownership import lock_name
from steps.phase import STANDS, Phase
from steps.rollout import Rollout

STEP, SOAKING = "gate", "soaking"
WAITING, APPROVED, REJECTED, EXPIRED = "waiting", "approved", "rejected", "expired"
OPENED, RESUMED, NOT_COUNTED, TOLD = "opened", "resumed", "not counted", "told"
APPROVAL, TIME = "approval", "time"
UNREADY, HIMSELF = "cleanup-unready", "cleanup"
LATE, REFUSED, WITHDRAWN = "too late", "refused", "withdrawn"
ALIVE, UNDECIDED, CLOSED = (WAITING, APPROVED, OPENED), (WAITING, APPROVED), (REJECTED, TOLD, EXPIRED, WITHDRAWN)
FOLLOWS = {APPROVED: {WAITING}, REJECTED: {*ALIVE}, EXPIRED: {*ALIVE}, RESUMED: {WAITING}, WITHDRAWN: {*ALIVE}, NOT_COUNTED: {WAITING},
           OPENED: {*ALIVE}, TOLD: {REJECTED, TOLD}}
ALONE_WITHIN_S = 20


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
    number: int = 0
    asked_number: int = 0
    """The ledger's number of the event that asked, as *number* is that of what happened last."""
    told: list[str] = field(default_factory=list)
    """Flow runs that ended with a rejection."""
    opened_by: str = ""
    """The run that it let pass last."""
    refused: list[str] = field(default_factory=list)
    """Who answered in vain, and why that did not count."""
    noes: list[tuple[int, str]] = field(default_factory=list)
    """Noes that came too late to count, with the numbers of their events: who said them, and why."""
    asked_by: dict[str, int] = field(default_factory=dict)
    """The number of the event with which a flow run asked."""

    def asked(self, detail: dict[str, Any], number: int) -> None:
        """Somebody asks, perhaps once more, perhaps in a flow run that waits for the answer."""
        self.askers.append(str(detail.get("by")))
        if detail.get("flow_run"):
            self.asked_by[str(detail["flow_run"])] = number

    @property
    def flow_runs(self) -> list[str]:
        """Those that asked, in their order."""
        return list(self.asked_by)

    @property
    def needs(self) -> str:
        return str(self.detail.get("needs") or TIME)  # one that was passed unasked waited for nobody

    @property
    def until(self) -> Moment:
        """Until then an answer counts; an approval, until then it must be used."""
        known = self.answer if self.state in (APPROVED, OPENED) and "until" in self.answer else self.detail
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
                gate = found[str(detail["gate"])] = Gate(str(detail["gate"]), phase, run_id, at, detail, outcome, detail, at, number=number,
                                                          asked_number=number)
                gate.asked(detail, number)
            continue
        if outcome == WAITING and gate.state == WAITING:
            gate.asked(detail, number)
            continue
        gate.refused += [f"{detail.get('by')}: {detail.get('why')}"] if outcome in (REFUSED, NOT_COUNTED) else []
        gate.noes += [(number, gate.refused[-1])] if outcome == NOT_COUNTED and detail.get("decision") == "reject" else []
        gate.told += [str(detail.get("flow_run"))] if outcome == TOLD else []
        if gate.state in FOLLOWS.get(outcome, set()):
            gate.state, gate.number = outcome, number
            gate.opened_by = run_id if outcome == OPENED else gate.opened_by
            if outcome == TOLD:
                continue
            gate.answered_at = gate.answered_at if outcome == OPENED and gate.answered_at else at
            gate.answer = {**detail, **gate.answer, "approved": detail.get("approved")} if outcome == OPENED \
                else detail
    return list(found.values())


def rows(ledger: Ledger) -> Iterable[tuple[int, str, str, Phase, str, dict[str, Any]]]:
    for number, run_id, at, phase, outcome, detail in ledger.read(
            f"SELECT id, run_id, at, phase, outcome, detail FROM {ledger.table('event')} WHERE table_schema = {VALUE} AND table_name = "
            f"{VALUE} AND plan_id = {VALUE} AND step = {VALUE} ORDER BY id", *ledger.key, STEP):
        told = json.loads(detail) if isinstance(detail, str) else dict(detail)
        if told.get("gate"):
            yield int(number), str(run_id), at.isoformat(timespec="milliseconds") + "Z", Phase(phase), str(outcome), told


def asked_by(ledger: Ledger, flow_run: str) -> list[Gate]:
    """The gates at which *flow_run* asked, in the order in which it did."""
    return sorted((gate for gate in read(ledger) if flow_run in gate.asked_by), key=lambda gate: gate.asked_by[flow_run])


def by_id(ledger: Ledger) -> dict[str, Gate]:
    """Every gate by its id, as it is now."""
    return {gate.id: gate for gate in read(ledger)}


def latest(gates: list[Gate], phase: Phase, needs: str | None = None) -> Gate | None:
    """The gate of *phase* that something happened to last, of one kind where *needs* says so."""
    return max((gate for gate in gates if gate.phase is phase and (needs is None or gate.needs == needs)), key=lambda gate: gate.number,
               default=None)


def open_now(rollout: Rollout) -> list[Gate]:
    """Those that wait for an answer now, or have a yes that was not used yet: the last one of each phase that has not begun otherwise."""
    now = clocks.now(rollout.session)
    return [gate for gate in undecided(rollout) if not gate.over(now)]


def overdue(rollout: Rollout) -> list[Gate]:
    """The same of those whose time has run out, and of which nothing on record says so yet."""
    now = clocks.now(rollout.session)
    return [gate for gate in undecided(rollout) if gate.over(now)]


def undecided(rollout: Rollout) -> list[Gate]:
    """Those of phases that have not begun that wait, or have a yes that was not used, whether in time or not."""
    return [gate for gate in last_of_each(rollout) if gate.state in UNDECIDED]


def last_of_each(rollout: Rollout) -> list[Gate]:
    """Of each phase that has not begun the gate that something happened to last."""
    gates = read(rollout.ledger)
    phases = rollout.ledger.phases() if gates else {}
    last = [latest(gates, phase) for phase in Phase if phases.get(phase, {}).get("state") not in STANDS]
    return [gate for gate in last if gate]


def alive(rollout: Rollout) -> list[Gate]:
    """
    Every question that waits, and every yes that was not used, of phases that have not begun: also where a later question stands, but not
    where the phase has gone past it since.
    """
    phases, gates = rollout.ledger.phases(), read(rollout.ledger)
    passed = {phase: max((gate.number for gate in gates if gate.phase is phase and gate.state == OPENED), default=0) for phase in Phase}
    return [gate for gate in gates if gate.state in UNDECIDED and gate.asked_number > passed[gate.phase]
            and phases.get(gate.phase, {}).get("state") not in STANDS]


def begun(rollout: Rollout, phase: Phase) -> bool:
    """Whether *phase* has changed something, or a person was asked to put V1 out for it: from then on no gate of it counts any more."""
    state = rollout.ledger.phase_state(phase)
    return state in STANDS or (state == "waiting" and phase is not Phase.CLEANUP)


def used(rollout: Rollout, gate: Gate) -> bool:
    """Whether it is too late to take the yes of *gate* back: its phase has begun, or the run that it let pass is at work."""
    if gate.state != OPENED or begun(rollout, gate.phase):
        return gate.state == OPENED
    held = rollout.session.value(f"SELECT IS_USED_LOCK({VALUE}) IS NOT NULL", lock_name(rollout.schema, rollout.table))
    return bool(held) and any(run["run_id"] == gate.opened_by and run["ended_at"] is None for run in rollout.ledger.runs())


def went_back_since(rollout: Rollout, number: int) -> bool:
    """Whether something of the rollout was taken back after the event of that *number*."""
    back = rollout.ledger.read(f"SELECT MAX(id) FROM {rollout.ledger.table('event')} WHERE table_schema = {VALUE} AND table_name = {VALUE} "
                               f"AND plan_id = {VALUE} AND direction = 'back'", *rollout.ledger.key)
    return bool(back and back[0][0] is not None and int(back[0][0]) > number)


def alone(rollout: Rollout) -> AbstractContextManager[None]:
    """
    Read what is on record and append to it without anybody's answer or beginning in between.

    Raises:
        Busy: others do so for longer than :data:`ALONE_WITHIN_S`.
    """
    busy = Busy(f"gates of table {rollout.table}", "are answered or passed by somebody else", "run the same command again; nothing was "
                "decided")
    return ledger_lock.alone(rollout.ledger, "gate", busy, ALONE_WITHIN_S)


def flow_run(ledger: Ledger) -> str | None:
    """Prefect's name for the run at work, where it has one."""
    rows = ledger.read(f"SELECT options->>'$.flow_run' FROM {ledger.table('run')} WHERE run_id = {VALUE}", ledger.run_id)
    return str(rows[0][0]) if rows and rows[0][0] else None


def until(rollout: Rollout, from_then: Moment, expires_s: int | None = None) -> dict[str, str]:
    """The end of `gates.expires_s` from a moment on, as events keep it; *expires_s* is the asker's, where somebody else answers."""
    ends = from_then.plus(expires_s or rollout.plan.gates.expires_s)
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
