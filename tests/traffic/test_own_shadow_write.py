"""
A real V1 that writes both sides itself, with V0 and the triggers gone; back with both.

Beside the triggers, switched on and off while it runs: `tests/traffic/test_every_phase.py`.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from flows import actions
from flows.demo.traffic import Report
from flows.demo.traffic.session import Session
from flows.params import RunRequest
from flows.params import Target as Where
from steps import sync_install
from tests.applications import rolling
from tests.applications.stage import BY, PLAN, REASON, Stage

pytestmark = pytest.mark.timeout(600)  # the first of these tests may have to install Node packages

SOAK_S = 3.0


@pytest.fixture(autouse=True)
def slept() -> None:
    """Waits are real here: tries for a gap a millisecond apart would kill transactions of the traffic (F24)."""


@pytest.fixture
def triggers(stage: Stage) -> Callable[[], int]:
    """How many there are on the table now."""

    def count() -> int:
        session = Session(stage.url, "test")
        found = session.rows("SHOW TRIGGERS")
        session.close()
        return len(found)

    return count


def clean(report: Report) -> tuple[dict[int | str, int], int, int, int, int]:
    return dict(report.failed), report.wrong_reads, report.run_twice, report.deadlocks, report.snapshots


def acknowledged(report: Report, label: str) -> int:
    return report.phases[label].acknowledged_writes


def test_alone_with_v0_gone_the_triggers_come_back_and_find_nothing_and_then_v0_may(stage: Stage, triggers: Callable[[], int]) -> None:
    """The ADR's own picture: renames in place, V0 stopped, V1 writes status and lifecycleStatus itself."""
    settings = ("rename_mode=in_place", *stage.switch())
    stage.start("v0")
    stage.soak("V0 alone", SOAK_S / 2)
    rolling.go(stage.url, stage.folder, "v0")
    stage.forward(*settings, accept=["rename-in-place"])
    request = RunRequest(plan=PLAN, by=BY, reason=REASON, settings=[*settings])
    with actions.desk(request, stage.database) as rollout:
        sync_install.take_off(rollout)
    taken_off, before = triggers(), rolling.switched(stage.folder)
    stage.soak("V1's own alone", SOAK_S)
    alone = rolling.switched(stage.folder)
    assert stage.forward(*settings, accept=["rename-in-place"]).outcome == "done"  # every row held against its other side
    put_back = triggers()
    assert stage.back(*settings, to=Where.V0).outcome == "done"
    stage.start("v0")
    stage.soak("V0 again", SOAK_S)
    report, wrong = stage.ended(old_side_only=True)

    assert (clean(report), wrong) == (({}, 0, 0, 0, 0), []), report.examples
    assert (taken_off, put_back, triggers()) == (0, 2, 0)
    assert alone["sent"] > before["sent"] + 5
    assert acknowledged(report, "V1's own alone") > 3
    assert acknowledged(report, "V0 again") > 10
