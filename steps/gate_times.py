"""What a phase waits for by time alone: change windows, the soak of the phase before it, cleanup's age. Both clocks have to say so."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from steps import cleanup_ready, clocks, parity_looks, windows
from steps.approvals import SOAKING, STEP
from steps.clocks import Moment
from steps.ledger import Event
from steps.mysql import VALUE
from steps.phase import FORWARD, Phase
from steps.rollout import Rollout


@dataclass(frozen=True)
class Wait:
    """One reason of time: until when, where time alone ends it."""

    reason: str
    due: datetime | None = None
    ends: bool = True


def soaks(rollout: Rollout, phase: Phase) -> bool:
    """Whether the plan wants the phase before *phase* to have stood for a time."""
    before = FORWARD[FORWARD.index(phase) - 1] if phase is not FORWARD[0] else None
    return before is not None and bool(rollout.plan.gates.soak.get(before))


def of(rollout: Rollout, phase: Phase, now: Moment) -> list[Wait]:
    """Everything of time that *phase* waits for, windows last: they have to be open now, and when all the rest is over."""
    found = _soak(rollout, phase, now) if soaks(rollout, phase) else []
    young = cleanup_ready.too_young(rollout, now) if phase is Phase.CLEANUP else None
    if young:
        found.append(Wait(young.reason, max(young.due.server, young.due.tool)))
    holding = rollout.plan.gates.windows_of(phase)
    earliest = max([now.server, now.tool, *(wait.due for wait in found if wait.due)])
    is_open = any(each.window.is_open(now.server) and each.window.is_open(now.tool) for each in holding)
    if holding and not (is_open and any(each.window.is_open(earliest) for each in holding)):
        openings = [(opening, each) for each in holding if (opening := each.window.opens_at(earliest))]
        first = min(openings, key=lambda one: one[0], default=None)
        zone = (first[1] if first else holding[0]).window.zone
        opens = f"it opens at {windows.shown(first[0], zone)}" if first else "it does not open again"
        closed = f"{windows.shown(earliest, zone)}, when the rest is over" if is_open else \
            f"{windows.shown(now.server, zone)}{clocks.difference(now)}"
        found.append(Wait(f"the change window ({' or '.join(each.told for each in holding)}) is closed at {closed}; {opens}",
                          first[0] if first else None, ends=first is not None))
    return found


def opens_at(waits: list[Wait]) -> datetime | None:
    """When time alone ends all of *waits*; None where it does not, or there are none."""
    return max((wait.due for wait in waits if wait.due), default=None) if all(wait.ends for wait in waits) else None


def _soak(rollout: Rollout, phase: Phase, now: Moment) -> list[Wait]:
    before = FORWARD[FORWARD.index(phase) - 1]
    seconds, row = rollout.plan.gates.soak[before], rollout.ledger.phases().get(before)
    found = []
    if row:
        due = clocks.recorded(row["at"], _noted(rollout, before) or (row["detail"] or {}).get("by_tool_clock")).plus(seconds)
        if not due.has_come(now):
            found.append(Wait(f"{before.value} was done at {row['at']}, less than gates.soak.{before.value} = {seconds} s ago: until "
                              f"{due.shown}{clocks.difference(now)}", max(due.server, due.tool)))
    lost = parity_looks.alarm(rollout)
    if lost:
        found.append(Wait(f"the soak of {before.value} is not clean: {lost}", ends=False))
    return found


def _noted(rollout: Rollout, phase: Phase) -> str | None:
    """The tool's time when *phase* was done, if it was noted for the line that the ledger has of it now."""
    rows = rollout.ledger.read(
        f"SELECT detail->>'$.by_tool_clock' FROM {rollout.ledger.table('event')} WHERE table_schema = {VALUE} AND table_name = {VALUE} AND "
        f"plan_id = {VALUE} AND step = {VALUE} AND outcome = {VALUE} AND phase = {VALUE} AND detail->>'$.row' = {VALUE} ORDER BY id DESC "
        f"LIMIT 1", *rollout.ledger.key, STEP, SOAKING, phase.value, ledger_line(rollout, phase))
    return str(rows[0][0]) if rows else None


def ended(rollout: Rollout, phase: Phase) -> None:
    """Once *phase* is done its soak begins; so that a stepped clock cannot shorten it, both clocks are noted."""
    seconds = rollout.plan.gates.soak.get(phase)
    if seconds and rollout.ledger.phase_state(phase) == "done":
        rollout.record(Event(phase.value, STEP, SOAKING, detail={
            "soak_s": seconds, "row": ledger_line(rollout, phase), "by_tool_clock": clocks.now(rollout.session).by_tool}))


def ledger_line(rollout: Rollout, phase: Phase) -> str:
    """What the ledger has of *phase*, in one word, so that a change of it is seen."""
    row = rollout.ledger.phases().get(phase)
    return f"{row['state']} {row['at']}" if row else "-"
