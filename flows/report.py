"""The audit trail, told from the ledger: who ran which SQL on which table when, and how it ended. As a document and as text."""

from __future__ import annotations

from typing import Any

from flows import phase_facts, repository
from flows.phase_page import detail_text
from flows.visible import number, one_line, visible
from steps import approvals, gate_words
from steps.ledger import Ledger
from steps.phase import STANDS
from steps.rollout import Rollout

COLUMNS = ("at", "phase", "direction", "step", "outcome", "duration_ms", "row_count", "statement", "detail")


def audit_trail(ledger: Ledger, called: str = "PLAN") -> dict[str, Any]:
    """
    Everything on record about this plan on this table, as one document; the calls that it prints name the plan as *called*.

    `beside` are events of no run: what was looked at, asked and decided between the runs.
    """
    runs, events = ledger.runs(), ledger.events()
    of_run: dict[str, list[dict[str, Any]]] = {}
    for event in events:
        of_run.setdefault(event["run_id"], []).append(event)
    for run in runs:
        run["events"] = of_run.pop(run["run_id"], [])
        run["went_back"] = phase_facts.went_back(run)
    phases = ledger.phases()
    begun = {phase for phase, row in phases.items() if row["state"] in STANDS}
    beside = sorted((event for some in of_run.values() for event in some), key=lambda event: event["id"])
    return {"table": ".".join(ledger.key[:2]), "plan": ledger.key[2], "runs": runs, "beside": beside,
            "gates": gate_words.all_told(approvals.read(ledger), begun, called),
            "phases": {phase.value: state for phase, state in phases.items()}}


def whole(rollout: Rollout) -> dict[str, Any]:
    """:func:`audit_trail` with seconds by phase, and, once anything was run, what to do in the application's repository."""
    trail = audit_trail(rollout.ledger, rollout.plan.called)
    trail["durations"] = durations(trail, rollout.plan.plan.planned_s)
    trail["repository"] = repository.repository(rollout) if trail["runs"] else None
    return trail


def durations(trail: dict[str, Any], planned_s: dict[str, float]) -> list[dict[str, Any]]:
    """Seconds planned and taken by phase and run (ADR-002 section 8); a hold counts once, not with each of its statements."""
    found: dict[tuple[str, str, str], float] = {}
    for count, run in enumerate(trail["runs"], 1):
        for stretch in phase_facts.stretches(run["events"]):
            key = (f"{count}. {run['verb']}", stretch[0]["phase"], stretch[0]["direction"])
            found[key] = found.get(key, 0) + phase_facts.worked_s(stretch)
    return [{"run": run, "phase": phase, "direction": direction, "planned_s": planned_s.get(phase) if direction == "forward" else None,
             "actual_s": round(seconds, 2)} for (run, phase, direction), seconds in found.items()]


def text(trail: dict[str, Any], *, with_sql: bool = True) -> str:
    """The audit trail for a terminal."""
    lines = [f"{trail['table']}, plan {trail['plan']}"]
    for run in trail["runs"]:
        lines += ["", f"{run['started_at']}  {run['verb']} by {one_line(run['actor'])} on {run['host']}: {one_line(run['reason'])}"
                  + accepted(run), f"  ended {run['ended_at'] or 'never (killed?)'}, exit {run['exit_code']}: {run['outcome'] or '-'}"]
        lines += [f"  {back['phase']} was rolled back because: {one_line(back['why'])}" for back in run["went_back"]]
        lines += [line for event in run["events"] for line in _lines(event, event["at"][11:23], with_sql=with_sql)]
    if trail["beside"]:
        lines += ["", "between the runs", *(line for event in trail["beside"] for line in _lines(event, event["at"], with_sql=with_sql))]
    if trail.get("gates"):
        lines += ["", "gates"]
        lines += [f"  {gate['since']}  {gate['phase']:<13} {one_line(gate_words.in_words(gate))}" for gate in trail["gates"]]
    if trail.get("durations"):
        lines += ["", "seconds by phase (planned / actual)"]
        lines += [f"  {row['run']:<14} {row['phase']:<13} {row['direction']:<8} {row['planned_s'] or '-':>6} / {row['actual_s']}"
                  for row in trail["durations"]]
    if trail.get("repository"):
        lines.append(repository.text(trail["repository"]))
    return "\n".join(lines)


def _lines(event: dict[str, Any], at: str, *, with_sql: bool) -> list[str]:
    back = "back " if event["direction"] == "back" else ""
    lines = [f"  {at}  {event['phase']:<12} {back}{one_line(event['step'])}: {event['outcome']}{_numbers(event)}"]
    statements = [event["statement"]] if event["statement"] else (event["detail"] or {}).get("statements") or []
    if with_sql:
        lines += [f"      {line}" for statement in statements for line in str(statement).splitlines()]
    return lines + [f"      {line}" for line in visible(detail_text(event["detail"])).splitlines()]


def cells(event: dict[str, Any]) -> list[str]:
    """One event of the trail as the texts of :data:`COLUMNS`."""
    shown_as = {"duration_ms": number(event["duration_ms"]), "detail": detail_text(event["detail"])}
    return [shown_as[c] if c in shown_as else "" if event[c] is None else str(event[c]) for c in COLUMNS]


def accepted(run: dict[str, Any]) -> str:
    """What the run was given to override, and its `--set`; an older tool's record may lack it."""
    options = run["options"] or {}
    keys = [*(options.get("accept") or []), *(["--end-blockers"] if options.get("end_blockers") else [])]
    settings = options.get("settings") or []
    return (f"; accepted: {', '.join(keys)}" if keys else "") + (f"; set: {', '.join(map(one_line, settings))}" if settings else "")


def _numbers(event: dict[str, Any]) -> str:
    numbers = [f"{number(event['duration_ms'])} ms"] if event["duration_ms"] is not None else []
    numbers += [f"{event['row_count']} rows"] if event["row_count"] is not None else []
    return f" ({', '.join(numbers)})" if numbers else ""
