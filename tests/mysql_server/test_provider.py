"""The provider's promises, kept against real servers."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy

from deploy.mysql_server import NoServerError, Server, ServerFailedError, WayClosedError, installation, provide, restart

KEPT_ALIVE = (
    "from deploy.mysql_server import provide\nwith provide('private') as s: print(s.pid, s.folder, flush=True); input()"
)


@pytest.fixture(autouse=True)
def nothing_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ROLLOUT_TEST_DATABASE_URL", "ROLLOUT_MYSQL_WAY"):
        monkeypatch.delenv(name, raising=False)
    if not shutil.which("apt-get"):
        pytest.skip("the private way is for Debian and Ubuntu")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    if not shutil.which("apt-get"):
        pytest.skip("the private way is for Debian and Ubuntu")
    with provide("private") as private:
        yield private


def asked(server: Server, sql: str) -> list[tuple[object, ...]]:
    engine = sqlalchemy.create_engine(server.url, poolclass=sqlalchemy.NullPool)
    with engine.connect() as connection:
        result = connection.exec_driver_sql(sql)
        return [tuple(row) for row in result] if result.returns_rows else []


def until(met: Callable[[], bool], within_s: float = 20) -> bool:
    deadline = time.monotonic() + within_s
    while not met() and time.monotonic() < deadline:
        time.sleep(0.05)
    return met()


def gone(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z"


def test_it_answers_as_root_over_tcp(server: Server) -> None:
    assert [(server.version,)] == asked(server, "SELECT VERSION()")
    assert int(server.version.split(".")[0]) >= 8
    assert asked(server, "SELECT CURRENT_USER()") == [("root@127.0.0.1",)]
    assert asked(server, "SELECT schema_name FROM information_schema.schemata WHERE schema_name = 'mysql'") == [
        ("mysql",)
    ]


def test_it_is_a_realistic_server(server: Server) -> None:
    settings = "SELECT @@log_bin, @@binlog_format, @@performance_schema, @@innodb_buffer_pool_size, @@max_connections"
    assert asked(server, settings) == [(1, "ROW", 1, 256 << 20, 300)]
    assert asked(server, "SELECT @@bind_address") == [("127.0.0.1",)]


def test_a_second_one_runs_beside_it_and_is_another(server: Server) -> None:
    with provide("private", options=["--max-connections=42"]) as other:
        assert other.url != server.url
        uuids = {tuple(asked(each, "SELECT @@server_uuid, @@server_id")) for each in (server, other)}
        assert len(uuids) == 2
        assert asked(other, "SELECT @@max_connections") == [(42,)]
        assert "password" not in Path(other.folder, "mysqld.log").read_text().lower()
    assert gone(other.pid)
    assert not other.folder.exists()
    assert asked(server, "SELECT 1") == [(1,)]


def test_killed_it_starts_again_on_the_same_folder_and_port() -> None:
    with provide("private") as server:
        asked(server, "CREATE DATABASE kept")
        os.kill(server.pid, signal.SIGKILL)
        again = restart(server)
        assert (again.url, again.folder) == (server.url, server.folder)
        assert again.pid != server.pid
        assert asked(server, "SHOW DATABASES LIKE 'kept'") == [("kept",)]
        third = restart(again)
        assert gone(again.pid)
    assert gone(third.pid)
    with pytest.raises(LookupError, match="not ours to restart"):
        restart(server)


def test_a_given_folder_is_kept_and_used_again(tmp_path: Path) -> None:
    home = tmp_path / ("long" * 30)  # longer than a socket's path may be
    with provide("private", folder=home) as server:
        asked(server, "CREATE DATABASE kept")
    assert gone(server.pid)
    with provide("private", folder=home) as server:
        assert asked(server, "SHOW DATABASES LIKE 'kept'") == [("kept",)]


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_holder_takes_mysqld_and_its_folder_along(end: signal.Signals) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", KEPT_ALIVE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with holder:
        pid, folder = holder.stdout.readline().split()
        assert not gone(int(pid))
        holder.send_signal(end)
        assert holder.wait(10) == -end
    assert until(lambda: gone(int(pid)))
    assert until(lambda: not Path(folder).exists())


def test_a_mysqld_that_does_not_start_says_why_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with (
        pytest.raises(ServerFailedError, match="unknown variable 'no-such-option=1'"),
        provide("private", options=["--no-such-option=1"]),
    ):
        pass
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ValueError, match="provider's to choose"), provide("private", options=["--port=3306"]):
        pass


def test_a_named_server_comes_first(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROLLOUT_TEST_DATABASE_URL", server.url.replace("mysql+pymysql", "mysql") + "mysql")
    with provide() as named:
        assert named == Server(server.url, "url", server.version, None, None)
    with pytest.raises(WayClosedError, match="takes no folder and no options"), provide("url", options=["--x=1"]):
        pass
    assert asked(server, "SELECT 1") == [(1,)]


def test_a_named_server_that_does_not_answer_is_an_error_and_hides_its_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ROLLOUT_TEST_DATABASE_URL", "mysql://root:secret@127.0.0.1:1/")
    with pytest.raises(WayClosedError, match="refused") as caught, provide():
        pass
    assert "secret" not in str(caught.value)


def test_the_mysqld_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loader, *rest = installation.unpacked().command
    before, after = rest[:3], [each for each in rest[3:] if each not in ("--no-defaults", "--user=root")]
    program = tmp_path / "mysqld"
    program.write_text(f'#!/bin/sh\nexec {shlex.join([loader, *before])} "$@" {shlex.join(after)}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with provide("path") as server:
        assert server.way == "path"
        assert [(server.version,)] == asked(server, "SELECT VERSION()")


@pytest.mark.parametrize("stated", ["mysqld  Ver 10.11.6-MariaDB for debian-linux-gnu", "mysqld  Ver 5.7.44 for Linux"])
def test_another_database_on_the_path_is_not_taken(
    stated: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "mysqld"
    program.write_text(f"#!/bin/sh\necho '{stated}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with pytest.raises(WayClosedError, match=r"MySQL 8\.0 or newer"), provide("path"):
        pass


def test_where_every_way_is_closed_each_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    with pytest.raises(NoServerError) as caught, provide():
        pass
    assert [each.way for each in caught.value.closed] == ["url", "docker", "path", "private"]


@pytest.mark.parametrize("chosen", ["docker", "no-such-way"])
def test_a_chosen_way_that_is_closed_never_falls_through(
    chosen: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    monkeypatch.setenv("ROLLOUT_MYSQL_WAY", chosen)
    with pytest.raises(WayClosedError, match=chosen), provide():
        pass


def test_the_command_line_serves_until_its_input_ends() -> None:
    command = [sys.executable, "-m", "deploy.mysql_server", "--way=private"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as served:
        url = served.stdout.readline().strip()
        assert asked(Server(url, "url", "", None, None), "SELECT 1") == [(1,)]
        served.stdin.close()
        assert served.wait(20) == 0
