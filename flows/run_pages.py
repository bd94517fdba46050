"""
The pages of one run for Prefect's artifacts: what will happen, each phase as it was, and at the end what came of it and what is next.

Prefect-free. Each is made of ledger and catalogue at the moment of asking; what cannot be read is left out, and never stops a run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from flows import lives, phase_facts, phase_page, planned
from flows.charts.pace import paces
from flows.charts.parity import parity
from flows.charts.timeline import timeline
from flows.markdown import Page, code, fenced, image, item, table, words
from flows.phase_facts import Row
from flows.report import audit_trail
from flows.standing import standing
from flows.visible import duration, number
from steps.checks import Finding
from steps.errors import EXIT_CODES, RolloutError
from steps.exact_look import WATCH
from steps.ledger import Event
from steps.parity_looks import AFTERWARDS
from steps.phase import Phase
from steps.rollout import Rollout

BACK = "rollback of "
NO_KEY = "-"
LOOKS_AT_ROWS = frozenset({"verify", "shadow_write", "watch"})


def key_parts(name: str) -> tuple[str, str]:
    """(phase, direction) of what the run graph calls *name*."""
    return (name.removeprefix(BACK), "back") if name.startswith(BACK) else (name.rpartition(" ")[2], "forward")


def of_phase(name: str, rollout: Rollout, heard: Sequence[Event], error: str, because: str = "") -> tuple[str, str]:
    """
    The page of phase *name* as this run left it, and its result in one line; made of *heard* where the ledger cannot be read.

    *error* ended the phase, *because* of something that failed before it it goes back.
    """
    phase, direction = key_parts(name)
    everything: list[Row] = []
    with suppress(RolloutError):
        everything = rollout.ledger.events()
    of_it = [row for row in everything if row["phase"] == phase]
    same = [row for row in of_it if row["direction"] == direction or row["outcome"] in phase_facts.BESIDE]
    if name == WATCH:  # a look's lines belong to the run whose soak it watches
        of_it = same = [row for row in everything if row["step"] in AFTERWARDS][-max(1, len(heard)):]
    events = _of_this_run(of_it, same, rollout.ledger.run_id) or [phase_page.as_row(event) for event in heard]
    before = {row["run_id"] for row in same if _is_work(row)} - {rollout.ledger.run_id}  # who only waited at the gate tried nothing
    work = [row for row in events if _is_work(row)]
    facts = phase_facts.of(phase, direction, work, rollout.plan.plan.planned_s.get(phase), error)
    looked = parity(everything) if phase in LOOKS_AT_ROWS else None
    drawn = [*paces(work), *([looked] if looked else [])]
    pictures = [image(f"{chart.title}. {chart.description}", chart.data_uri()) for chart in drawn]
    head = phase_page.Head(f"{rollout.schema}.{rollout.table}", rollout.plan.id, rollout.person.actor, rollout.person.reason,
                           rollout.plan.plan.max_stall_ms, rollout.plan.called, because)
    return phase_page.markdown(facts, head, events, len(before), pictures), f"{facts.result} Table {head.table}"


def _is_work(row: Row) -> bool:
    return row["outcome"] not in phase_facts.BESIDE and row["step"] != phase_facts.GATE


def _of_this_run(of_it: list[Row], same: list[Row], run_id: str) -> list[Row]:
    """
    The phase's lines of this run: those of its direction, the triggers that came or went among them (a phase forward drops some, its way
    back makes them), and what people decided at the gate through which it went, whichever run asked them.
    """
    mine = [row for row in same if row["run_id"] == run_id]
    ids = [row["id"] for row in mine]
    known = set(ids)
    gates = {(row["detail"] or {}).get("gate") for row in mine if row["step"] == phase_facts.GATE}
    return [row for row in of_it if row["id"] in known or (ids and row["run_id"] == run_id and row["step"].startswith("trigger ")
                                                    and ids[0] < row["id"] < ids[-1])
            or (row["step"] == phase_facts.GATE and (row["detail"] or {}).get("gate") in gates)]


def of_findings(findings: Sequence[Finding | Mapping[str, object]], accepted: frozenset[str]) -> list[dict[str, str]]:
    """Findings as rows of a table artifact, texts only."""
    return [{"severity": "accepted" if row["severity"] == "refuse" and row["accept"] in accepted else f"{row['severity']}",
             "check": f"{row['check']}", "subject": f"{row['subject']}", "what": f"{row['what']}", "remedy": f"{row['remedy']}",
             "accept key": f"{row['accept'] or NO_KEY}"} for row in (f if isinstance(f, Mapping) else vars(f) for f in findings)]


def listed(finding: Mapping[str, str]) -> str:
    """One row of :func:`of_findings` as an item of a list, which can be read on a page of any width."""
    key = finding["accept key"]
    return item(f"**{words(finding['severity'])}: {words(finding['check'])}**, {words(finding['subject'])}: {words(finding['what'], 1500)}",
                f"Remedy: {words(finding['remedy'], 1500)}", *([f"Accept key: {code(key)}"] if key != NO_KEY else []))


def of_plan(rollout: Rollout, phases: Sequence[Phase], findings: Sequence[dict[str, str]], *, back: bool) -> tuple[str, str]:
    """What will happen, as page and line: phases, findings, and for a run every statement with its estimate."""
    page = _opened(rollout, "What this run will undo" if back else "What this run will do")
    purposes = phase_facts.WAY_BACK if back else phase_facts.PURPOSE
    direction = "back" if back else "forward"
    page.part("Phases", [item(f"**{words(phase_facts.phase_name(phase.value, direction))}**: {words(purposes[phase.value])}")
                         for phase in phases], "lines")
    page.part("Findings", [listed(row) for row in findings] or ["None: the checks found nothing to say."], "findings")
    if not back:
        with suppress(RolloutError):
            _statements(page, planned.document(rollout), phases)
    named = f"{', '.join(phase.value for phase in phases)}. Table {rollout.schema}.{rollout.table}"
    return str(page), f"what {'goes back' if back else 'will happen'}: {named}"


def _statements(page: Page, document: dict[str, Any], phases: Sequence[Phase]) -> None:
    groups = [*(document["groups"] if Phase.PRE_DEPLOY in phases else []), *(document["cleanup"] if Phase.CLEANUP in phases else [])]
    steps = [(step, group) for group in groups for step in group["steps"]]
    page.part("Schema steps", [item(
        f"**{words(step['step'])}**, {words(group['name'].partition(':')[0])}: {step['algorithm']}, about "
        f"{duration(step['estimate_ms'] / 1000)}; back: {step['back']['algorithm']}") for step, group in steps], "steps")
    pass_ms = (document["first_pass_estimate"] or {}).get("estimate_ms")
    if pass_ms is not None and Phase.PRE_DEPLOY in phases:
        page.add("", f"First pass over about {number(document['rows_estimated'])} rows: about {duration(pass_ms / 1000)}.")
    sql = [line for step, _ in steps for line in step["sql"]] + (document["triggers"] if Phase.PRE_DEPLOY in phases else [])
    page.part("SQL, in order", [fenced(line) for line in sql], "statements", last=True)


def of_run(rollout: Rollout, verb: str, exit_code: int, ending: str, links: Mapping[str, str]) -> tuple[str, str]:
    """What came of the run and what comes next, as page and line. *links* leads from a phase's name to its page."""
    became = f"{verb}: {EXIT_CODES.get(exit_code, ending) if exit_code else ending}"
    page = _opened(rollout, became)
    if exit_code:
        page.add(f"**{words(ending, 2000)}**", "")
    with suppress(RolloutError):
        now = standing(rollout)
        page.add(f"**Next:** {words(now['next'], 1000)}", "")
        trail = audit_trail(rollout.ledger, rollout.plan.called)
        runs = lives.runs_of(trail["runs"], rollout.ledger.run_id)
        if runs:
            page.part("Went back", [line for run in runs for line in phase_page.went_back(run)], "phases")
            page.part("What this run did", _did([event for run in runs for event in run["events"]], links, rollout.plan.plan.planned_s),
                      "phases")
            page.part("Decisions", _decided(trail), "decisions")
        page.part("What stands", table(("phase", "state", "since (UTC)"), [
            (Phase(row["phase"]).label, row["state"], row["at"] or "") for row in now["phases"]]), "phases")
        chart = timeline(trail)
        drawn = [image(f"{chart.title}. {chart.description}", chart.data_uri())] if chart else []
        page.part("The whole rollout", drawn, "pictures", last=True)
    return str(page), f"{became}, by {rollout.person.actor}. Table {rollout.schema}.{rollout.table}"


