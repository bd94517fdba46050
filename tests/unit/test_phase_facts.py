"""What a phase came to, in figures and one sentence, and the page that a manager reads."""

from __future__ import annotations

from typing import Any

import pytest

from flows import phase_facts, phase_page
from flows.markdown import LONGEST_BYTES
from flows.phase_page import Head
from steps import acknowledged
from tests.reading import READ, kinds, shown
from tests.trails import HOSTILE, Trail, weeks

HEAD = Head("shop.Job", "p", "ann", "CHG-1", 1000, "p")


def facts_of(trail: Trail, run: int, stretch: int, **more: Any) -> phase_facts.Facts:
    events = phase_facts.stretches(trail.runs[run]["events"])[stretch]
    return phase_facts.of(events[0]["phase"], events[0]["direction"], events, **more)


def test_figures_of_a_phase_with_holds_and_a_pass_that_waited() -> None:
    facts = facts_of(weeks(), 0, 0, planned_s=60)

    assert (facts.name, facts.ended, facts.direction) == ("1. pre_deploy", "done", "forward")
    assert (facts.rows_changed, facts.rows_examined) == (19000, 20000)
    assert (facts.longest_hold_ms, facts.waited_for_gap_s, facts.paused_s) == (120.0, 0.6, 5.0)
    assert (facts.planned_s, facts.actual_s) == (60, 25.9)  # the hold once, not its statement; the pass with its step
    assert facts.result == "Done: 1 schema step, 19000 of 20000 rows filled."


@pytest.mark.parametrize(("run", "stretch", "name", "ended", "said"), [
    (1, 0, "4. verify", "fail", "Failed: 1 of 20000 rows disagree (status: 1; keys: c7)"),
    (1, 1, "rollback of deploy", "done", "Undone."),
    (2, 1, "5. shadow_write", "done", "Done: 20000 rows looked at, all agree.")])
def test_one_sentence_says_what_came_of_it(run: int, stretch: int, name: str, ended: str, said: str) -> None:
    facts = facts_of(weeks(), run, stretch)

    assert (facts.name, facts.ended, facts.result) == (name, ended, said)


@pytest.mark.parametrize(("outcome", "detail", "ended", "said"), [
    ("clean", {}, "done", "Both sides agree: 9 rows looked at, every row of the round."),
    ("found", {"differing": 2, "triggers": "off"}, "parity lost",
     "Parity is lost: 2 rows differ; sync triggers are off. 9 rows looked at."),
    ("unfinished", {"held_up": "its 5 s have ended"}, "unfinished",
     "Not to the end: its 5 s have ended; 9 rows looked at, none differs so far."),
    ("could not look", {"could_not_look": ["rows: denied"]}, "could not look", "Could not look: rows: denied.")])
def test_a_look_of_the_parity_watch_says_what_it_saw(outcome: str, detail: dict[str, Any], ended: str, said: str) -> None:
    trail = Trail()
    trail.run(0, 5)
    look = trail.event(1, "shadow_write", "parity watch", outcome, row_count=9, detail=detail)

    facts = phase_facts.of("watch", "forward", [look])

    assert (facts.ended, facts.result) == (ended, said)


def test_how_far_cleanup_got_is_told_without_the_names_of_its_steps() -> None:
    trail = Trail()
    trail.run(0, 5)
    for step in ("command for v2", "health", "trigger x", "trigger y", "cleanup_tombstones", "hold for 3 objects"):
        trail.event(1, "cleanup", step, "done")
    assert facts_of(trail, 0, 0).result == ("Done: V2 is out, by command, health, sync has ended, the old columns are out of reach, and "
                                            "can come back as they are until the drop.")

    trail.event(2, "cleanup", "archive", "done", row_count=9)
    trail.event(2, "cleanup", "cleanup_drop_columns", "done")
    assert facts_of(trail, 0, 0).result.endswith("the old columns are out of reach, 9 rows archived, the old columns are dropped.")


def test_an_error_is_the_result_and_the_step_it_came_from_is_named() -> None:
    trail = Trail()
    trail.run(0, 5, 4, "x")
    trail.event(1, "deploy", "command for v1", "failed", detail={"error": "ended with 3"})

    assert facts_of(trail, 0, 0).result == "Did not end well at “command for v1”: ended with 3"
    assert facts_of(trail, 0, 0, error="deploy: ended with 3").result.endswith(": deploy: ended with 3")
    assert facts_of(trail, 0, 0, error="cancelled by SIGINT").result.startswith("Cancelled")


def test_who_said_that_v1_is_out_is_told_first() -> None:
    event = {"phase": "deploy", "direction": "forward", "step": "confirmed by hand", "outcome": "done", "detail": {"deployed_by": "ben"},
             "at": "2026-11-30T00:00:00.000Z", "duration_ms": 0, "row_count": None}

    assert phase_facts.of("deploy", "forward", [event]).result == "Done: V1 is out, as ben says."


def test_who_waits_for_a_person_has_not_failed() -> None:
    why = "deploy: a person has to confirm; then call: rollout run p"

    facts = phase_facts.of("deploy", "forward", [], error=f"{phase_facts.WAITS}: {why}")

    assert (facts.ended, facts.result) == ("waits for a person", f"Waits for a person: {why}")


