"""A database with live applications on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.mysql_server import Server
from flows.demo.traffic import seed
from flows.demo.traffic.session import Session
from tests.applications.stage import Stage

ROWS = 200


@pytest.fixture
def stage(server: Server, tmp_path: Path) -> Iterator[Stage]:
    url = f"{server.url}traffic_{tmp_path.name[-40:]}".replace("-", "_")
    seed(url, ROWS)
    with Stage(url, tmp_path) as stage:
        yield stage
    session = Session(url, "test")
    session.run(f"DROP DATABASE `{stage.database.schema}`")
    session.close()