def _did(events: Sequence[Row], links: Mapping[str, str], planned_s: dict[str, float]) -> list[str]:
    rows = []
    for stretch in phase_facts.stretches(events):
        facts = phase_facts.of(stretch[0]["phase"], stretch[0]["direction"], stretch, planned_s.get(stretch[0]["phase"]))
        name = words(facts.name)
        rows.append(item(f"**{f'[{name}]({links[facts.name]})' if facts.name in links else name}**, {words(facts.ended)}, took "
                         f"{duration(facts.actual_s)}: {words(facts.result)}"))
    return rows or ["Nothing."]


def _decided(trail: dict[str, Any]) -> list[str]:
    """What was asked and said at the gates of the whole rollout, whichever run asked, and what did not count."""
    events = sorted([*(row for run in trail["runs"] for row in run["events"]), *trail["beside"]], key=lambda row: int(row["id"]))
    return [f"- {row['phase']} {phase_page.decision(row)}" for row in events
            if row["step"] == phase_facts.GATE and (row["detail"] or {}).get("gate")]


def _opened(rollout: Rollout, title: str) -> Page:
    page = Page(f"rollout report {rollout.plan.called}")
    page.add(f"# {words(title)}", "", f"Table {code(f'{rollout.schema}.{rollout.table}')}, plan {code(rollout.plan.id)}  ",
             f"By **{words(rollout.person.actor)}**: {words(rollout.person.reason, 1500)}", "")
    return page
