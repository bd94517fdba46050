"""The break-glass SQL of `deploy/runbook.md`, sent to a real server in the state it is for; and that the tool goes on from there."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from flows import actions
from flows.cli.app import app as commands
from flows.conductor import PlainConductor
from flows.gate_forms import Approval, Confirmation
from flows.params import RollbackRequest, RunRequest, Through
from steps import plan_loader, rungs
from steps.phase import FORWARD, Phase
from steps.plan import Plan
from steps.rollout import Rollout
from tests.conftest import BY_COMMAND, App

RUNBOOK = (Path(__file__).resolve().parents[2] / "deploy" / "runbook.md").read_text()
BLOCKS = re.findall(r"<!-- broken: ([a-z_]+)(?:; then: ([a-z ]+))? -->\n```sql\n(.*?)```", RUNBOOK, re.DOTALL)
QUICK = ("cleanup.deploy=true", "cleanup.rollback_deploy=true", "cleanup.min_age_s=0", "cleanup.observe_s=0")
COOLING = {"tombstones": "cleanup.cooling_s=3600", "dropped": "cleanup.cooling_s=0"}
WHO = {"plan": "ai_analysis_job", "by": "on call", "reason": "the tool is broken", "database": "command line"}
ACCEPTED = ("cleanup", "cleanup-unseen")
FIRST_WORDS = {"Who", "Why", "First", "Last", "Plan", "Findings", "Deploy", "Also", "Or", "Undo", "End", "Database", "Confirmed", "Note",
               "Approver", "Decision", "Reason"}
"""Of what is set in italics as a field of a form."""
pytestmark = pytest.mark.usefixtures("remembered_rehearsals")
Opened = Callable[..., Rollout]


def planned(state: str) -> Plan:
    return plan_loader.load("ai_analysis_job", (*BY_COMMAND, *QUICK, COOLING.get(state, "cleanup.cooling_s=0")))


def forward(rollouts: Opened, state: str) -> None:
    through = Through.SHADOW_WRITE if state == "shadow_write" else Through.CLEANUP
    actions.run(rollouts(planned(state), frozenset(ACCEPTED)), RunRequest(**WHO, through=through, accept=list(ACCEPTED)), PlainConductor())


def columns(app: App) -> set[str]:
    return {str(row[0]) for row in app.rows("SHOW COLUMNS FROM AiAnalysisJob")}


@pytest.mark.parametrize(("state", "then", "sql"), BLOCKS, ids=[f"{state}-{number}" for number, (state, *_) in enumerate(BLOCKS)])
def test_break_glass_sql_does_what_the_runbook_says_and_the_tool_goes_on(rollouts: Opened, seeded: App, state: str, then: str,
                                                                         sql: str) -> None:
    forward(rollouts, state)
    by_hand = [seeded.rows(statement) for statement in sql.split(";\n") if statement.strip()]

    if then == "triggers gone":
        assert seeded.triggers() == []
        forward(rollouts, state)
        assert len(seeded.triggers()) == 2
    elif then == "old columns back":
        removed = set(planned(state).removed_columns)
        assert removed <= columns(seeded)
        assert not {rungs.tombstone(column) for column in removed} & columns(seeded)
        request = RollbackRequest(**WHO, phase=Through.CLEANUP, accept=list(ACCEPTED))
        actions.rollback(rollouts(planned(state), frozenset(ACCEPTED)), request, PlainConductor())
        assert len(seeded.triggers()) == 2
        assert seeded.value("SELECT state FROM _rollout_phase WHERE phase = 'cleanup'") == "undone"
    else:
        assert by_hand[0]  # it shows something


def test_every_block_of_sql_says_for_which_state_it_is() -> None:
    assert RUNBOOK.count("```sql") == len(BLOCKS)


def test_commands_and_phases_are_those_of_the_code() -> None:
    known = {command.name or command.callback.__name__ for command in commands.registered_commands if command.callback}
    assert set(re.findall(r"`rollout ([a-z]+)", RUNBOOK)) <= known
    assert re.findall(r"^### \d\. (\w+)", RUNBOOK, re.MULTILINE) == [phase.value for phase in FORWARD]


@pytest.mark.parametrize("phase", FORWARD)
def test_each_phase_says_what_to_watch_when_to_go_back_and_by_which_button_and_command(phase: Phase) -> None:
    section = RUNBOOK.partition(f"### {phase.label}")[2].partition("\n#")[0]

    rows = dict(re.findall(r"^\| (\w[\w ]*) \| (.+) \|$", section, re.MULTILINE))
    assert list(rows) == ["watch", "normal", "go back when", "button", "command"]
    assert f"rollback_{phase.value}" in rows["button"]
    assert f"rollout rollback PLAN {phase.value}" in rows["command"]


def test_buttons_and_form_fields_are_those_of_the_deployments() -> None:
    assert set(re.findall(r"`(rollback\w*)`", RUNBOOK)) == {"rollback", *(f"rollback_{phase.value}" for phase in Through)}
    titles = {str(field.title) for form in (RunRequest, RollbackRequest) for field in form.model_fields.values()}
    asked = {name.replace("_", " ").title() for form in (Approval, Confirmation) for name in form.model_fields}  # as its form has them
    named = {text for text in re.findall(r"(?<!\*)\*([A-Za-z][^*\n|]+?)\*(?!\*)", RUNBOOK) if text.split()[0] in FIRST_WORDS}
    assert {"Who asks", "Why", "First phase", "Last phase", "Plan values to set", "Confirmed By", "Note"} <= named <= titles | asked
