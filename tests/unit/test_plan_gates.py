"""`[gates]`: what can be said, and what is refused with file and line."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from steps import plan_loader
from steps.errors import PlanInvalid, WrongUsage
from steps.phase import Phase
from tests.plans import SYNC, written

WHOLE = """
[gates]
approve = ["deploy", "shadow_write"]
approvers = ["Ann Lee", "ben"]
four_eyes = true
expires_s = 3600
soak = { shadow_write = 604800 }

[gates.window]
not_before = 2026-12-01T00:00:00
not_after = 2027-01-01T00:00:00+00:00
weekdays = ["tue", "wed"]
from = "22:00"
to = 04:00:00
time_zone = "Europe/Berlin"
phases = ["deploy", "cleanup"]
"""


def test_all_of_it_is_read_and_is_no_part_of_the_plans_identity(tmp_path: Path) -> None:
    plain = plan_loader.load(str(written(tmp_path)))
    plan = plan_loader.load(str(written(tmp_path, tail=SYNC + WHOLE)))
    (window,) = plan.gates.window

    assert [phase for phase in Phase if plan.gates.needs_approval(phase)] == [Phase.DEPLOY, Phase.SHADOW_WRITE, Phase.CLEANUP]
    assert (plan.gates.approvers, plan.gates.four_eyes, plan.gates.soak) == (("Ann Lee", "ben"), True, {Phase.SHADOW_WRITE: 604_800})
    assert window.window.not_before == datetime(2026, 11, 30, 23, tzinfo=UTC)  # the wall's midnight in Berlin
    assert window.window.not_after == datetime(2027, 1, 1, tzinfo=UTC)
    assert window.told == ("tue, wed; 22:00 to 04:00; from 2026-12-01 00:00:00+01:00 (Europe/Berlin) on; "
                           "until 2027-01-01 01:00:00+01:00 (Europe/Berlin), Europe/Berlin")
    assert plan.gates.windows_of(Phase.DEPLOY) == (window,)
    assert plan.gates.windows_of(Phase.BACKFILL) == ()
    assert plan.identity_hash() == plain.identity_hash()


def test_without_a_section_only_cleanup_waits_for_a_person(tmp_path: Path) -> None:
    gates = plan_loader.load(str(written(tmp_path))).gates

    assert [phase for phase in Phase if gates.needs_approval(phase)] == [Phase.CLEANUP]
    assert (gates.window, gates.soak, gates.approvers, gates.four_eyes) == ((), {}, (), False)


def test_a_window_holds_for_every_phase_that_changes_something_and_there_may_be_several(tmp_path: Path) -> None:
    written(tmp_path, tail=SYNC + '[[gates.window]]\nweekdays = ["mon"]\n[[gates.window]]\nweekdays = ["tue"]\nphases = ["verify"]\n')
    gates = plan_loader.load(str(tmp_path)).gates

    assert [len(gates.windows_of(phase)) for phase in Phase] == [1, 1, 1, 1, 1, 1]
    assert gates.windows_of(Phase.VERIFY)[0].weekdays == ("tue",)


@pytest.mark.parametrize(("section", "line", "reason"), [
    ('[gates]\napprove = ["deplyo"]', "approve", "'pre_deploy', 'deploy'"),
    ('[gates]\napprove = ["deploy", "deploy"]', "approve", "names deploy twice"),
    ('[gates]\napprovers = ["ann", "ann"]', "approvers", "names ann twice"),
    ('[gates]\napprovers = [" "]', "approvers", "at least 1 character"),
    ("[gates]\nexpires_s = 0", "expires_s", "greater than or equal to 1"),
    ("[gates]\nsoak = { cleanup = 1 }", "soak", "nothing waits for its soak"),
    ("[gates]\nsoak = { verfiy = 1 }", "soak", "Input should be"),
    ("[gates]\nsoak = { verify = -1 }", "soak", "greater than or equal to 0"),
    ("[gates]\n[gates.window]\ntime_zone = 'Mars/Olympus'", "time_zone", "no time zone is called 'Mars/Olympus'"),
    ("[gates]\n[gates.window]\nfrom = '22:00'", "[gates.window]", "from and to go together"),
    ("[gates]\n[gates.window]\nfrom = '22:00'\nto = '22:00'", "[gates.window]", "are the same"),
    ("[gates]\n[gates.window]\nfrom = '22:00+01:00'\nto = '23:00'", "from", "leave its offset out"),
    ("[gates]\n[gates.window]\nfrom = 22\nto = '23:00'", "from", "a time as 22:00"),
    ("[gates]\n[gates.window]\nnot_before = 2026", "not_before", "write a date as"),
    ("[gates]\n[gates.window]\nweekdays = ['tu']", "weekdays", "'tue'"),
    ("[gates]\n[gates.window]\nphases = []", "phases", "at least 1 item"),
    ("[gates]\n[gates.window]\ntime_zone = 'UTC'", "[gates.window]", "says no time"),
    ("[gates]\n[gates.window]\nnot_before = 2026-12-02T00:00:00\nnot_after = 2026-12-01T23:00:00", "[gates.window]", "is not earlier"),
    ("[gates]\n[gates.window]\nnot_before = 2026-12-01T00:00:00\nnot_after = 2026-12-01T01:00:00\nweekdays = ['sun']", "[gates.window]",
     "never opens"),
    ("[gates]\n[[gates.window]]\nweekdays = ['sun']\n[[gates.window]]\nweekday = ['sun']", "weekday =", "unknown key"),
])
def test_what_cannot_be_is_refused_with_file_and_line(tmp_path: Path, section: str, line: str, reason: str) -> None:
    file = written(tmp_path, tail=f"{SYNC}\n{section}\n") / "plan.toml"
    wanted = next(number for number, text in enumerate(file.read_text().splitlines(), 1) if text.startswith(line))

    with pytest.raises(PlanInvalid) as raised:
        plan_loader.load(str(tmp_path))

    assert raised.value.subject == f"{file}:{wanted}"
    assert reason in raised.value.reason


def test_a_setting_on_the_command_line_is_named_as_such(tmp_path: Path) -> None:
    written(tmp_path)

    assert plan_loader.load(str(tmp_path), ["gates.approve=['verify']", "gates.window.from=22:00", "gates.window.to=04:00"]).gates.window
    with pytest.raises(WrongUsage, match=r"gates.expires_s"):
        plan_loader.load(str(tmp_path), ["gates.expires_s=0"])


@pytest.mark.parametrize(("file", "override"), [
    ('approve = ["backfill"]', "gates.approve=[]"), ("four_eyes = true", "gates.four_eyes=false"),
    ('approvers = ["ben"]', "gates.approvers=[]"), ('approvers = ["ben"]', "gates.approvers=['ben', 'ann']"),
    ("expires_s = 60", "gates.expires_s=61"), ("soak = { deploy = 60 }", "gates.soak={ deploy = 59 }"),
    ('[gates.window]\nweekdays = ["tue"]', "gates.window.weekdays=['tue', 'wed']")])
def test_nobody_takes_a_gate_out_of_his_own_way(tmp_path: Path, file: str, override: str) -> None:
    written(tmp_path, tail=SYNC + f"[gates]\n{file}\n")

    with pytest.raises(WrongUsage, match="asks less than the gates in the plan's file"):
        plan_loader.load(str(tmp_path), [override])
    assert plan_loader.load(str(tmp_path)).gates


def test_who_asks_for_more_may(tmp_path: Path) -> None:
    written(tmp_path, tail=SYNC + "[gates]\napprovers = ['ben', 'carl']\nexpires_s = 60\n")

    gates = plan_loader.load(str(tmp_path), ["gates.approvers=['ben']", "gates.expires_s=30", "gates.four_eyes=true"]).gates
    assert (gates.approvers, gates.expires_s, gates.four_eyes) == (("ben",), 30, True)

