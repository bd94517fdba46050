"""
The pages that `check`, `plan` and `rehearse` leave in the Prefect UI: the answer first, lists next, SQL last.

Lists, since the page has little more than half of the window: a table of many columns runs under Prefect's sidebar, or is a tower of words.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from flows import planned
from flows.markdown import Page, fenced, item, words
from flows.run_pages import listed, of_findings
from flows.visible import duration
from steps.checks import Finding
from steps.rehearsal import Rehearsed
from steps.rollout import Rollout


def check_page(desk: Rollout, found: Sequence[Finding]) -> str:
    """All findings, those that refuse first."""
    page = _page(desk, "check", "rollout check {}")
    stopping = [finding for finding in found if finding.stops(desk.accepted)]
    page.add("", f"**{len(stopping)} refuse, {len(found) - len(stopping)} to know.** " + (
        "A rollout now would be refused before it touches anything." if stopping else "Nothing stands in the way of a rollout."))
    for title, some in (("What refuses", stopping), ("To know", [finding for finding in found if finding not in stopping])):
        rows = [row | {"severity": _answer(finding, desk.accepted)}
                for row, finding in zip(of_findings(some, desk.accepted), some, strict=True)]
        page.part(title, [listed(row) for row in rows], "findings")
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
    steps = [line for number, group in enumerate(document["groups"], 1) for line in _group(group, f"hold {number}")]
    steps += [line for group in document["cleanup"] for line in _group(group, "cleanup, when asked for")]
    page.part("Steps", steps, "steps")
    first_pass = document["first_pass_estimate"]
    if first_pass:
        page.add("", f"First pass over the rows: about {first_pass['estimate_ms'] / 1000:,.1f} s ({words(first_pass['basis'])})")
    page.part("Every statement, in order", [fenced(f"{statement};") for statement in planned.every_statement(document)], "statements")
    return str(page)


def _group(group: dict[str, Any], hold: str) -> list[str]:
    together = hold if group["in_one_hold"] else "alone"
    steps = [item(f"**{words(step['step'])}**, {together}", f"Forward: {_way(step, planned.met(step))}",
                  f"Back: {words(planned.algorithm(step['back']))}, about {duration(step['back']['estimate_ms'] / 1000)}")
             for step in group["steps"]]
    return steps + ([item(f"**sync triggers and canary**, {hold}", f"others meet: {planned.MEETS['metadata']}")] if group["sync"] else [])


def _way(way: dict[str, Any], met: str) -> str:
    """How a step goes one way, what others meet meanwhile, and how long it may take."""
    return words(f"{planned.algorithm(way)}, about {duration(way['estimate_ms'] / 1000)} ({way['basis']}); "
                 f"rebuilds: {planned.REBUILDS[way['rebuilds']]}; others meet: {met}")


def rehearsal_page(desk: Rollout, rehearsed: Rehearsed, steps: list[dict[str, Any]]) -> str:
    """Each step up and down, as the server took it on the clone."""
    page = _page(desk, "rehearsal", "rollout rehearse {}")
    page.add("", "**Every step goes up and comes back, each landing exactly one stair lower.** The live table was not touched.")
    if rehearsed.sample:
        page.add("", f"{rehearsed.sample.rows} sampled rows went up and came back; the first pass changed "
                 f"{rehearsed.sample.changed} of them.")
    page.part("As the server took each step", [item(f"**{words(step['step'])}**", *(
        f"{way}, {'alone' if step[side]['alone'] else 'in a hold'}: {_way(step[side], planned.MEETS[step[side]['locks']])}"
        for side, way in (("up", "Forward"), ("down", "Back")))) for step in steps], "steps")
    page.part("Notes", [f"- {words(note)}" for note in rehearsed.notes], "notes")
    return str(page)


def _page(desk: Rollout, what: str, command: str) -> Page:
    page = Page(command.format(desk.plan.called))
    page.add(f"# {what}: {words(desk.plan.id)}", "", f"Table {words(desk.schema)}.{words(desk.table)}, asked by "
             f"**{words(desk.person.actor)}**")
    return page
