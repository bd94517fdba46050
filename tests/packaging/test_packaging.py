"""What is built installs, carries its SQL and works from another folder; what it imports is declared."""

from __future__ import annotations

import ast
import json
import os
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from steps.target import ENVIRONMENT
from tests.conftest import App
from tests.packaging.conftest import call

ROOT = Path(__file__).resolve().parents[2]
OURS = ("flows", "steps", "sql", "deploy")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NEVER_IMPORTED = {"cryptography", "tzdata"}  # PyMySQL looks for it when a server asks for RSA; zoneinfo, where the system has no zones
TEST_ONLY = {"testcontainers", "docker"}  # one way of getting a MySQL
EXTRAS = {"kubernetes"}  # one way of deploying


@pytest.fixture
def elsewhere(tmp_path: Path) -> dict[str, object]:
    """Another folder, and an environment in which nothing points back at the checkout."""
    return {"cwd": tmp_path, "env": {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}}


def test_our_packages_come_from_the_wheel(installed: Path, elsewhere: dict[str, object]) -> None:
    found = call(installed / "python", "-c", "import flows, steps, deploy; print(flows.__file__, steps.__file__, deploy.__file__)",
                 **elsewhere)

    assert found.returncode == 0, found.stderr
    for path in found.stdout.split():
        assert path.startswith(str(installed.parent))


def test_every_file_of_the_shipped_plans_is_installed(installed: Path) -> None:
    (site,) = installed.parent.glob("lib/python*/site-packages")
    files = {path.relative_to(ROOT) for path in (ROOT / "sql").rglob("*") if path.is_file() and "__pycache__" not in path.parts}

    assert len(files) > 25
    for file in files:
        assert (site / file).read_bytes() == (ROOT / file).read_bytes()
    assert not (site / "tests").exists()


def test_the_installed_command_plans_and_tells_status_from_another_folder(installed: Path, elsewhere: dict[str, object], url: str,
                                                                          app: App) -> None:
    elsewhere["env"] = {**elsewhere["env"], ENVIRONMENT: url}  # type: ignore[dict-item]
    before = app.create_table()

    planned = call(installed / "rollout", "plan", "ai_analysis_job", "--sql", "--json", **elsewhere)
    status = call(installed / "rollout", "status", "ai_analysis_job", "--json", **elsewhere)

    assert (planned.returncode, status.returncode) == (0, 0), planned.stderr + status.stderr
    assert json.loads(planned.stdout)["groups"][0]["steps"][0]["step"] == "010_widen_job_type"
    assert json.loads(status.stdout)["next"] == "pre_deploy: rollout run ai_analysis_job"
    assert app.create_table() == before


def test_the_installed_command_shows_help_without_a_database(installed: Path, elsewhere: dict[str, object]) -> None:
    helped = call(installed / "rollout", "--help", **elsewhere)

    assert helped.returncode == 0
    assert "rollback" in helped.stdout


def test_constraints_pin_every_package_and_point_nowhere() -> None:
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line.strip()]

    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+==[0-9][A-Za-z0-9.+!]*", line) for line in lines)
    assert not any("://" in line for line in lines)
    pinned = {plain(line.partition("==")[0]) for line in lines}
    assert requirements(PROJECT["dependencies"]) <= pinned
    assert requirements(PROJECT["optional-dependencies"]["test"]) <= pinned


def test_every_import_is_declared_and_every_declaration_imported() -> None:
    owners = packages_distributions()
    third = {name for name in imports() if name not in sys.stdlib_module_names and name not in OURS}
    needed = {plain(owners[name][0]) for name in third}
    declared = requirements(PROJECT["dependencies"])

    assert needed - TEST_ONLY - EXTRAS <= declared
    assert needed & EXTRAS == requirements(PROJECT["optional-dependencies"]["kubernetes"])
    assert needed & TEST_ONLY <= requirements(PROJECT["optional-dependencies"]["test"])
    assert declared - needed == NEVER_IMPORTED


def imports() -> set[str]:
    """Top-level names that our packages import, anywhere in a file."""
    found: set[str] = set()
    for folder in OURS:
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Import):
                    found |= {alias.name.partition(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    found.add(node.module.partition(".")[0])
    return found


def requirements(lines: list[str]) -> set[str]:
    return {plain(re.split(r"[<>=!~\[; ]", line)[0]) for line in lines}


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_the_console_script_points_at_the_command_line() -> None:
    assert PROJECT["scripts"] == {"rollout": "flows.cli.app:main"}
