"""The contract as data: it counts as the ADR does, fits the plan, complains with file and line, and sees every deviation."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from steps import contract as contracts
from steps import plan_loader
from steps.catalogue import Shape
from steps.contract import Contract, Stage, deviations
from steps.errors import PlanInvalid
from steps.plan import Plan
from steps.rungs import tombstone
from tests.conftest import SHIPPED
from tests.plans import small


@pytest.fixture
def shipped() -> Plan:
    return plan_loader.load("ai_analysis_job")


@pytest.fixture
def contract(shipped: Plan) -> Contract:
    found = contracts.load(shipped)
    assert found is not None
    return found


def as_frozen(contract: Contract, stage: Stage) -> Shape:
    """A shape that is exactly what the contract says."""
    columns = {}
    for name, field in contract.columns(stage).items():
        default = field.default if field.default is None or field.default.startswith("CURRENT") else f"'{field.default}'"
        columns[name] = f"{field.type} {'NULL' if field.nullable else 'NOT NULL'}" + (f" DEFAULT {default}" if default else "")
    return Shape(columns, {index.name: index.definition for index in contract.index},
                 {str(key.constraint): key.definition for key in contract.foreign_keys})


def test_it_counts_as_the_adrs_model_does(contract: Contract) -> None:
    assert [len(contract.fields(stage)) for stage in Stage] == [44, 44, 41]
    assert [len(contract.columns(stage)) for stage in Stage] == [46, 44, 41]


ISSUE_FIELDS = """
jobType triggerType lifecycleStatus queueName priority targetType targetId parentJobId idempotencyKey inputRef inputSchemaVersion
snapshotId credentialMode credentialId modelTier promptKey promptVersion outputSchemaVersion progress attemptCount maxAttempts timeoutMs
validatedOutput outputHash errorCode publicErrorMessage internalErrorMessage queuedAt startedAt finishedAt cancelRequestedAt"""
ISSUE_INDEXES = {("userId", "jobType", "createdAt"): False, ("lifecycleStatus", "createdAt"): False, ("targetType", "targetId"): False,
                 ("queueName", "lifecycleStatus", "createdAt"): False, ("parentJobId",): False,
                 ("userId", "jobType", "idempotencyKey"): True}


def test_every_field_and_index_that_the_issue_asks_for_is_frozen(contract: Contract) -> None:
    assert {field.name for field in contract.field} >= set(ISSUE_FIELDS.split())
    assert ISSUE_INDEXES.items() <= {index.columns: index.unique for index in contract.index}.items()


def test_it_fits_the_plan(contract: Contract, shipped: Plan) -> None:
    gone = {field.column for field in contract.field if field.deletion_stage == contract.contract.cleanup_stage}

    assert gone == set(shipped.cleanup.drop)
    assert {(side.column, side.of) for side in contract.old_side} == {(rename.old, rename.new) for rename in shipped.renames}
    assert {field.name: field.deletion_stage for field in contract.field if field.deletion_stage} == {
        "status": "M-AI-05", "sessionId": "M-AI-05", "answerId": "M-AI-05", "retriedFromJobId": "M-AI-08"}


def test_its_states_are_the_plans_map(contract: Contract, shipped: Plan) -> None:
    pair = shipped.sync[0]

    assert {state.from_status: state.lifecycle for state in contract.state if state.from_status} == pair.to_new
    assert {state.lifecycle: state.to_status for state in contract.state if state.to_status} == pair.to_old
    assert {state.lifecycle for state in contract.state if not state.to_status} == set(pair.keep_old)


def test_its_late_relations_are_the_plans_leaves(contract: Contract, shipped: Plan) -> None:
    late = {(relation.child, relation.column): relation for relation in contract.relation if relation.arrives}

    assert set(late) == {(leaf.table, leaf.column) for leaf in shipped.pre_deploy.leaf}
    for leaf in shipped.pre_deploy.leaf:
        relation = late[leaf.table, leaf.column]
        sql = " ".join(shipped.sql_text[f"{leaf.ddl}.up.sql"].split())
        assert f"ADD CONSTRAINT `{relation.constraint}` {relation.definition}" in sql


@pytest.mark.parametrize("stage", list(Stage))
def test_what_is_as_frozen_does_not_deviate(contract: Contract, stage: Stage) -> None:
    assert deviations(contract, as_frozen(contract, stage), stage) == []
    assert deviations(contract, as_frozen(contract, stage), stage.value) == []


def columns(**changed: str | None) -> Callable[[Shape], Shape]:
    """Replace, add or (None) take away columns."""
    return lambda shape: replace(shape, columns={name: text for name, text in {**shape.columns, **changed}.items() if text is not None})


def indexes(**changed: str | None) -> Callable[[Shape], Shape]:
    return lambda shape: replace(shape, indexes={name: text for name, text in {**shape.indexes, **changed}.items() if text is not None})


def keys(**changed: str | None) -> Callable[[Shape], Shape]:
    return lambda shape: replace(shape, foreign_keys={k: v for k, v in {**shape.foreign_keys, **changed}.items() if v is not None})


@pytest.mark.parametrize(("change", "lines"), [
    (columns(jobType="varchar(32) NOT NULL"), ["column jobType: type is varchar(32), the contract says varchar(64)"]),
    (columns(jobType="varchar(64) NULL"), ["column jobType: nullability is NULL, the contract says NOT NULL"]),
    (columns(priority="int NOT NULL DEFAULT '1'"), ["column priority: default is '1', the contract says '0'"]),
    (columns(priority="int NOT NULL"), ["column priority: default is none, the contract says '0'"]),
    (columns(inputRef="varchar(255) NULL DEFAULT 'NOT NULL x'"), ["column inputRef: default is 'NOT NULL x', the contract says none"]),
    (columns(createdAt="datetime(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3)"),
     ["column createdAt: definition is ON UPDATE CURRENT_TIMESTAMP(3), the contract says none"]),
    (columns(errorCode="varchar(100) CHARACTER SET latin1 COLLATE latin1_bin NULL"),
     ["column errorCode: collation is CHARACTER SET latin1 COLLATE latin1_bin, the contract says none"]),
    (columns(errorCode="varchar(100) GENERATED ALWAYS AS (lower(`id`)) VIRTUAL NULL"),
     ["column errorCode: definition is GENERATED ALWAYS AS (lower(`id`)) VIRTUAL, the contract says none"]),
    (columns(errorCode="varchar(100) NULL INVISIBLE COMMENT 'it''s'"),
     ["column errorCode: definition is INVISIBLE COMMENT 'it''s', the contract says none"]),
    (columns(errorCode="nonsense"), ["column errorCode: is nonsense, which the contract cannot express"]),
    (columns(errorCode=None), ["column errorCode: is missing"]),
    (columns(completedAt=None, finishedAt="datetime NOT NULL"),
     ["column completedAt: is missing", "column finishedAt: type is datetime, the contract says datetime(3)",
      "column finishedAt: nullability is NOT NULL, the contract says NULL"]),
    (columns(extra="int NULL"), ["column extra: the contract knows no such column"]),
    (lambda shape: replace(shape, columns={"progress": shape.columns["progress"], **shape.columns}),
     ["column order: progress stands where the contract has id"]),
    (indexes(idx_parentJobId=None), ["index idx_parentJobId: is missing, the contract says INDEX (`parentJobId`)"]),
    (indexes(idx_parentJobId="UNIQUE INDEX (`parentJobId`)"),
     ["index idx_parentJobId: is UNIQUE INDEX (`parentJobId`), the contract says INDEX (`parentJobId`)"]),
    (indexes(by_hand="INDEX (`progress`)"), ["index by_hand: the contract knows no such index"]),
    (keys(AiAnalysisJob_parentJobId_fkey=None),
     [("foreign key AiAnalysisJob_parentJobId_fkey: is missing, the contract says FOREIGN KEY (`parentJobId`) REFERENCES "
       "`AiAnalysisJob` (`id`) ON DELETE SET NULL ON UPDATE CASCADE")]),
    (keys(other="FOREIGN KEY (`snapshotId`) REFERENCES `x` (`id`)"), ["foreign key other: the contract knows no such foreign key"]),
    (lambda shape: replace(shape, checks={"c": "CHECK (1)"}), ["check c: the contract knows no such check"]),
])
def test_every_deviation_is_named(contract: Contract, change: Callable[[Shape], Shape], lines: list[str]) -> None:
    assert deviations(contract, change(as_frozen(contract, Stage.EXPANDED)), Stage.EXPANDED) == lines


def test_what_cleanup_removes_is_unknown_afterwards(contract: Contract) -> None:
    found = deviations(contract, as_frozen(contract, Stage.EXPANDED), Stage.CLEANED)

    assert found == [f"column {name}: the contract knows no such column"
                     for name in ("sessionId", "answerId", "status", "errorMessage", "completedAt")]


def test_tombstones_wait_for_their_drop(contract: Contract) -> None:
    shape = as_frozen(contract, Stage.CLEANED)
    waiting = replace(shape, columns={**shape.columns, tombstone("status"): "varchar(32) NOT NULL DEFAULT 'pending'"})

    assert deviations(contract, waiting, Stage.CLEANED) == []
    assert deviations(contract, waiting, "cleaned") == []
    assert f"column {tombstone('status')}: the contract knows no such column" in deviations(contract, waiting, Stage.EXPANDED)


def test_another_plan_needs_no_contract(tmp_path: Path) -> None:
    assert contracts.load(small(tmp_path)) is None


@pytest.mark.parametrize(("was", "becomes", "reason", "on_line"), [
    ('deletion_stage = "M-AI-08"', 'deletion_stgae = "M-AI-08"', "unknown key", 'deletion_stgae = "M-AI-08"'),
    ('type = "varchar(500)"', 'type = "varchar(501)"', "length 500 is not what type varchar(501) says", None),
    ("length = 500", "length = 0", "greater than or equal to 1", "length = 0"),
    ('name = "errorCode"', 'name = "outputHash"', "field outputHash is there twice", None),
    ('column = "errorCode"', 'column = "outputHash"', "column outputHash is there twice", None),
    ('  "id", "userId"', '  "userId"', "column_order and the columns differ in id", None),
    ('of = "finishedAt"', 'of = "endedAt"', "old_side speaks of endedAt", None),
    ('columns = ["parentJobId"]', 'columns = ["parent"]', "index idx_parentJobId has a column that no field has", None),
    ('indexes = ["idx_parentJobId"]', "indexes = []", "field parentJobId and the indexes differ in idx_parentJobId", None),
    ('on_update = "CASCADE"', "", "go together", None),
    ('table = "AiAnalysisJob"', 'table = "Other"', "is about table Other, the plan about AiAnalysisJob", None),
    ("[contract]", "[contract", "is not TOML", None),
])
def test_a_contract_that_will_not_do_is_refused(tmp_path: Path, was: str, becomes: str, reason: str, on_line: str | None) -> None:
    folder = tmp_path / "plan"
    shutil.copytree(SHIPPED, folder)
    file = folder / "contract.toml"
    text = file.read_text()
    assert was in text
    file.write_text(text.replace(was, becomes, 1))

    with pytest.raises(PlanInvalid, match=re.escape(reason)) as raised:
        contracts.load(plan_loader.load(str(folder)))

    assert raised.value.subject.startswith(str(file))
    if on_line:
        assert raised.value.subject == f"{file}:{file.read_text().splitlines().index(on_line) + 1}"


def test_an_unreadable_contract_is_refused(tmp_path: Path) -> None:
    plan = small(tmp_path)
    (tmp_path / "contract.toml").write_bytes(b"\xff")

    with pytest.raises(PlanInvalid, match="is not UTF-8"):
        contracts.load(plan)
