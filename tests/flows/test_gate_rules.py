"""`[gates]` taken out of the plan's file by hand: told by the checks, to whoever approves, in the audit trail."""

from __future__ import annotations

import pytest

from flows import actions, again
from flows.conductor import PlainConductor
from flows.gate_page import page
from flows.params import Through
from flows.report import audit_trail, text
from steps.errors import ApprovalMissing
from steps.gate_rules import loosened
from tests.flows.deploy_stage import Stage
from tests.flows.test_gates import answered, gated, rollout, run, trail
from tests.flows.test_hearing import back

STRICT = """
approve = ["deploy"]
approvers = ["ben"]
four_eyes = true
expires_s = 3600
soak = {deploy = 60}
[gates.window]
from = 00:00:00
to = 23:59:59
time_zone = "Asia/Shanghai"
phases = ["cleanup"]
"""


def findings(stage: Stage) -> list[tuple[str, str]]:
    return [(found.check, found.severity) for found in actions.look_first(rollout(stage)) if found.check == "gates"]


def test_rules_that_stay_or_become_stricter_are_no_finding(stage: Stage) -> None:
    gated(stage, STRICT.replace("soak = {deploy = 60}\n", ""))
    with pytest.raises(ApprovalMissing):
        run(stage)
    assert loosened(rollout(stage)) == []

    gated(stage, STRICT)

    assert loosened(rollout(stage)) == []


def test_rules_taken_out_of_the_file_are_told_until_a_gate_was_passed_since(stage: Stage) -> None:
    gated(stage, STRICT)
    with pytest.raises(ApprovalMissing):
        run(stage)
    gated(stage, "")

    (found,) = loosened(rollout(stage))

    assert (found.severity, findings(stage)) == ("warn", [("gates", "warn")])
    assert "asks for less than at the run of " in found.what
    assert found.what.endswith(" by ann: approve, four_eyes, approvers, window, expires_s, soak")
    assert run(stage, by="dora").did == ["deploy"]
    told = stage.app.rows("SELECT detail FROM _rollout_event WHERE step = 'findings'")
    assert [found.what in str(row[0]) for row in told].count(True) == 1
    assert found.what in text(audit_trail(rollout(stage).ledger))
    assert loosened(rollout(stage)) == [found]  # whoever approves cleanup has not read it yet
    run(stage, Through.CLEANUP, accepted=("cleanup", "cleanup-unseen", "cleanup-unready"), deployed_by="ann")

    assert (loosened(rollout(stage)), trail(stage, "cleanup")) == ([], ["approved", "opened"])


def test_a_way_back_between_hides_nothing(stage: Stage) -> None:
    gated(stage, STRICT)
    with pytest.raises(ApprovalMissing):
        run(stage)
    gated(stage, 'approve = ["deploy"]')
    back(stage)
    with pytest.raises(ApprovalMissing):
        run(stage, Through.DEPLOY)

    (found,) = loosened(rollout(stage))

    assert found.what.endswith(" by ann: four_eyes, approvers, window, expires_s, soak")


def test_whoever_approves_reads_it_on_the_page_of_the_gate(stage: Stage) -> None:
    gated(stage, STRICT)
    with pytest.raises(ApprovalMissing):
        run(stage)
    gated(stage, 'approve = ["deploy"]')
    desk = rollout(stage, "dora")
    with pytest.raises(ApprovalMissing) as closed:
        actions.run(desk, again.request(desk, str(stage.folder), "dora", "CHG-2"), PlainConductor())

    shown = page(desk, closed.value)

    assert "asks for less than at the run of " in shown
    assert all(key in shown for key in ("four_eyes", "approvers", "window", "soak"))
    answered(stage, by="eve")
    assert trail(stage)[-1] == "approved"


def test_a_run_of_an_older_tool_kept_no_rules(stage: Stage) -> None:
    gated(stage, STRICT)
    with pytest.raises(ApprovalMissing):
        run(stage)
    stage.app.run("UPDATE _rollout_run SET options = JSON_REMOVE(options, '$.gates')")
    gated(stage, "")
    assert loosened(rollout(stage)) == []

    stage.app.run("UPDATE _rollout_run SET options = JSON_SET(options, '$.gates', JSON_OBJECT('of_another_version', 1))")

    assert loosened(rollout(stage)) == []
