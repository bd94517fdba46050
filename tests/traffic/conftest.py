"""A database with live applications on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest

from deploy.mysql_server import Server
from flows.demo.traffic import seed
from flows.demo.traffic.session import Session
from tests.applications.stage import Stage

ROWS = 200
S = TypeVar("S", bound=Stage)


@contextmanager
def staged(kind: type[S], server: Server, folder: Path) -> Iterator[S]:
    """A stage of that *kind* on a seeded database of its own, which is removed afterwards."""
    url = f"{server.url}traffic_{folder.name[-40:]}".replace("-", "_")
    seed(url, ROWS)
    with kind(url, folder) as stage:
        yield stage
    session = Session(url, "test")
    session.run(f"DROP DATABASE `{stage.database.schema}`")
    session.close()


@pytest.fixture
def stage(server: Server, tmp_path: Path) -> Iterator[Stage]:
    with staged(Stage, server, tmp_path) as found:
        yield found
