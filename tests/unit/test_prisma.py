"""The models that `rollout plan --prisma` prints: made from the contract, with every name that is not Prisma's own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from flows import prisma
from steps import contract as contracts
from steps import plan_loader
from steps.contract import Contract, Stage
from tests.cli.calling import caller
from tests.plans import written


@pytest.fixture
def contract() -> Contract:
    found = contracts.load(plan_loader.load("ai_analysis_job"))
    assert found is not None
    return found


def test_the_models_hold_every_field_and_carry_every_name_of_our_own(contract: Contract) -> None:
    models = prisma.models(contract)

    for version, stage in (("v1", Stage.EXPANDED), ("v2", Stage.CLEANED)):
        fields = re.findall(r"^  (\w+) +(?:String|Int|DateTime|Json)\b", models[version], re.MULTILINE)
        beside = ["errorMessage", "completedAt"] if version == "v1" else []
        assert fields == [*(field.name for field in contract.fields(stage)), *beside]
        own = {index.name for index in contract.index if index.name.startswith("idx_")}
        assert set(re.findall(r'map: "(\w+)"', models[version])) == own
        assert '@@unique([userId, jobType, idempotencyKey], map: "idx_userId_jobType_idempotencyKey")' in models[version]
        assert '@@map("AiAnalysisJob")' in models[version]
    assert "omit it on write: the column is NOT NULL (F10)" in models["v1"]
    assert "status " not in models["v2"]


@pytest.mark.parametrize("line", [
    r"id +String +@id @default\(cuid\(\)\) @db.VarChar\(191\)", r"idempotencyKey +String\? +@unique @db.VarChar\(255\)",
    r"timeoutMs +Int +@default\(120000\)", r'queueName +String +@default\("ai-interactive"\) @db.VarChar\(64\)',
    r"internalErrorMessage String\? +@db.Text", r"validatedOutput +Json\?", r"createdAt +DateTime +@default\(now\(\)\) @db.DateTime\(3\)",
    r"updatedAt +DateTime +@updatedAt @db.DateTime\(3\)", r"children +AiJob\[\] +@relation\(\"JobChildren\"\)", r"@@index\(\[userId\]\)",
    r'parentJob +AiJob\? +@relation\("JobChildren", fields: \[parentJobId\], references: \[id\], onDelete: SetNull, onUpdate: Cascade\)',
    r"user +User +@relation\(fields: \[userId\], references: \[id\], onDelete: Restrict, onUpdate: Cascade\)",
    r"// once AiUsageLog.jobId exists \(M-AI-02-08\): usageLogs AiUsageLog\[\], and there",
])
def test_a_models_line_reads_as_prisma_has_it(contract: Contract, line: str) -> None:
    for model in prisma.models(contract).values():
        assert re.search(rf"^  {line}$", model, re.MULTILINE)


def test_columns_that_a_generation_must_not_use_are_ignored_in_its_model(contract: Contract) -> None:
    def ignored(model: str) -> list[str]:
        return re.findall(r"^  (\w+) .*@ignore", model, re.MULTILINE)

    assert ignored(prisma.models(contract)["v1"]) == ["errorMessage", "completedAt"]
    assert ignored(prisma.models(contract, in_place=True)["v1"]) == []
    assert ignored(prisma.between(contract)) == ["sessionId", "answerId", "status", "errorMessage", "completedAt"]
    assert ignored(prisma.between(contract, in_place=True)) == ["sessionId", "answerId", "status"]
    assert ignored(prisma.models(contract)["v2"]) == []


def test_a_foreign_name_or_column_is_said_in_the_model(contract: Contract) -> None:
    """What this plan's contract has no case of: another column name, and constraints that are not named as Prisma would."""
    data = contract.model_dump(mode="json", by_alias=True)
    data["field"][8]["name"] = "requestKey"
    assert data["field"][8]["column"] == "idempotencyKey"
    data["index"] = [{**index, "name": index["name"].replace("AiAnalysisJob_idempotencyKey_key", "one_key")} for index in data["index"]]
    data["field"][8]["indexes"] = ["one_key", "idx_userId_jobType_idempotencyKey"]
    data["relation"][1]["constraint"] = "fk_parent"

    model = prisma.models(Contract.model_validate(data))["v1"]

    assert '@unique(map: "one_key") @map("idempotencyKey") @db.VarChar(255)' in model
    assert "@@unique([userId, jobType, requestKey]" in model
    assert 'onUpdate: Cascade, map: "fk_parent")' in model


def test_the_command_prints_them_without_any_database(contract: Contract, monkeypatch: pytest.MonkeyPatch,
                                                      capsys: pytest.CaptureFixture[str]) -> None:
    call = caller(monkeypatch, capsys)
    models = prisma.models(contract)

    assert call("plan", "ai_analysis_job", "--prisma").out == "\n".join(models.values()) + "\n"
    assert call("plan", "ai_analysis_job", "--prisma", "--json").document == {"prisma": models, "exit_code": 0}


def test_a_plan_without_a_contract_has_no_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                 capsys: pytest.CaptureFixture[str]) -> None:
    answer = caller(monkeypatch, capsys)("plan", str(written(tmp_path)), "--prisma")

    assert answer.code == 2
    assert "--prisma: needs a contract.toml beside the plan" in answer.text
