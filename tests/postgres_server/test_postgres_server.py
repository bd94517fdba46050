"""A PostgreSQL that the suite gets itself: the installed one, and the archive's packages in the cache; neither is ever skipped."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import pytest

from deploy.postgres_server import NoPostgresError, installation, provide


def asked(url: str) -> tuple[str, str, str]:
    """What the server at *url* says of itself: version, where it listens, its encoding."""
    async def ask() -> tuple[str, str, str]:
        where = urlsplit(url)
        connection = await asyncpg.connect(host=where.hostname, port=where.port, user=where.username, password=where.password,
                                           database=where.path.lstrip("/"))
        try:
            return tuple(await connection.fetchrow("SELECT version(), current_setting('listen_addresses'), "
                                                   "current_setting('server_encoding')"))
        finally:
            await connection.close()

    return asyncio.run(ask())


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that the user whom the server runs as can reach, which pytest's own are not."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


@pytest.mark.parametrize("private", [False, True])
def test_a_server_answers_with_a_password_on_loopback_only_and_is_gone_afterwards(
        private: bool, open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROLLOUT_PRIVATE_MYSQL_FOLDER", str(open_folder))

    with provide(private=private) as url:
        version, listens, encoding = asked(url)
        assert (listens, encoding) == ("127.0.0.1", "UTF8")
        assert int(version.split()[1].split(".")[0]) >= installation.OLDEST
        assert list(open_folder.iterdir())
        with pytest.raises(asyncpg.InvalidPasswordError):
            asked(url.replace("prefect:", "prefect:not-"))
    assert list(open_folder.iterdir()) == []
    with pytest.raises(OSError):
        asked(url)


def test_a_machine_that_can_have_none_is_told_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(installation, "_installed", list)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(NoPostgresError, match="install PostgreSQL 14 or newer"), provide():
        pass
