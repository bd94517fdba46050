"""The house rules that a machine can check: imports point one way, Prefect stays in flows/, files stay small."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(path for folder in ("steps", "flows", "deploy") for path in (ROOT / folder).rglob("*.py"))
LONGEST_FILE = 250


def imported(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_prefect_is_imported_in_flows_alone(path: Path) -> None:
    uses_prefect = any(name.split(".")[0] == "prefect" for name in imported(path))

    assert not uses_prefect or path.relative_to(ROOT).parts[0] == "flows"


@pytest.mark.parametrize("path", [p for p in SOURCES if p.relative_to(ROOT).parts[0] == "steps"], ids=lambda p: str(p.relative_to(ROOT)))
def test_steps_know_nothing_of_flows_and_checks_nothing_of_later_steps(path: Path) -> None:
    names = imported(path)
    later = {"steps.rollout", "steps.ddl", "steps.pre_deploy", "steps.deploy", "steps.backfill", "steps.verify", "steps.rehearsal"}

    assert not any(name.split(".")[0] in ("flows", "deploy") for name in names)
    assert "checks" not in path.relative_to(ROOT).parts or not names & later


def test_the_driver_is_imported_in_one_place_of_the_engine() -> None:
    using = {path.name for path in SOURCES if "steps" in path.parts and any(n.split(".")[0] == "pymysql" for n in imported(path))}

    assert using == {"mysql.py"}


def test_nothing_sleeps_but_waits() -> None:
    sleeping = {path.name for path in SOURCES if "steps" in path.parts and "time.sleep(" in path.read_text()}

    assert sleeping == {"waits.py"}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_stay_small(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= LONGEST_FILE
