"""
A run as the ledger has it, in Prefect's words: a flow run, its phases and what was done in them as task runs, one page that tells it all.

Prefect-free. Every name and key is made of the ledger's own, so that the same run is told in the same words whenever it is told.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from flows.lives import flow_run_of
from flows.markdown import Page, code, fenced, table, words
from flows.params import BESIDE_A_REQUEST
from flows.phase_facts import ASIDE, BESIDE, GATE
from flows.phase_page import language, went_back
from flows.report import cells
from flows.states import STATE_NAMES, UNTOLD
from steps.approvals import WAITING
from steps.cancellation import CANCELLED_BY
from steps.ledger import CUT_SHORT
from steps.masking import mask, masked
from steps.phase import Phase

TOLD_LATER = "told-later"
COMPLETED, FAILED, CANCELLED, CRASHED = "COMPLETED", "FAILED", "CANCELLED", "CRASHED"
FLOWS = {"run": "rollout"}
Ending = tuple[str, str]
ENDINGS: dict[str, Ending] = {"failed": (FAILED, "Failed"), "fail": (FAILED, "Failed"), "inconclusive": (FAILED, "Inconclusive"),
                              "cancelled": (CANCELLED, "Cancelled")}
"""By the ledger's outcome; all others ended well."""


@dataclass(frozen=True)
class Done:
    """A phase, or one thing done in the phase called *parent*; *after* is the phase before it. *ending* is Prefect's type and name."""

    key: str
    name: str
    began: datetime
    ended: datetime
    ending: Ending
    message: str = ""
    parent: str | None = None
    after: str | None = None


@dataclass(frozen=True)
class Told:
    """
    One run of the ledger. *flow_run* is what Prefect called it, where it knew of it; *missed* whether it missed part of it; *asked* whether
    it asked at a gate.
    """

    run_id: str
    plan: str
    flow: str
    name: str
    parameters: dict[str, Any]
    began: datetime
    ended: datetime
    ending: Ending
    message: str
    flow_run: str | None
    missed: bool
    asked: bool
    done: tuple[Done, ...]
    events: int
    page: str


def told(trail: dict[str, Any], run: dict[str, Any]) -> Told:
    """One run of :func:`flows.report.audit_trail`; one that never ended was killed, so ask only of those that nobody is at work on."""
    events, ending = run["events"], _ending(run)
    began = _time(run["started_at"])
    ended = _time(run["ended_at"] or (events[-1]["at"] if events else run["started_at"]))
    options = {key: value for key, value in (run["options"] or {}).items() if key not in BESIDE_A_REQUEST}
    flow, flow_run = FLOWS.get(run["verb"], run["verb"]), flow_run_of(run)
    request = options | {"plan": trail["plan"], "by": run["actor"], "reason": run["reason"]}
    message = mask(f"{run['outcome'] or 'never ended: killed or lost'}. By the ledger, from {run['started_at']} to "
                   f"{run['ended_at'] or 'its end unseen'}, exit {run['exit_code']}")
    return Told(run["run_id"], trail["plan"], flow, mask(f"{flow} {trail['plan']} by {run['actor']}"),
                {"request": masked(request)}, began, ended, ending, message, flow_run, any(e["outcome"] == UNTOLD for e in events),
                any(e["step"] == GATE and e["outcome"] == WAITING for e in events),
                tuple(_done([e for e in events if e["outcome"] not in BESIDE and e["step"] not in ASIDE], ending)), len(events),
                _page(trail, run, message))


def _ending(run: dict[str, Any]) -> Ending:
    code, outcome = run["exit_code"], run["outcome"] or ""
    if code is None:
        return CRASHED, "Crashed"
    if code == 0:
        return COMPLETED, "Completed"
    if outcome == CUT_SHORT or outcome.startswith(CANCELLED_BY):
        return CANCELLED, "Cancelled"
    return FAILED, STATE_NAMES.get(code, "Failed")


def _how(event: dict[str, Any]) -> Ending:
    return ENDINGS.get(event["outcome"], (COMPLETED, "Completed"))


def _done(events: list[dict[str, Any]], ending: Ending) -> list[Done]:
    """Each stretch of events of one phase and direction, followed by what was done in it. A run that was cut short ended in its last."""
    stretches: list[list[dict[str, Any]]] = []
    for event in events:
        if not stretches or _phase(stretches[-1][0]) != _phase(event):
            stretches.append([])
        stretches[-1].append(event)
    found: list[Done] = []
    before: str | None = None
    for stretch in stretches:
        name, key = _phase(stretch[0]), f"phase-{stretch[0]['id']}"
        how = ending if ending[0] in (CANCELLED, CRASHED) and stretch is stretches[-1] else _how(stretch[-1])
        found.append(Done(key, name, min(map(_began, stretch)), _time(stretch[-1]["at"]), how, after=before))
        for event in stretch:
            what = "; ".join([event["outcome"], *(f"{name} = {value}" for name, value in (event["detail"] or {}).items())])
            found.append(Done(f"event-{event['id']}", event["step"], _began(event), _time(event["at"]), _how(event), mask(what)[:2000],
                              parent=key))
        before = key
    return found


def _phase(event: dict[str, Any]) -> str:
    if event["direction"] == "back":
        return f"rollback of {event['phase']}"
    return Phase(event["phase"]).label if event["phase"] in set(Phase) else str(event["phase"])


def _began(event: dict[str, Any]) -> datetime:
    return _time(event["at"]) - timedelta(milliseconds=event["duration_ms"] or 0)


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _page(trail: dict[str, Any], run: dict[str, Any], message: str) -> str:
    page = Page("rollout report PLAN")
    page.add(f"# {words(run['verb'])} by {words(run['actor'])}", "",
             f"Table {code(trail['table'])}, plan {code(trail['plan'])}: {words(run['reason'], 1500)}", "", words(message, 2500), "")
    page.part("Went back", went_back(run), "phases")
    page.part("Steps", table(("at", "phase", "direction", "step", "outcome", "ms", "rows"), [cells(event)[:7] for event in run["events"]],
                             numbers=frozenset({"ms", "rows"})), "lines of the table of steps")
    page.part("SQL and commands", [f"{words(event['step'])}:\n\n{fenced(event['statement'], language(event['statement']))}\n"
                                   for event in run["events"] if event["statement"]], "statements", last=True)
    return mask(str(page))
