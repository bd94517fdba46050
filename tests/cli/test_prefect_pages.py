"""The pages that looks and runs leave in Prefect, made without it: what others wrote in a list that a narrow page can show."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from flows import look_pages, planned, run_pages
from steps import forecast
from steps.checks import Finding
from steps.phase import Phase
from steps.rollout import Rollout
from tests.conftest import App
from tests.reading import kinds, shown
from tests.trails import HOSTILE

Rollouts = Callable[..., Rollout]
FOUND = [Finding("statuses", "refuse", "column Job.status", "3 values that the map does not know", "add them to the map", "null-statuses"),
         Finding("blockers", "refuse", "table Job", "could not look: denied", "grant it", "could-not-look:blockers", could_not_look=True),
         Finding("claims", "warn", HOSTILE, HOSTILE, HOSTILE)]


@pytest.fixture
def desk(rollouts: Rollouts, seeded: App) -> Rollout:
    return rollouts()


def test_findings_are_a_list_in_which_each_part_has_a_line_of_its_own(desk: Rollout) -> None:
    lines = look_pages.check_page(desk, FOUND).splitlines()

    begins = lines.index("- **refuse: statuses**, column Job.status: 3 values that the map does not know  ")
    assert lines[begins + 1:begins + 3] == ["  Remedy: add them to the map  ", "  Accept key: `null-statuses`"]
    assert "- **could not look: blockers**, table Job: could not look: denied  " in lines
    assert lines.index("## What refuses") < begins < lines.index("## To know")
    assert sum(line.startswith("  Accept key: ") for line in lines) == 2
    assert not [line for line in lines if line.startswith("|")]


def test_a_run_tells_its_findings_as_the_check_does_and_hostile_ones_stay_texts(desk: Rollout) -> None:
    rows = run_pages.of_findings(FOUND, frozenset({"null-statuses"}))
    page, _ = run_pages.of_plan(desk, [Phase.PRE_DEPLOY], rows, back=True)

    assert "- **accepted: statuses**, column Job.status: 3 values that the map does not know  \n  Remedy: add them to the map  " in page
    assert [row["accept key"] for row in rows] == ["null-statuses", "could-not-look:blockers", "-"]
    assert not kinds(page) & {"html_inline", "html_block", "image", "link_open", "s_open"}
    assert shown(page).count("<script>alert(1)</script>") == 3
    assert "None: the checks found nothing to say." in run_pages.of_plan(desk, [Phase.PRE_DEPLOY], [], back=True)[0]


def test_what_a_run_will_do_and_did_stands_in_lists_and_its_sentences_are_whole(desk: Rollout, begun: App) -> None:
    plan, _ = run_pages.of_plan(desk, list(Phase), [], back=False)
    [run] = desk.ledger.runs()
    desk.ledger.run_id = run["run_id"]
    summary, _ = run_pages.of_run(desk, "run", 0, "done", {"4. verify": "../artifact/7"})

    assert "- **1. pre_deploy**: Give the table what the new application needs while the old one keeps working: columns, indexes, " in plan
    assert "|" not in plan.partition("## SQL, in order")[0]
    assert "- **[4. verify](../artifact/7)**, done, took " in summary
    assert ": Done: 9 rows looked at, 5 smoke queries, nothing wrong.\n" in summary
    assert "- **5. shadow_write**, done, took " in summary


def test_too_many_findings_are_cut_between_two_of_them_and_counted(desk: Rollout) -> None:
    many = [Finding("statuses", "refuse", "column Job.status", "x" * 1000, "y" * 1000, "null-statuses")] * 100
    page = look_pages.check_page(desk, many)

    assert page.count("- **refuse: statuses**") == page.count("  Accept key: ") < 100
    assert f"*{100 - page.count('  Accept key: ')} of 100 findings left out here" in page


def test_each_step_of_plan_and_rehearsal_is_an_item_with_both_ways(desk: Rollout) -> None:
    plan = look_pages.plan_page(desk, planned.document(desk))
    rehearsal = look_pages.rehearsal_page(desk, desk.rehearsed(), forecast.steps(desk))

    for page in (plan, rehearsal):
        lines = page.splitlines()
        begins = next(number for number, line in enumerate(lines) if line.startswith("- **010_widen_job_type**"))
        assert lines[begins + 1].startswith("  Forward")
        assert lines[begins + 1].endswith("  ")
        assert "others meet: " in lines[begins + 1]
        assert lines[begins + 2].startswith("  Back")
        assert not [line for line in lines if line.startswith("|")]
    assert rehearsal.count("  Forward, ") == rehearsal.count("  Back, ") > 5
    assert "**sync triggers and canary**" in plan
    assert "- **010_widen_job_type**, one hold: COPY, about " in run_pages.of_plan(desk, list(Phase), [], back=False)[0]
