"""Finding MySQL in the machine's archive, and building the cache once."""

import threading
import time
from pathlib import Path

import pytest

from deploy.mysql_server import WayClosedError, archive, cache, installation


@pytest.mark.parametrize(
    ("names", "taken"),
    [
        (["mysql-server-core"], "mysql-server-core"),
        (["mysql-server-core-8.0", "mysql-server-core-8.4", "mysql-server-core-5.7"], "mysql-server-core-8.4"),
        (["mysql-server-core-8.0", "mysql-server-core"], "mysql-server-core"),
    ],
)
def test_the_newest_server_package_is_taken(names: list[str], taken: str) -> None:
    assert installation._newest_name(names) == taken


def test_an_archive_without_mysql_closes_the_way() -> None:
    with pytest.raises(WayClosedError, match="has no mysql-server-core"):
        installation._newest_name(["mysql-server-core-dbgsym"])


@pytest.mark.parametrize(
    "source",
    ["deb [arch=amd64 signed-by={key}] http://archive.invalid/debian stable main\n", "Types: deb\nSigned-By: {key}\n"],
)
def test_the_key_of_a_source_is_read_in_both_forms(source: str, tmp_path: Path) -> None:
    key, listed = tmp_path / "key.gpg", tmp_path / "a.sources"
    key.touch()
    listed.write_text(source.format(key=key))
    assert archive._signed_by(f"{listed}:1") == f"[signed-by={key}] "


def test_an_entry_is_built_once_by_many_and_a_dead_builders_remains_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    remains = cache.cache_folder() / "building-dead"
    remains.mkdir()
    built: list[Path] = []

    def build(folder: Path) -> None:
        built.append(folder)
        time.sleep(0.2)
        (folder / "whole").touch()

    entries: list[bool] = []
    threads = [
        threading.Thread(target=lambda: entries.append((cache.kept("entry", build) / "whole").exists()))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert entries == [True] * 4
    assert len(built) == 1
    assert not remains.exists()


def test_an_entry_whose_build_fails_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def fail(folder: Path) -> None:
        (folder / "half").touch()
        raise OSError

    with pytest.raises(OSError):
        cache.kept("entry", fail)
    assert [path.name for path in cache.cache_folder().iterdir()] == ["lock"]
