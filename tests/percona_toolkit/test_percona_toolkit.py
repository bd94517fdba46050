"""A pt-online-schema-change is had where there is none, and one that is too old is not taken."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.percona_toolkit import provide_pt_osc
from deploy.percona_toolkit.provider import OLDEST, TOOL


def named(folder: Path, version: str) -> str:
    script = folder / TOOL
    script.write_text(f"#!/bin/sh\necho {TOOL} {version}\n")
    script.chmod(0o755)
    return str(script)


def test_the_command_prints_the_path_of_a_tool_that_runs() -> None:
    printed = subprocess.run([sys.executable, "-m", "deploy.percona_toolkit"], capture_output=True, text=True, check=True).stdout.strip()

    stated = subprocess.run([printed, "--version"], capture_output=True, text=True, check=True).stdout.split()

    assert stated[0] == TOOL
    assert tuple(map(int, stated[1].split(".")[:2])) >= OLDEST


@pytest.mark.parametrize(("version", "taken"), [("3.2.1", False), ("3.7.1", True), ("4.0.0", True)])
def test_the_paths_own_tool_is_taken_if_it_is_new_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, *,
                                                         taken: bool) -> None:
    script = named(tmp_path, version)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    assert (provide_pt_osc() == script) is taken
