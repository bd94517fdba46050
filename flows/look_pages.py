"""The pages that `check`, `plan` and `rehearse` leave in the Prefect UI: the answer first, tables next, SQL last."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from flows import planned
from flows.markdown import Page, fenced, table, words
from steps.checks import Finding
from steps.rehearsal import Rehearsed
from steps.rollout import Rollout

STEPS = ("step", "algorithm", "rebuilds", "others meet", "estimate, ms", "basis", "together with", "way back")
CLIMBED = ("step", "way", "algorithm", "rebuilds", "others meet", "goes", "estimate, ms", "basis")
NUMBERS = frozenset({"estimate, ms"})


def check_page(desk: Rollout, found: Sequence[Finding]) -> str:
    """All findings, those that refuse first."""
    page = _page(desk, "check", "rollout check {}")
    stopping = [finding for finding in found if finding.stops(desk.accepted)]
    page.add("", f"**{len(stopping)} refuse, {len(found) - len(stopping)} to know.** " + (
        "A rollout now would be refused before it touches anything." if stopping else "Nothing stands in the way of a rollout."))
    columns = ("answer", "check", "object", "found", "remedy", "acknowledged with")
    for title, some in (("What refuses", stopping), ("To know", [finding for finding in found if finding not in stopping])):
        rows = [(_answer(finding, desk.accepted), finding.check, finding.subject, finding.what, finding.remedy, finding.accept or "–")
                for finding in some]
        head, lines = table(columns, rows)[:2], table(columns, rows)[2:]
        page.part(title, lines, "findings", head=head)
    return str(page)


def _answer(finding: Finding, accepted: Collection[str]) -> str:
    if finding.could_not_look:
        return "could not look"
    return "accepted" if finding.severity == "refuse" and not finding.stops(accepted) else finding.severity


def plan_page(desk: Rollout, document: dict[str, Any]) -> str:
    """What would run from here, and every statement."""
    page = _page(desk, "plan", "rollout plan {} --sql")
    page.add("", f"The table stands on stair {document['stair']} of {document['stairs']} (pre_deploy ends at "
             f"{document['pre_deploy_stairs']}) and has about {document['rows_estimated']:,} rows. Nothing was changed.")
    rows = [row for number, group in enumerate(document["groups"], 1) for row in _group(group, f"hold {number}")]
    rows += [row for group in document["cleanup"] for row in _group(group, "cleanup, when asked for")]
    lines = table(STEPS, rows, numbers=NUMBERS)
    page.part("Steps", lines[2:], "steps", head=lines[:2])
    first_pass = document["first_pass_estimate"]
    if first_pass:
        page.add("", f"First pass over the rows: about {first_pass['estimate_ms'] / 1000:,.1f} s ({words(first_pass['basis'])})")
    page.part("Every statement, in order", [fenced(f"{statement};") for statement in planned.every_statement(document)], "statements")
    return str(page)


def _group(group: dict[str, Any], hold: str) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = [
        (step["step"], planned.algorithm(step), planned.REBUILDS[step["rebuilds"]], planned.met(step), f"{step['estimate_ms']:,.0f}",
         step["basis"], hold if group["in_one_hold"] else "alone", f"{step['back']['algorithm']}, {step['back']['estimate_ms']:,.0f} ms")
        for step in group["steps"]]
    if group["sync"]:
        rows.append(("sync triggers and canary", "", "", planned.MEETS["metadata"], "", "", hold, ""))
    return rows


def rehearsal_page(desk: Rollout, rehearsed: Rehearsed, steps: list[dict[str, Any]]) -> str:
    """Each step up and down, as the server took it on the clone."""
    page = _page(desk, "rehearsal", "rollout rehearse {}")
    page.add("", "**Every step goes up and comes back, each landing exactly one stair lower.** The live table was not touched.")
    if rehearsed.sample:
        page.add("", f"{rehearsed.sample.rows} sampled rows went up and came back; the first pass changed "
                 f"{rehearsed.sample.changed} of them.")
    rows = [(step["step"] if side == "up" else "", way, planned.algorithm(step[side]), planned.REBUILDS[step[side]["rebuilds"]],
             planned.MEETS[step[side]["locks"]], "alone" if step[side]["alone"] else "in a hold", f"{step[side]['estimate_ms']:,.0f}",
             step[side]["basis"]) for step in steps for side, way in (("up", "forward"), ("down", "back"))]
    lines = table(CLIMBED, rows, numbers=NUMBERS)
    page.part("As the server took each step", lines[2:], "ways", head=lines[:2])
    page.part("Notes", [f"- {words(note)}" for note in rehearsed.notes], "notes")
    return str(page)


def _page(desk: Rollout, what: str, command: str) -> Page:
    page = Page(command.format(desk.plan.called))
    page.add(f"# {what}: {words(desk.plan.id)}", "", f"Table {words(desk.schema)}.{words(desk.table)}, asked by "
             f"**{words(desk.person.actor)}**")
    return page
