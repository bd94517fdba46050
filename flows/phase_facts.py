"""
What one phase came to in one run, in figures and in one sentence, from the ledger's events alone: for pages, charts and reports alike.

An event is a row of :meth:`steps.ledger.Ledger.events`. Prefect-free; looks at nothing but what it is given.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from flows import look_facts
from flows.states import UNTOLD
from steps import acknowledged, meanwhile, rungs, way_back_waits
from steps.parity_looks import AFTERWARDS
from steps.phase import Phase

Row = dict[str, Any]
BESIDE = frozenset({acknowledged.ACCEPTED, acknowledged.TOLD, UNTOLD})
LOST = "lost, begun again"
GATE, WAITS = "gate", "waits for a person"
ASIDE = frozenset({GATE, meanwhile.CONFIRMATION, way_back_waits.STEP, *AFTERWARDS})
PURPOSE = {
    "pre_deploy": "Give the table what the new application needs while the old one keeps working: columns, indexes, sync triggers, and "
                  "history filled.",
    "deploy": "Put the new application (V1) out beside the old one (V0).",
    "backfill": "Prove that no row is left to fill.",
    "verify": "Prove that every row, the schema, the triggers and the smoke queries are as planned.",
    "shadow_write": "Write both sides for every client, prove once more that they agree, and begin the soak.",
    "cleanup": "Take the old columns away, now that nobody uses them.",
    "watch": "Look whether both sides are still in step, who writes the old one, and whether cleanup may begin. Nothing is changed.",
}
WAY_BACK = {
    "pre_deploy": "Take the sync triggers off; what was added to the table stays, unless it was asked to go.",
    "deploy": "Put the old application (V0) back; sync stays, so V0 sees all that V1 wrote.",
    "backfill": "Count the closing pass as not made; filled values stay.",
    "verify": "Count verify as not made; nothing else is undone.",
    "shadow_write": "End the soak; sync stays, it belongs to pre_deploy.",
    "cleanup": "Bring the old columns back with their values and triggers, and V1 after them.",
}


@dataclass(frozen=True)
class Facts:
    """*result* is one sentence; *tries* counts holds and builds that were begun, *lost* those of them that had to be begun again."""

    phase: str
    direction: str
    purpose: str
    result: str
    ended: str
    began_at: str
    ended_at: str
    rows_changed: int | None
    rows_examined: int | None
    actual_s: float
    planned_s: float | None
    longest_hold_ms: float | None
    waited_for_gap_s: float
    paused_s: float
    tries: int
    lost: int

    @property
    def name(self) -> str:
        return phase_name(self.phase, self.direction)


def phase_name(phase: str, direction: str) -> str:
    """The phase as the run graph calls it."""
    if direction == "back":
        return f"rollback of {phase}"
    return Phase(phase).label if phase in set(Phase) else phase


def stretches(events: Sequence[Row]) -> list[list[Row]]:
    """Events of a run, cut where phase or direction change; what only stands beside the work belongs to the stretch it is in."""
    found: list[list[Row]] = []
    for event in events:
        if event["outcome"] in BESIDE or event["step"] in ASIDE:
            continue
        if not found or (found[-1][0]["phase"], found[-1][0]["direction"]) != (event["phase"], event["direction"]):
            found.append([])
        found[-1].append(event)
    return _joined(found)


def _joined(found: list[list[Row]]) -> list[list[Row]]:
    """One failed trigger is taken off inside its hold: such a small step the other way does not begin another phase."""
    kept: list[list[Row]] = []
    for stretch in found:
        before = kept[-1][0] if kept else None
        small = all(event["step"].startswith("trigger ") for event in stretch)
        if before and before["phase"] == stretch[0]["phase"] and (small or before["direction"] == stretch[0]["direction"]):
            kept[-1] += stretch
        else:
            kept.append(stretch)
    return kept


def went_back(run: dict[str, Any]) -> list[dict[str, str]]:
    """Which phases a run took back, when, and why: what failed, where a run forward went back, else what the person said who asked."""
    forward = run["verb"] == "run"
    why = str(run["outcome"] or "something failed, and the run did not live to say what") if forward else \
        f"{run['actor']} asked for it: {run['reason']}"
    return [{"phase": stretch[0]["phase"], "at": stretch[-1]["at"], "by": run["actor"],
             "why": str(_detail(stretch[-1]).get("why") or why) if forward else why}
            for stretch in stretches(run["events"]) if stretch[0]["direction"] == "back"]


def worked_s(events: Iterable[Row]) -> float:
    """Seconds that *events* took; a hold counts once, not with each of its statements, and a pass with its step."""
    some = list(events)
    held = any(event["step"].startswith("hold for") for event in some)
    total = 0.0
    for event in some:
        inside = (held and "algorithm" in (event["detail"] or {})) or event["step"].startswith(("trigger ", "pass ", "pace of pass "))
        if not inside and event["outcome"] not in BESIDE:
            total += (event["duration_ms"] or 0) / 1000
    return total


def of(phase: str, direction: str, events: Sequence[Row], planned_s: float | None = None, error: str = "") -> Facts:
    """The facts of one phase in one run. *error* is what ended it, where something did; an empty stretch had nothing to do."""
    holds = [event for event in events if event["step"].startswith("hold for")]
    held = [float(_detail(event)["held_ms"]) for event in holds if "held_ms" in _detail(event)]
    lost = sum(1 for event in events if event["outcome"] == LOST)
    builds = sum(1 for event in events if not holds and "algorithm" in _detail(event))
    changed, examined = _rows(events)
    ended = _ended(events, error)
    purpose = (WAY_BACK if direction == "back" else PURPOSE).get(phase, "")
    began_at, ended_at = (events[0]["at"], events[-1]["at"]) if events else ("", "")
    return Facts(phase, direction, purpose, _sentence(phase, direction, events, ended, error), ended, began_at, ended_at, changed, examined,
                 round(worked_s(events), 2), planned_s if direction == "forward" else None, max(held) if held else None,
                 round(sum(float(_detail(event).get("waited_for_gap_s", 0)) for event in holds), 2),
                 round(sum((event["duration_ms"] or 0) / 1000 for event in events
                           if event["step"].startswith("pass ") and event["outcome"] == "resumed"), 2),
                 len(holds) + builds + lost, lost)


def _detail(event: Row) -> dict[str, Any]:
    return event["detail"] or {}


def _rows(events: Sequence[Row]) -> tuple[int | None, int | None]:
    """(changed, examined): by the step's own record; a look's rows were examined and none was changed."""
    changed: int | None = None
    examined: int | None = None
    for event in events:
        detail, rows = _detail(event), event["row_count"]
        if rows is None or event["step"].startswith("pace of pass "):
            continue
        if "examined" in detail or event["step"] in ("reconcile", "archive", "the new side decides", "restore from the archive"):
            changed, examined = (changed or 0) + int(rows), max(examined or 0, int(detail.get("examined") or rows))
        else:
            examined = max(examined or 0, int(rows))
    return changed, examined


def _ended(events: Sequence[Row], error: str) -> str:
    """In one word, or two."""
    last = events[-1]["outcome"] if events else ""
    look = look_facts.watched(events)
    if look and not error:
        return look_facts.ended(look)
    if last == "cancelled" or error.startswith("cancelled"):
        return "cancelled"
    if error.startswith(WAITS):
        return WAITS
    if last in ("fail", "inconclusive"):
        return str(last)
    return "failed" if error or last == "failed" else "done"


def _sentence(phase: str, direction: str, events: Sequence[Row], ended: str, error: str) -> str:
    look = look_facts.watched(events)
    if look and not error:
        return look_facts.sentence(look)
    if ended != "done":
        why = error or next((str(_detail(event)["error"]) for event in reversed(events) if "error" in _detail(event)), "") \
            or next((_verdict(event) for event in reversed(events) if "verdict" in _detail(event)), "")
        at = f" at “{events[-1]['step']}”" if events and ended == "failed" else ""
        why = why.removeprefix(f"{WAITS}: ")
        return {"failed": "Did not end well", "fail": "Failed", "inconclusive": "Could not be decided"}.get(ended, ended.capitalize()) \
            + at + (f": {why}" if why else ".")
    if not events:
        return "Done; nothing needed doing." if direction == "forward" else "Undone; only the record had to be changed."
    told = _told(phase, events) if direction == "forward" else ""
    return f"{'Done' if direction == 'forward' else 'Undone'}{': ' + told if told else ''}."


def _verdict(event: Row) -> str:
    detail = _detail(event)
    return "; ".join([*(detail.get("wrong") or []), *(detail.get("unclear") or [])])


def _told(phase: str, events: Sequence[Row]) -> str:
    by_step = {event["step"]: event for event in events}
    if phase == "pre_deploy":
        steps = len({event["step"] for event in events if "algorithm" in _detail(event)})
        triggers = len({event["step"] for event in events if event["step"].startswith("trigger ")})
        filled = by_step.get("first pass")
        parts = [f"{steps} schema step{'s' * (steps != 1)}"] if steps else []
        parts += [f"{triggers} sync triggers, proven by the canary"] if triggers else []
        parts += [f"{filled['row_count']} of {_detail(filled).get('examined', '?')} rows filled"] if filled else []
        return ", ".join(parts)
    if phase == "deploy":
        return ", ".join(_out(events, "V1"))
    if phase == "cleanup":
        return ", ".join(_gone(events))
    differ = next((event for event in reversed(events) if "differ" in _detail(event)), None)
    if phase in ("backfill", "shadow_write") and differ:
        count = _detail(differ)["differ"]
        return f"{differ['row_count']} rows looked at, {'all agree' if count == 0 else f'{count} differ'}"
    look = next((event for event in events if "verdict" in _detail(event)), None)
    if look:
        return f"{look['row_count']} rows looked at, {_detail(look).get('queries', 0)} smoke queries, nothing wrong"
    return ", ".join(dict.fromkeys(event["step"] for event in events if event["outcome"].startswith("done")))


def _out(events: Sequence[Row], generation: str) -> list[str]:
    """That *generation* is out and how, and what else was done on the way."""
    done = [event["step"] for event in events if event["outcome"].startswith("done")]
    found = [f"{generation} is out, by {step.partition(' for ')[0]}" for step in done if step.endswith(f" for {generation.lower()}")]
    found += [f"{generation} is out, as {_detail(event).get('deployed_by') or 'somebody'} says" for event in events
              if event["step"] == "confirmed by hand" and event["outcome"].startswith("done")]
    return found + [step for step in done if step == "health" or step.startswith("fleet: ")]


def _gone(events: Sequence[Row]) -> list[str]:
    """How far the old columns are gone."""
    done = {event["step"]: event for event in events if event["outcome"].startswith("done")}
    found = _out(events, "V2")
    found += ["sync has ended"] if any(step.startswith("trigger ") for step in done) else []
    dropped = rungs.DROP_COLUMNS in done
    if rungs.TOMBSTONES in done:
        found.append("the old columns are out of reach" + ("" if dropped else ", and can come back as they are until the drop"))
    found += [f"{done['archive']['row_count']} rows archived"] if "archive" in done else []
    return found + (["the old columns are dropped"] if dropped else [])
