"""The README beside the shipped plan: made from plan and contract, true to the server, and naming only what exists."""

from __future__ import annotations

import ast
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from flows import actions, plan_readme
from flows.conductor import PlainConductor
from flows.params import RunRequest, Through
from steps import catalogue, plan_loader
from steps import contract as contracts
from steps.contract import Contract
from steps.mysql import Session
from steps.plan import Plan
from steps.rollout import Rollout
from steps.target import Target
from tests.conftest import SHIPPED, App

ROOT = SHIPPED.parents[1]
README = SHIPPED / "README.md"
TEXT = README.read_text(encoding="utf-8")
EDGE = re.compile(r'^  (\w+) (\|\||\|o)(--|\.\.)o\{ (\w+) : "(\w+), ([^",]+)(?:, from [\w-]+)?"$', re.MULTILINE)
NAMED = sorted({word for word in re.findall(r"`([^`\n]+)`", TEXT) if re.fullmatch(r"\w[\w./-]*\.(py|sql|toml)(::\w+)?", word)})


@pytest.fixture
def contract(plan: Plan) -> Contract:
    found = contracts.load(plan)
    assert found is not None
    return found


def test_its_tables_are_made_from_plan_and_contract(contract: Contract) -> None:
    """When this fails: `python -m flows.plan_readme`."""
    assert plan_readme.render(TEXT, plan_loader.load("ai_analysis_job"), contract) == TEXT
    assert set(re.findall(r"<!-- begin (\w+) -->", TEXT)) == set(plan_readme.BLOCKS)


def test_making_it_again_keeps_what_is_written_by_hand(contract: Contract, plan: Plan) -> None:
    made = plan_readme.render("by hand\n<!-- begin indexes -->\nold\n<!-- end indexes -->\nby hand too\n", plan, contract)

    assert made.startswith("by hand\n<!-- begin indexes -->\n| index |")
    assert made.endswith("<!-- end indexes -->\nby hand too\n")
    assert "old\n" not in made.splitlines(keepends=True)
    with pytest.raises(KeyError):
        plan_readme.render("<!-- begin nobody -->\n<!-- end nobody -->", plan, contract)


def test_the_command_writes_it_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    copied = shutil.copytree(SHIPPED, tmp_path / SHIPPED.name)
    (copied / "README.md").write_text(TEXT.replace("| index | columns |", "| stale |"), encoding="utf-8")
    monkeypatch.setattr(plan_loader, "SHIPPED", tmp_path)

    plan_readme.main()

    assert capsys.readouterr().out.split() == [str(copied / "README.md")]
    assert (copied / "README.md").read_text(encoding="utf-8") == TEXT


def where(name: str) -> Path:
    """A name is a path from the project's root, or of a file beside the README."""
    return next((folder / name for folder in (ROOT, SHIPPED) if (folder / name).is_file()), ROOT / name)


@pytest.mark.parametrize("name", NAMED)
def test_every_file_and_test_named_exists(name: str) -> None:
    path, _, function = name.partition("::")

    assert where(path).is_file()
    if function:
        tree = ast.parse(where(path).read_text())
        assert function in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_every_sql_file_of_the_plan_is_known_to_the_plan() -> None:
    plan = plan_loader.load("ai_analysis_job")

    assert {str(path.relative_to(SHIPPED)) for path in SHIPPED.rglob("*.sql")} == {*plan.sql_text, *plan.queries, "baseline.sql"}


@pytest.mark.parametrize(("pattern", "wanted"), [
    (r"^\| §(\d+) ", [str(n) for n in range(1, 11)]), (r"^\| F(\d+) ", [str(n) for n in range(1, 27)]),
    (r"^\| (\d)\. ", list("12345")), (r"^\| `(\w+)` \| \d\. ", ["pre_deploy", "deploy", "backfill", "verify", "shadow_write", "cleanup"]),
])
def test_nothing_is_left_out(pattern: str, wanted: list[str]) -> None:
    assert re.findall(pattern, TEXT, re.MULTILINE) == wanted


def test_the_diagram_shows_the_real_foreign_keys(rollouts: Callable[..., Rollout], app: App, database: Target) -> None:
    """On an expanded database in which the tables of the later issues stand already."""
    for table in ("AiJobSnapshot", "AiJobArtifact", "AiUsageLog"):
        app.run(f"CREATE TABLE {table} (id VARCHAR(191) NOT NULL PRIMARY KEY, jobId VARCHAR(191) NULL) "
                "DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci")
    actions.run(rollouts(), RunRequest(plan="ai_analysis_job", by="tester", reason="because", database="command line",
                                       through=Through.PRE_DEPLOY), PlainConductor())
    edges = EDGE.findall(TEXT)
    drawn = {(child, column, parent, rule.removeprefix("on delete ")) for parent, _one, line, child, column, rule in edges if line == "--"}
    dotted = [(child, column) for _parent, _one, line, child, column, _rule in edges if line == ".."]

    real = set()
    with Session(database) as session:
        for table in {child for _parent, _one, _line, child, _column, _rule in edges}:
            for definition in catalogue.shape(session, database.schema, table).foreign_keys.values():
                found = re.fullmatch(r"FOREIGN KEY \(`(\w+)`\) REFERENCES `(\w+)` \(`id`\) ON DELETE (.+) ON UPDATE .+", definition)
                assert found is not None
                real.add((table, found[1], found[2], found[3]))
        touching = {key for key in real if "AiAnalysisJob" in (key[0], key[2])}

    assert drawn == touching
    assert dotted == [("AiAnalysisResult", "jobId")]
    assert {(one == "|o") == (rule == "on delete SET NULL") for _parent, one, _line, _child, _column, rule in edges} == {True}