def test_what_only_stands_beside_the_work_makes_no_phase() -> None:
    trail = Trail()
    trail.run(0, 5)
    trail.event(1, "pre_deploy", "findings", acknowledged.TOLD)
    trail.event(1, "cleanup", "gate", "approved")
    trail.event(2, "pre_deploy", "hold for 2 objects", detail={"held_ms": 3.0})
    trail.event(2, "pre_deploy", "trigger x", direction="back")
    trail.event(3, "pre_deploy", "hold for 2 objects", "failed")

    [stretch] = phase_facts.stretches(trail.runs[0]["events"])
    assert [event["step"] for event in stretch] == ["hold for 2 objects", "trigger x", "hold for 2 objects"]


def test_why_a_phase_went_back_is_the_failure_or_who_asked_for_it() -> None:
    trail = weeks()
    assert phase_facts.went_back(trail.runs[1]) == [
        {"phase": "deploy", "at": trail.runs[1]["events"][-1]["at"], "by": "ben", "why": "table Job: 1 of 20000 rows disagree"}]
    assert phase_facts.went_back(trail.runs[0]) == []
    trail.run(9e6, 5, verb="rollback", actor="dora", reason="CHG-9 withdrawn")
    trail.event(9e6 + 1, "shadow_write", "ended", direction="back")
    assert [back["why"] for back in phase_facts.went_back(trail.runs[-1])] == ["dora asked for it: CHG-9 withdrawn"]


def test_the_page_has_result_figures_and_people_first_then_tables_and_sql() -> None:
    trail = weeks()
    accepted = trail.event(2, "pre_deploy", "accepted: blockers", acknowledged.ACCEPTED, detail={
        "by": "ann", "check": "blockers", "subject": "connection 7", "found": "holds the table"})
    gate = trail.event(2, "pre_deploy", "gate", "approved", detail={"by": "boss", "why": "looked at it"})
    events = [accepted, gate, *phase_facts.stretches(trail.runs[0]["events"])[0]]
    page = phase_page.markdown(facts_of(trail, 0, 0, planned_s=60), HEAD, events, tried_before=2)

    lines = page.splitlines()
    assert lines[0] == "# 1. pre_deploy"
    assert lines[2] == "**Done: 1 schema step, 19000 of 20000 rows filled.**"
    assert "By **ann**: CHG-1" in lines
    for line in ("| took | 25.9 s (60 s planned) |", "| rows changed | 19,000 |", "| tries of this phase | 3 |",
                 "| longest hold, clients wait meanwhile | 120 ms of 1,000 ms allowed |", "| at (UTC) | step | outcome | ms | rows |",
                 "| blockers | ann | connection 7 | holds the table |"):
        assert line in lines
    order = [lines.index(f"## {title}") for title in ("Decisions", "Steps", "Findings accepted", "Details", "SQL and commands")]
    assert order == sorted(order)
    assert "- approved, " in page
    assert ": by **boss**: looked at it" in page
    assert "```sql\nALTER TABLE `Job` ADD COLUMN `a` INT\n```" in page
    assert "intervals" not in page  # drawn, not read


def test_a_phase_that_went_back_says_because_of_what() -> None:
    head = Head("shop.Job", "p", "ben", "CHG-2", 1000, "p", "4. verify: 1 of 20000 rows disagree")

    assert "**Because:** 4. verify: 1 of 20000 rows disagree" in phase_page.markdown(facts_of(weeks(), 1, 1), head, [])


def test_a_page_of_a_thousand_long_statements_stays_small_and_says_what_is_missing() -> None:
    trail = Trail()
    trail.run(0, 5)
    for number in range(1000):
        trail.event(number, "pre_deploy", f"{number:03}_step", statement=f"ALTER TABLE t COMMENT '{'x' * 9000}'", duration_ms=1.0)
    page = phase_page.markdown(facts_of(trail, 0, 0), HEAD, trail.runs[0]["events"])

    assert len(page.encode()) <= LONGEST_BYTES
    assert "left out here; all of them: `rollout report p`" in page
    assert "more characters)" in page


def test_hostile_texts_stay_texts_on_the_page() -> None:
    trail = Trail()
    trail.run(0, 5)
    trail.event(1, "pre_deploy", HOSTILE, statement=f"-- {HOSTILE}\n```\n{HOSTILE}", detail={"why": HOSTILE})
    head = Head(f"s.{HOSTILE}", "p", HOSTILE, HOSTILE, 1000, "p")
    page = phase_page.markdown(facts_of(trail, 0, 0, error=HOSTILE), head, trail.runs[0]["events"])

    assert not kinds(page) & {"html_inline", "html_block", "image", "link_open", "s_open"}
    assert next(token.content for token in READ.parse(page) if token.type == "inline") == "1. pre_deploy"
    assert shown(page).count("<script>alert(1)</script>") >= 6
    assert "\u202e" not in page


@pytest.mark.parametrize(("statement", "language"), [("ALTER TABLE x", "sql"), ("-- note\nSELECT 1", "sql"), ("./deploy.sh v1", "sh"),
                                                     ("kubectl apply", "sh")])
def test_commands_are_not_coloured_as_sql(statement: str, language: str) -> None:
    assert phase_page.language(statement) == language
