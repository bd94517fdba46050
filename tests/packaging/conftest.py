"""What is built, installed into an empty environment; once for all who look at it."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def call(*words: str | Path, **more: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, timeout=120, check=False, **more)  # type: ignore[call-overload, no-any-return]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    built = call(sys.executable, "-m", "pip", "wheel", "--no-deps", "--disable-pip-version-check", "-w", folder, ROOT)
    assert built.returncode == 0, built.stderr
    (found,) = folder.glob("mysql_rollout-*.whl")
    return found


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty environment with the wheel in it; the dependencies are borrowed, our own packages are not."""
    home = tmp_path_factory.mktemp("environment") / "venv"
    assert call(sys.executable, "-m", "venv", "--without-pip", home).returncode == 0
    put = call(sys.executable, "-m", "pip", "--python", home / "bin" / "python", "install", "--no-deps", "--no-index", "--quiet", wheel)
    assert put.returncode == 0, put.stderr
    (site,) = home.glob("lib/python*/site-packages")
    (site / "borrowed.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")  # a path only: its own .pth files are not read
    return home / "bin"


