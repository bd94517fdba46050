"""
Real applications through every phase, through cleanup to V2, and back through every single phase, under load and with every habit.

What `make traffic` shows at length and as one table; here each stay is short, and the end state is looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.mysql_server import Server
from flows.demo.traffic import Report
from flows.demo.traffic.generations import V0_COLUMNS, V1_COLUMNS, V2_COLUMNS
from flows.params import Through
from tests.applications import habits, rolling
from tests.applications.scenarios import PHASES_BACK
from tests.applications.stage import EverybodysStage
from tests.traffic.conftest import staged

pytestmark = pytest.mark.timeout(600)  # the first of these tests may have to install Node packages

SOAK_S = 1.0
FORWARD = ["pre_deploy", "deploy", "backfill", "verify", "shadow_write"]


@pytest.fixture(autouse=True)
def slept() -> None:
    """Waits are real here: tries for a gap a millisecond apart would kill transactions of the traffic (F24)."""


@pytest.fixture
def stage(server: Server, tmp_path: Path) -> Iterator[EverybodysStage]:
    with staged(EverybodysStage, server, tmp_path) as found:
        yield found


def columns(stage: EverybodysStage) -> set[object]:
    return {row[0] for row in stage.rows("SHOW COLUMNS FROM AiAnalysisJob")}


def states(stage: EverybodysStage) -> dict[object, object]:
    return dict(stage.rows("SELECT phase, state FROM _rollout_phase"))  # type: ignore[arg-type]


def reprepared(stage: EverybodysStage) -> int:
    """How often the server prepared a cached statement anew, because its table had changed."""
    return int(str(stage.rows("SHOW GLOBAL STATUS LIKE 'Com_stmt_reprepare'")[0][1]))


def present(report: Report, label: str) -> set[str]:
    """Which applications answered under *label*; the one request that a change of labels may find under way left out."""
    seen = Counter[str]()
    for (phase, side), counts in report.sides.items():
        seen[" ".join(side.split()[:2])] += counts.requests if phase == label else 0
    return {side for side, requests in seen.items() if requests > 1}


def test_through_every_phase_to_v2_and_back_through_every_single_one(stage: EverybodysStage) -> None:
    stage.rows("TRUNCATE performance_schema.events_statements_summary_by_digest")  # full, it takes no new ones
    stage.start("v0")
    stage.soak("before", SOAK_S)
    prepared = reprepared(stage)
    first = stage.forward(*stage.switch())
    stage.soak("V1's own and triggers", 2 * SOAK_S)
    both = rolling.switched(stage.folder)
    assert stage.back(*stage.switch(), phase=Through.SHADOW_WRITE).did == ["shadow_write"]
    one = rolling.switched(stage.folder)
    stage.soak("triggers alone", SOAK_S)
    still = rolling.switched(stage.folder)
    assert stage.forward(*stage.switch(), "cleanup.cooling_s=0", "cleanup.observe_s=1", accept=["cleanup", "cleanup-unseen"],
                         through=Through.CLEANUP).did == ["shadow_write", "cleanup"]
    stage.soak("V2 alone", SOAK_S)
    dropped = columns(stage), stage.rows("SHOW TRIGGERS"), states(stage)
    for phase in (Through.CLEANUP, *PHASES_BACK):
        assert stage.back(*stage.switch(), phase=phase).did == [phase.value]
        stage.soak(f"{phase.value} undone", SOAK_S / 2)
    report, wrong = stage.ended(old_side_only=True)

    assert first.did == FORWARD
    assert any(finding.check == "positional" and "REPLACE" in finding.what for finding in first.warnings)
    assert (dict(report.failed), report.wrong_reads, report.run_twice, wrong) == ({}, 0, 0, []), report.examples
    old, new = {"v0 prisma", "v0 sqlalchemy"}, {"v1 prisma"}
    for label, sides in {"before": old, "triggers alone": old | new, "V2 alone": {"v2 prisma"}, "cleanup undone": old | new,
                         "verify undone": old | new, "deploy undone": old, "pre_deploy undone": old}.items():
        assert present(report, label) == sides, label
    assert dropped == (set(V2_COLUMNS), [], dict.fromkeys([*FORWARD, "cleanup"], "done"))
    assert columns(stage) == {*V0_COLUMNS, *V1_COLUMNS}
    assert stage.rows("SHOW TRIGGERS") == []
    assert states(stage) == dict.fromkeys([*FORWARD, "cleanup"], "undone")
    assert (both["on"], one["on"], still["on"], one["sent"] - still["sent"]) == (True, False, False, 0)
    assert both["sent"] > 2
    assert reprepared(stage) > prepared  # Prisma's cached prepared statements met the changes (case C89)
    assert_every_habit_wrote(report)


def assert_every_habit_wrote(report: Report) -> None:
    asked, written = Counter[str](), Counter[str]()
    for (_, side), counts in report.sides.items():
        habit = side.split(" ", 2)[2:]
        asked[side] += counts.requests if habit else 0
        written[habit[0] if habit else "roles"] += counts.acknowledged_writes
    stacks = rolling.DRIVERS["habits"].stacks
    assert set(+asked) == {f"{name} {stack} {habit}" for name in stacks for stack in stacks[name] for habit in habits.CASTS[name]}
    assert set(+written) == {"roles", *habits.CASTS["v0"], *habits.CASTS["v1"]}
