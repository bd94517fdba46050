"""The audit trail, told from the ledger: who ran which SQL on which table when, and how it ended. Text, JSON, Markdown, HTML."""

from __future__ import annotations

import html
from typing import Any

from flows import repository
from flows.markdown import cell, fenced
from flows.standing import standing
from steps import acknowledged, approvals
from steps.ledger import Event, Ledger
from steps.mysql import shown
from steps.phase import Phase
from steps.rollout import Rollout

STYLE = ("body{font:15px/1.45 system-ui;margin:2rem auto;max-width:70rem;padding:0 1rem}"
         "table{border-collapse:collapse;width:100%}td,th{border-bottom:1px solid #ddd;padding:.3rem .5rem;text-align:left;"
         "vertical-align:top}pre{white-space:pre-wrap;margin:0}.failed,.fail{color:#b00}")
COLUMNS = ("at", "phase", "direction", "step", "outcome", "duration_ms", "row_count", "statement", "detail")


def audit_trail(ledger: Ledger) -> dict[str, Any]:
    """Everything on record about this plan on this table, as one document."""
    runs, events = ledger.runs(), ledger.events()
    for run in runs:
        run["events"] = [event for event in events if event["run_id"] == run["run_id"]]
    return {"table": ".".join(ledger.key[:2]), "plan": ledger.key[2], "runs": runs,
            "gates": [approvals.told(gate, ledger.key[2]) for gate in approvals.read(ledger)],
            "phases": {phase.value: state for phase, state in ledger.phases().items()}}


def durations(trail: dict[str, Any], planned_s: dict[str, float]) -> list[dict[str, Any]]:
    """Seconds planned and taken by phase and run (ADR-002 section 8); a hold counts once, not with each of its statements."""
    found: dict[tuple[str, str, str], float] = {}
    for number, run in enumerate(trail["runs"], 1):
        held = any(event["step"].startswith("hold for") for event in run["events"])
        for event in run["events"]:
            inside = (held and "algorithm" in event["detail"]) or event["step"].startswith("trigger ")
            if not inside and event["outcome"] not in (acknowledged.ACCEPTED, acknowledged.TOLD):
                key = (f"{number}. {run['verb']}", event["phase"], event["direction"])
                found[key] = found.get(key, 0) + (event["duration_ms"] or 0) / 1000
    return [{"run": run, "phase": phase, "direction": direction, "planned_s": planned_s.get(phase) if direction == "forward" else None,
             "actual_s": round(seconds, 2)} for (run, phase, direction), seconds in found.items()]


def phase_markdown(name: str, rollout: Rollout, events: list[Event]) -> str:
    """What one phase did in this run, for Prefect's artifact page."""
    lines = [f"# {name}", "", f"Table `{rollout.schema}.{rollout.table}`, plan `{rollout.plan.id}`",
             f"By **{rollout.person.actor}**: {rollout.person.reason}", "", "| step | outcome | ms | rows |", "|---|---|---:|---:|"]
    lines += [f"| {cell(event.step)} | {cell(event.outcome)} | {_number(event.duration_ms)} | {_number(event.rows)} |"
              for event in events]
    details = [*(event for event in events if event.detail), *_pace(name, rollout)]
    if details:
        lines += ["", "## Details", ""]
        lines += [f"- **{event.step}**: {_detail(event.detail)}" for event in details]
    statements = [event for event in events if event.statement]
    if statements:
        lines += ["", "## SQL and commands", ""]
        lines += [fenced(shown(event.statement or "")) for event in statements]
    return "\n".join(lines)


def _pace(phase: str, rollout: Rollout) -> list[Event]:
    """What this run's passes told the ledger by themselves: pauses with their reasons, rate and chunk times."""
    return [Event(event["phase"], f"{event['step']}, {event['outcome']}", event["outcome"], detail=event["detail"])
            for event in rollout.ledger.events() if event["run_id"] == rollout.ledger.run_id and event["phase"] in phase
            and event["step"].startswith(("pass ", "pass, ", "pace of pass "))]


