"""Calling the command line inside the test's process, and telling whether it left a database alone."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from flows.cli import leaving
from flows.cli.app import main
from tests.conftest import App

PLAN = "ai_analysis_job"
DEPLOYED = ("--set", "deploy.command=true", "--set", "deploy.rollback_command=true")


@dataclass(frozen=True)
class Answer:
    """What a call came to."""

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        """Both streams, with line breaks of no meaning folded away."""
        return " ".join((self.out + " " + self.err).split())

    @property
    def document(self) -> dict[str, Any]:
        """The one JSON document on stdout; anything else there fails."""
        found = json.loads(self.out)
        assert isinstance(found, dict)
        return found


Call = Callable[..., Answer]


def caller(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """`call("status", PLAN, "--json")` as a shell would, without a process of its own."""

    def call(*words: str) -> Answer:
        monkeypatch.setattr(sys, "argv", ["rollout", *words])
        capsys.readouterr()
        try:
            with leaving.staying():
                main()
            code: object = 0
        except SystemExit as ended:
            code = ended.code
        said = capsys.readouterr()
        assert isinstance(code, int)
        return Answer(code, said.out, said.err)

    return call


def standing(app: App) -> dict[str, Any]:
    """Every table's definition, the triggers, and the rows of every table: all that a call could have changed."""
    tables = [str(row[0]) for row in app.rows("SHOW TABLES")]
    return {"tables": {table: app.create_table(table) for table in tables}, "triggers": app.triggers(),
            "rows": {table: sorted(map(repr, app.rows(f"SELECT * FROM `{table}`"))) for table in tables}}


def phases(app: App) -> dict[str, str]:
    """Each phase's state as the ledger has it."""
    return {str(phase): str(state) for phase, state in app.rows("SELECT phase, state FROM _rollout_phase")}
