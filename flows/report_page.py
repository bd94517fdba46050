"""
`rollout report --html`: the whole audit trail on one self-contained page, fit for a change ticket, a phone and a printer.

No network, no script: its own policy forbids both. Everything that comes from outside is escaped by the template, and what could
steer the reader's eye is spelled out (:mod:`flows.visible`).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from flows import phase_facts, repository
from flows.charts import svg
from flows.charts.pace import paces
from flows.charts.parity import parity
from flows.charts.svg import Chart
from flows.charts.timeline import timeline
from flows.phase_page import detail_text, figures
from flows.report import accepted
from flows.standing import standing
from flows.visible import duration, number, one_line, second, visible, when
from steps import __version__, waits
from steps.approvals import APPROVAL, APPROVED, OPENED
from steps.errors import EXIT_CODES
from steps.masking import mask
from steps.phase import STANDS, Phase
from steps.rollout import Rollout

HERE = Path(__file__).with_suffix(".html")
STYLE = HERE.with_suffix(".css")
MOST_PACES = 6
ONE_LINE = 90
SIGNS = {"good": "✔", "bad": "✘", "wait": "●"}
TIMELINE_NOTE = "Each numbered column is one run of the table above, on a scale of its own."


def page(trail: dict[str, Any], rollout: Rollout) -> str:
    """The page of :func:`flows.report.audit_trail`. Looks at ledger and catalogue; takes no lock."""
    now = standing(rollout)
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=_seen)
    return environment.from_string(HERE.read_text(encoding="utf-8")).render(
        table=trail["table"], plan=trail["plan"], title=rollout.plan.plan.title, style=Markup(STYLE.read_text() + svg.STYLE),  # noqa: S704
        verdict=_verdict(trail, now), runs=[_run(number, run, rollout) for number, run in enumerate(trail["runs"], 1)],
        gates=[_gate(gate) for gate in trail.get("gates", [])], phases=_phases(trail, now, rollout),
        beside=[_event(event) for event in trail["beside"]], audit=_audit(trail),
        charts=[_drawn(chart, note) for chart, note in _charts(trail)],
        repository=Markup(repository.section(trail["repository"])) if trail.get("repository") else "",  # noqa: S704  # escapes itself
        version=__version__, home=rollout.ledger.home, made_at=f"{waits.clock():%Y-%m-%d %H:%M:%S}")


def _seen(value: Any) -> Any:
    """Every text that is put into the page passes here; our own markup is known by its type."""
    return visible(mask(value)) if isinstance(value, str) and not isinstance(value, Markup) else value


def _verdict(trail: dict[str, Any], now: dict[str, Any]) -> dict[str, str]:
    runs = trail["runs"]
    if not runs:
        return {"kind": "wait", "sign": SIGNS["wait"], "word": "Not begun", "why": "", "next": now["next"]}
    last = runs[-1]
    if last["ended_at"] is None:
        alive = bool(now["working_on_it"] and now["working_on_it"]["alive"])
        kind, word = ("wait", f"At work: {last['verb']}") if alive else ("bad", f"Never ended: {last['verb']} was killed or lost")
        return {"kind": kind, "sign": SIGNS[kind], "word": word, "why": "", "next": now["next"]}
    code = last["exit_code"]
    kind = "good" if code == 0 else "wait" if code == 4 else "bad"  # noqa: PLR2004
    word = f"{last['verb']} done{_came_to(last, now)}" if code == 0 else f"{last['verb']}: {EXIT_CODES.get(code, 'ended')}"
    why = last["outcome"] or "" if code else _failed_before(runs) if last["went_back"] else ""
    return {"kind": kind, "sign": SIGNS[kind], "word": word[0].upper() + word[1:], "why": why, "next": now["next"]}


def _came_to(last: dict[str, Any], now: dict[str, Any]) -> str:
    """What is done after a run that ended well; after a way back what was undone, and apart from that what stands."""
    states = {row["phase"]: row["state"] for row in now["phases"]}
    if not last["went_back"]:
        return f": {', '.join(phase for phase, state in states.items() if state == 'done') or 'no phase'} done"
    stand = [phase if state == "done" else f"{phase} ({state})" for phase, state in states.items() if state in STANDS]
    return f". Undone: {', '.join(back['phase'] for back in last['went_back'])}. What stands: {', '.join(stand) or 'nothing'}"


def _failed_before(runs: Sequence[dict[str, Any]]) -> str:
    """What failed in the last run forward: whoever reads that it was taken back well must see that, too."""
    count, run = next(((number, run) for number, run in reversed(list(enumerate(runs, 1))) if run["verb"] == "run"), (0, None))
    if run is None or run["exit_code"] == 0:
        return ""
    facts = [phase_facts.of(stretch[0]["phase"], "forward", stretch) for stretch in phase_facts.stretches(run["events"])
             if stretch[0]["direction"] == "forward"]
    failed = "; ".join(f"{one.name}: {one.result}" for one in facts if one.ended in ("fail", "failed"))
    return f"Before that, run {count} by {run['actor']} failed. {failed}" if failed else ""


def _gate(gate: dict[str, Any]) -> dict[str, str]:
    """Who was asked what and said what; a condition that did not hold is told beside the yes that was given all the same."""
    became = "approved, and begun" if gate["state"] == OPENED and gate["needs"] == APPROVAL else "begun" if gate["state"] == OPENED \
        else gate["state"]
    although = f", although {'; '.join(gate['unmet'])}" if gate["unmet"] and gate["state"] in (OPENED, APPROVED) else ""
    in_vain = "".join(f"; in vain: {one}" for one in gate.get("refused") or [])
    return {"label": Phase(gate["phase"]).label, "at": second(gate["since"]), "asked_by": ", ".join(dict.fromkeys(gate["asked_by"])),
            "asked_why": gate["asked_why"] or "", "became": became + although + in_vain, "answered_by": gate["answered_by"] or "",
            "answered_why": gate["answered_why"] or ""}


def _phases(trail: dict[str, Any], now: dict[str, Any], rollout: Rollout) -> list[dict[str, str]]:
    """Each phase as it stands, with what its last forward or backward stretch came to."""
    last: dict[str, phase_facts.Facts] = {}
    for run in trail["runs"]:
        last |= {facts.phase: facts for facts, _ in _stretches(run, rollout)}
    found = []
    for row in now["phases"]:
        facts = last.get(row["phase"])
        planned = rollout.plan.plan.planned_s.get(row["phase"])
        found.append({"label": Phase(row["phase"]).label, "state": row["state"], "at": second(row["at"]),
                      "planned": "" if planned is None else duration(planned), "took": duration(facts.actual_s) if facts else "",
                      "result": facts.result if facts else ""})
    return found


def _stretches(run: dict[str, Any], rollout: Rollout) -> list[tuple[phase_facts.Facts, list[phase_facts.Row]]]:
    found = []
    for stretch in phase_facts.stretches(run["events"]):
        phase, direction = stretch[0]["phase"], stretch[0]["direction"]
        found.append((phase_facts.of(phase, direction, stretch, rollout.plan.plan.planned_s.get(phase)), stretch))
    return found


def _run(number_of: int, run: dict[str, Any], rollout: Rollout) -> dict[str, Any]:
    beside = [event for event in run["events"] if event["outcome"] in phase_facts.BESIDE or event["step"] in phase_facts.ASIDE]
    phases = [{"name": facts.name, "result": facts.result, "figures": figures(facts, rollout.plan.plan.max_stall_ms),
               "events": _events(stretch)} for facts, stretch in _stretches(run, rollout)]
    if beside:
        phases.insert(0, {"name": "Findings, decisions, looks", "result": "", "figures": [], "events": [_event(event) for event in beside]})
    code = run["exit_code"]
    ending = "never (killed?)" if run["ended_at"] is None else EXIT_CODES[code] if code in EXIT_CODES and code else run["outcome"] or "-"
    return {"number": number_of, "verb": run["verb"], "actor": run["actor"], "host": run["host"], "reason": run["reason"],
            "began": second(run["started_at"]), "ended": second(run["ended_at"]) or "…", "took": _took(run), "ending": ending,
            "exit_code": "-" if code is None else code, "outcome": run["outcome"] or "-", "accepted": accepted(run),
            "went_back": run["went_back"], "phases": phases}


def _events(stretch: list[phase_facts.Row]) -> list[dict[str, Any]]:
    """What was begun in a hold is told only where nothing tells that it was done: the run was killed inside."""
    last = max((number for number, event in enumerate(stretch) if event["step"].startswith("hold for")), default=-1)
    return [_event(event if number > last or event["statement"] else event | {"detail": _without(event["detail"], "statements")})
            for number, event in enumerate(stretch)]


def _without(detail: dict[str, Any] | None, key: str) -> dict[str, Any]:
    return {name: value for name, value in (detail or {}).items() if name != key}


def _event(event: phase_facts.Row) -> dict[str, Any]:
    bad = event["outcome"] in ("failed", "fail", "cancelled", "inconclusive", "rejected", "found")
    statement = event["statement"] or ";\n".join((event["detail"] or {}).get("statements") or [])
    return {"id": event["id"], "time": when(event["at"]).partition(" ")[2], "step": event["step"], "outcome": event["outcome"],
            "kind": "bad" if bad else "", "ms": number(event["duration_ms"]), "rows": number(event["row_count"]),
            "detail": detail_text(event["detail"]), "statement": statement, "first": one_line(statement)[:ONE_LINE] + "…"}


def _audit(trail: dict[str, Any]) -> list[dict[str, Any]]:
    """One row for each statement or command, whoever ran it."""
    return [_event(event) | {"at": when(event["at"]), "who": f"{run['actor']} on {run['host']}", "run": count,
                             "phase": phase_facts.phase_name(event["phase"], event["direction"]),
                             "long": len(event["statement"]) > ONE_LINE or "\n" in event["statement"].strip()}
            for count, run in enumerate(trail["runs"], 1) for event in run["events"] if event["statement"]]


def _charts(trail: dict[str, Any]) -> Sequence[tuple[Chart, str]]:
    events = [event for run in trail["runs"] for event in run["events"]]
    drawn = paces(events)
    found = [(chart, TIMELINE_NOTE) for chart in [timeline(trail)] if chart]
    left_out = f"{len(drawn) - MOST_PACES} earlier passes are left out." if len(drawn) > MOST_PACES else ""
    found += [(chart, left_out if number == 0 else chart.description) for number, chart in enumerate(drawn[-MOST_PACES:])]
    return found + [(chart, chart.description) for chart in [parity(sorted(events + trail["beside"], key=lambda e: e["id"]))] if chart]


def _drawn(chart: Chart, note: str) -> dict[str, Any]:
    return {"title": chart.title, "drawn": Markup(chart.inline()), "note": note}  # noqa: S704  # escaped by its serializer


def _took(run: dict[str, Any]) -> str:
    if run["ended_at"] is None:
        return ""
    return duration((datetime.fromisoformat(run["ended_at"]) - datetime.fromisoformat(run["started_at"])).total_seconds())
