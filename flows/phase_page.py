"""One phase of one run on a page that a manager reads in half a minute; under it what an engineer wants. For Prefect's artifacts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from flows import phase_facts
from flows.markdown import Page, code, fenced, table, words
from flows.phase_facts import Facts, Row
from flows.visible import duration, number, when
from steps import acknowledged
from steps.approvals import OPENED
from steps.ledger import Event
from steps.mysql import shown
from steps.parity_looks import FOR_THE_NEXT
from steps.under_way import PROCESS_OF

NOT_SHOWN = frozenset({"intervals", FOR_THE_NEXT,  # drawn, or remembered for the next look
                       "gate", "binding", "row", "unready", "until_by_tool_clock"})  # what the tool itself knows a gate by
MOST_EXAMPLES = 5


@dataclass(frozen=True)
class Head:
    """What all pages of a run begin with, and the plan's `max_stall_ms`."""

    table: str
    plan: str
    who: str
    why: str
    stall_bound_ms: int
    called: str
    """The plan as a shell takes it."""
    because: str = ""
    """What failed before, where the phase goes back by itself."""


def as_row(event: Event) -> Row:
    """An event that was just heard of, as the ledger gives it back; its time is the ledger's."""
    return {"id": 0, "run_id": "", "at": "", "phase": event.phase, "direction": event.direction, "step": event.step,
            "outcome": event.outcome, "statement": shown(event.statement) if event.statement else None,
            "duration_ms": event.duration_ms, "row_count": event.rows, "detail": event.detail or {}}


def markdown(facts: Facts, head: Head, events: Sequence[Row], tried_before: int = 0, pictures: Sequence[str] = ()) -> str:
    """
    The page. *events* are those of this phase in this run, those beside the work among them.

    At most :data:`flows.markdown.LONGEST_BYTES`; what is left out is told, with the command that has it.
    """
    page = Page(f"rollout report {head.called}")
    page.add(f"# {words(facts.name)}", "", f"**{words(facts.result, 1500)}**", "", facts.purpose, "",
             f"Table {code(head.table)}, plan {code(head.plan)}  ", f"By **{words(head.who)}**: {words(head.why, 1500)}", "")
    if head.because:
        page.add(f"**Because:** {words(head.because, 2000)}", "")
    page.add(*table(("figure", "value"), figures(facts, head.stall_bound_ms, tried_before)))
    page.part("Decisions", _decisions(events), "decisions")
    page.part("Pictures", pictures, "pictures")
    work = [event for event in events if event["outcome"] not in phase_facts.BESIDE and event["step"] != phase_facts.GATE]
    page.part("Steps", table(("at (UTC)", "step", "outcome", "ms", "rows"), [
        (when(event["at"]), event["step"], event["outcome"], number(event["duration_ms"]), number(event["row_count"])) for event in work],
        numbers=frozenset({"ms", "rows"})) if work else [], "lines of the table of steps")
    page.part("Findings accepted", _accepted(events), "findings")
    page.part("Details", [f"- **{words(event['step'])}**: {words(detail_text(event['detail']), 2000)}" for event in work
                          if detail_text(event["detail"]) and not event["step"].startswith(PROCESS_OF)], "details")
    page.part("SQL and commands", [f"{words(event['step'])}:\n\n{fenced(event['statement'], language(event['statement']))}\n"
                                   for event in work if event["statement"]], "statements", last=True)
    return str(page)


def figures(facts: Facts, stall_bound_ms: int, tried_before: int = 0) -> list[tuple[str, str]]:
    """Name and value of each figure that the phase has."""
    planned = f"{number(facts.planned_s)} s planned" if facts.planned_s is not None else "no plan for it"
    found = [("ended", facts.ended), ("took", f"{duration(facts.actual_s)} ({planned})")]
    found += [("rows changed", number(facts.rows_changed))] if facts.rows_changed is not None else []
    found += [("rows looked at", number(facts.rows_examined))] if facts.rows_examined is not None else []
    if facts.longest_hold_ms is not None:
        found.append(("longest hold, clients wait meanwhile", f"{number(facts.longest_hold_ms)} ms of {number(stall_bound_ms)} ms allowed"))
    found += [("waited for a gap in the traffic", duration(facts.waited_for_gap_s))] if facts.waited_for_gap_s else []
    found += [("paused", duration(facts.paused_s))] if facts.paused_s else []
    lost = f", {facts.lost} of them lost and begun again" if facts.lost else ""
    found += [("holds and builds begun", number(facts.tries) + lost)] if facts.tries else []
    found += [("tries of this phase", f"{tried_before + 1}")] if tried_before else []
    return found


def went_back(run: dict[str, Any]) -> list[str]:
    """Lines of a page: what a run of the audit trail took back, and why."""
    return [f"- {words(back['phase'])}, because: {words(back['why'], 1500)}" for back in run.get("went_back", [])]


def language(statement: str) -> str:
    """What to colour it as: our statements begin with a word in capitals; commands of the plan do not."""
    first = statement.lstrip().partition(" ")[0]
    return "sql" if first.isupper() or statement.lstrip().startswith("--") else "sh"


def detail_text(detail: dict[str, Any] | None) -> str:
    """What an event has to say besides its figures, on one line; what is drawn elsewhere, or empty, is left out."""
    shown_as = {"statements": lambda value: f"{len(value)}"}
    return "; ".join(f"{key} = {shown_as.get(key, str)(value)}" for key, value in (detail or {}).items()
                     if key not in NOT_SHOWN and value not in (None, [], {}, ""))


def _accepted(events: Sequence[Row]) -> list[str]:
    rows = [(event["step"].removeprefix("accepted: "), (event["detail"] or {}).get("by"), (event["detail"] or {}).get("subject"),
             (event["detail"] or {}).get("found")) for event in events if event["outcome"] == acknowledged.ACCEPTED]
    return table(("key", "by", "what", "found"), rows) if rows else []


def _decisions(events: Sequence[Row]) -> list[str]:
    """What was asked of people at this phase's gate, and what they said."""
    return [f"- {decision(event)}" for event in events if event["step"] == phase_facts.GATE]


def decision(event: Row) -> str:
    """One thing that was asked or said at a gate."""
    return f"{'begun' if event['outcome'] == OPENED else words(event['outcome'])}, {when(event['at'])}" + _by_whom(event["detail"] or {})


def _by_whom(detail: dict[str, Any]) -> str:
    said = [f"by **{words(detail['by'])}**"] if detail.get("by") else []
    said += [words(detail["why"], 1000)] if detail.get("why") else []
    return f": {': '.join(said)}" if said else ""
