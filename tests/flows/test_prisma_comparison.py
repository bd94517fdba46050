"""
The printed models against the real table, as Prisma's own comparison would find them: read by Prisma's parser, compared with the catalogue.

Prisma's engine is a downloaded binary and its WebAssembly build knows no MySQL, so its column rules stand in tests.applications.comparison.
"""

from __future__ import annotations

import pytest

from flows.params import Through
from flows.prisma_before import before
from steps import contract as contracts
from steps import plan_loader
from steps.contract import Contract
from steps.rollout import Rollout
from tests.applications.comparison import expected, proposed
from tests.applications.installed import NotInstalledError, datamodel
from tests.conftest import App
from tests.flows.repository_stage import Engineer, Rollouts

PATHS = pytest.mark.parametrize("path", ["zero_downtime", "adr"])
F10 = "column status: has varchar(32) NOT NULL DEFAULT 'pending', expected varchar(32) NULL"


@pytest.fixture
def contract() -> Contract:
    found = contracts.load(plan_loader.load("ai_analysis_job"))
    assert found is not None
    return found


def of(model: str, rollout: Rollout, name: str = "AiJob", relation: str = "aiJobs AiJob[]") -> list[str]:
    return proposed(datamodel(model, relation), name, rollout.live())


@PATHS
def test_prisma_would_change_nothing_about_the_table_but_what_is_documented(rollouts: Rollouts, seeded: App, path: str) -> None:
    engineer = Engineer(rollouts, seeded, (f"path={path}",))
    engineer.runs(Through.SHADOW_WRITE)
    found = engineer.reads()
    assert of(found["schema"], engineer.rollout()) == [F10]  # and the report says so
    assert any("field status is String? in the model and its column is NOT NULL" in line for line in found["know"])

    engineer.runs(Through.CLEANUP)
    assert of(engineer.reads()["schema"], engineer.rollout()) == []


@PATHS
def test_while_cleanup_cools_v2s_model_is_the_table_that_the_migrations_make(rollouts: Rollouts, seeded: App, path: str) -> None:
    engineer = Engineer(rollouts, seeded, (f"path={path}", "cleanup.cooling_s=3600"))
    engineer.runs(Through.SHADOW_WRITE)
    expanded, before_cleanup = engineer.rollout().live(), engineer.reads()
    engineer.runs(Through.CLEANUP)

    found = engineer.reads()
    assert before_cleanup["schema_next"] == found["schema"]
    assert found["schema_next"] is None
    assert proposed(datamodel(found["schema"], "aiJobs AiJob[]"), "AiJob", expanded) == []


def test_v0s_model_is_the_table_before_pre_deploy(rollouts: Rollouts, app: App, contract: Contract) -> None:
    rollout = Engineer(rollouts, app).rollout()

    model = before(contract, rollout.live())

    assert of(model, rollout, "AiAnalysisJob", "jobs AiAnalysisJob[]") == []


def test_the_comparison_sees_each_kind_of_difference(rollouts: Rollouts, seeded: App) -> None:
    """What a model without the ignored columns, or a table that somebody changed, would come to."""
    engineer = Engineer(rollouts, seeded)
    engineer.runs(Through.SHADOW_WRITE)
    model = engineer.reads()["schema"]
    bare = "\n".join(line for line in model.splitlines() if "@ignore" not in line)

    dropped = of(bare, engineer.rollout())
    assert [line.split(":")[0] for line in dropped] == ["column completedAt", "column errorMessage", "column status"]

    for change, seen in (("MODIFY `priority` BIGINT NOT NULL DEFAULT 0", "column priority: has bigint"),
                         ("MODIFY `modelTier` VARCHAR(32) NOT NULL DEFAULT 'second'", "column modelTier"),
                         ("MODIFY `attemptCount` INT NULL DEFAULT 0", "column attemptCount"),
                         ("RENAME INDEX `idx_parentJobId` TO `AiAnalysisJob_parentJobId_idx`", "index idx_parentJobId: has nothing"),
                         ("DROP FOREIGN KEY `AiAnalysisJob_parentJobId_fkey`", "foreign key AiAnalysisJob_parentJobId_fkey")):
        assert not any(line.startswith(seen) for line in of(model, engineer.rollout()))
        seeded.run(f"ALTER TABLE AiAnalysisJob {change}")
        assert any(line.startswith(seen) for line in of(model, engineer.rollout()))


def test_prismas_own_parser_reads_the_model_and_refuses_a_wrong_one() -> None:
    model = """model AiJob {
  id   String @id @db.VarChar(191)
  n    Int    @default(3)
  user User   @relation(fields: [id], references: [id], onDelete: Cascade, onUpdate: NoAction)
}"""
    assert expected(datamodel(model, "job AiJob?"), "AiJob").columns == {"id": "varchar(191) NOT NULL", "n": "int NOT NULL DEFAULT '3'"}

    with pytest.raises(NotInstalledError, match="P1012"):
        datamodel(model.replace("Int", "Nothing"), "job AiJob?")