def text(trail: dict[str, Any], *, with_sql: bool = True) -> str:
    """The audit trail for a terminal."""
    lines = [f"{trail['table']}, plan {trail['plan']}"]
    for run in trail["runs"]:
        lines += ["", f"{run['started_at']}  {run['verb']} by {run['actor']} on {run['host']}: {run['reason']}{_accepted(run)}",
                  f"  ended {run['ended_at'] or 'never (killed?)'}, exit {run['exit_code']}: {run['outcome'] or '-'}"]
        for event in run["events"]:
            back = "back " if event["direction"] == "back" else ""
            lines.append(f"  {event['at'][11:23]}  {event['phase']:<12} {back}{event['step']}: {event['outcome']}{_numbers(event)}")
            if with_sql and event["statement"]:
                lines += [f"      {line}" for line in event["statement"].splitlines()]
            if event["detail"]:
                lines.append(f"      {_detail(event['detail'])}")
    if trail.get("gates"):
        lines += ["", "gates"]
        lines += [f"  {gate['since']}  {gate['phase']:<13} {approvals.in_words(gate)}" for gate in trail["gates"]]
    if trail.get("durations"):
        lines += ["", "seconds by phase (planned / actual)"]
        lines += [f"  {row['run']:<14} {row['phase']:<13} {row['direction']:<8} {row['planned_s'] or '-':>6} / {row['actual_s']}"
                  for row in trail["durations"]]
    if trail.get("repository"):
        lines.append(repository.text(trail["repository"]))
    return "\n".join(lines)


def page(trail: dict[str, Any], rollout: Rollout) -> str:
    """One self-contained HTML file for a change ticket."""
    now = standing(rollout)
    parts = ["<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>",
             f"<title>Rollout of {html.escape(trail['table'])}</title>",
             f"<style>{STYLE}</style>",
             f"<h1>{html.escape(trail['table'])}</h1><p>Plan {html.escape(trail['plan'])}: {html.escape(rollout.plan.plan.title)}</p>",
             "<table><tr><th>phase<th>state<th>since</tr>",
             *[f"<tr><td>{Phase(row['phase']).label}<td>{html.escape(row['state'])}<td>{row['at'] or ''}</tr>" for row in now["phases"]],
             "</table>"]
    for run in trail["runs"]:
        parts.append(f"<h2>{html.escape(run['verb'])} by {html.escape(run['actor'])}</h2>"
                     f"<p>{html.escape(run['reason'] + _accepted(run))}<br>"
                     f"{run['started_at']} to {run['ended_at'] or '…'}, exit {run['exit_code']}: {html.escape(run['outcome'] or '-')}</p>")
        parts.append("<table><tr>" + "".join(f"<th>{column}" for column in COLUMNS) + "</tr>")
        parts += [f"<tr class={html.escape(event['outcome'].split()[0])}>" + "".join(
            f"<td><pre>{html.escape(cell)}</pre>" for cell in cells(event)) + "</tr>" for event in run["events"]]
        parts.append("</table>")
    if trail.get("repository"):
        parts.append(repository.section(trail["repository"]))
    return "\n".join(parts)


def cells(event: dict[str, Any]) -> list[str]:
    """One event of the trail as the texts of :data:`COLUMNS`."""
    shown_as = {"duration_ms": _number(event["duration_ms"]), "detail": _detail(event["detail"])}
    return [shown_as[c] if c in shown_as else "" if event[c] is None else str(event[c]) for c in COLUMNS]


def _accepted(run: dict[str, Any]) -> str:
    """What the run was given to override; an older tool's record may lack it."""
    options = run["options"] or {}
    keys = [*(options.get("accept") or []), *(["--end-blockers"] if options.get("end_blockers") else [])]
    return f"; accepted: {', '.join(keys)}" if keys else ""


def _numbers(event: dict[str, Any]) -> str:
    numbers = [f"{_number(event['duration_ms'])} ms"] if event["duration_ms"] is not None else []
    numbers += [f"{event['row_count']} rows"] if event["row_count"] is not None else []
    return f" ({', '.join(numbers)})" if numbers else ""


def _detail(detail: dict[str, Any] | None) -> str:
    return "; ".join(f"{key} = {value}" for key, value in (detail or {}).items())


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"  # noqa: PLR2004
