"""The README's tables say what the code says."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from flows import checks_readme
from flows.cli.app import app
from flows.desk import ACCEPT_KEYS
from flows.params import Through
from steps import deploys
from steps.checks import CHECKS
from steps.errors import EXIT_CODES
from steps.plan_deploy import Deploy, Fleet
from steps.plan_gates import Gates
from steps.plan_sections import ShadowWrite

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()


def table(header: str) -> list[list[str]]:
    """The cells of the one table whose first row is *header*."""
    _, found, rest = README.partition(header + "\n")
    assert found, f"README has no table {header}"
    rows = [row for row in rest.split("\n\n")[0].splitlines()[1:] if row.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", row.strip("|"))] for row in rows]


def test_exit_codes_are_those_of_the_code() -> None:
    assert {int(code): meaning for code, meaning in table("| exit code | meaning |")} == EXIT_CODES


def test_checks_are_those_of_the_code_in_their_order() -> None:
    assert checks_readme.render(README) == README, "run python -m flows.checks_readme"
    assert [row[0].strip("`") for row in table("| check | protects | severity | `--accept` | looks at |")] == [
        *(c.name for c in CHECKS), *(row[0] for row in checks_readme.REHEARSED)]


def test_each_check_protects_a_phase_and_has_accept_keys_that_a_call_can_name() -> None:
    assert {check.phase for check in CHECKS} <= {phase.value for phase in Through}
    assert {check.severity for check in CHECKS} <= {"refuse", "warn"}
    assert {key for check in CHECKS for key in check.accepts} <= ACCEPT_KEYS


def test_commands_are_those_of_the_code_with_their_options() -> None:
    rows = {cell.strip("`").split()[1]: cell for cell, _ in table("| command | what it does |")}
    commands = {command.callback.__name__: command.callback for command in app.registered_commands if command.callback}

    assert list(rows) == list(commands)
    for name, cell in rows.items():
        for option in re.findall(r"--[a-z-]+", cell):
            assert option in option_names(name), f"{name} {option}"


def option_names(command: str) -> set[str]:
    """What `rollout COMMAND` takes, from the parameters' annotations and names."""
    import typer.main

    click_command = typer.main.get_command(app).commands[command]  # type: ignore[attr-defined]
    return {opt for parameter in click_command.params for opt in parameter.opts}


def test_phases_are_those_that_a_run_can_take() -> None:
    rows = table("| phase | what it does | its rollback undoes | and leaves |")

    assert [row[0].strip("`") for row in rows] == [phase.value for phase in Through]


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`((?:steps|flows|sql|deploy|tests)/[\w./]+)`", README))))
def test_files_that_the_readme_names_are_there(path: str) -> None:
    assert (ROOT / path).exists()


@pytest.mark.parametrize("example", re.findall(r"^```toml\n(\[(?:deploy|fleet|gates|shadow_write)\].*?)^```", README,
                                               re.MULTILINE | re.DOTALL))
def test_examples_of_sections_are_plans(example: str) -> None:
    for section, value in tomllib.loads(example).items():
        assert {"deploy": Deploy, "fleet": Fleet, "gates": Gates, "shadow_write": ShadowWrite}[section].model_validate(value)


def test_each_way_of_deploying_is_in_the_table() -> None:
    rows = table("| `deploy.how` | puts out by | is done when | goes back by | after kill -9 the same command |")

    assert [row[0].strip("`") for row in rows] == ["manual", "command", *deploys.WAYS]


def test_nothing_is_left_to_fill_in() -> None:
    assert re.findall(r"^[A-Z]+_TABLE$", README, re.MULTILINE) == []
