"""The hand-over's tool is let in where encryption is asked for, and does not speak in clear where our own sessions do not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import make_url

from deploy.mysql_server import Server, provide
from deploy.percona_toolkit import provide_pt_osc
from steps import handover_tool
from steps.errors import Stopped
from steps.rollout import Person, opened
from steps.target import Target, target_of
from tests.conftest import App, statements
from tests.doubles.certificates import Authority
from tests.mysql.handover.stage import TABLES, climb, handed


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("papers")
    ours, theirs = Authority(folder, "ours"), Authority(folder, "theirs")
    server, client = ours.issue("server", addresses=("127.0.0.1",)), ours.issue("client")
    return {"ours": ours.ca, "theirs": theirs.ca, "cert": server.cert, "key": server.key, "client": client.cert, "client-key": client.key}


@pytest.fixture(scope="module")
def strict(papers: dict[str, Path]) -> Iterator[Server]:
    with provide(options=[f"--ssl-ca={papers['ours']}", f"--ssl-cert={papers['cert']}", f"--ssl-key={papers['key']}",
                          "--require-secure-transport=ON"]) as server:
        yield server


@pytest.fixture
def app(strict: Server) -> Iterator[App]:
    admin = App(Target(make_url(strict.url)), "")
    admin.run("CREATE DATABASE handed")
    client = App(Target(make_url(strict.url).set(database="handed")))
    for statement in statements(TABLES):
        client.rows(statement)
    client.run("CREATE USER sealed@'127.0.0.1' IDENTIFIED BY 'secret' REQUIRE X509")
    client.run("GRANT ALL ON *.* TO sealed@'127.0.0.1'")
    yield client
    client.run("DROP USER sealed@'127.0.0.1'")
    client.close()
    admin.run("DROP DATABASE handed")
    admin.close()


def widened(strict: Server, folder: Path, options: str, *, user: str = "root", host: str = "127.0.0.1") -> None:
    base = make_url(strict.url)
    password = base.password if user == "root" else "secret"
    target = target_of(f"mysql://{user}:{password}@{host}:{base.port}/handed?{options}")
    with opened(handed(folder, provide_pt_osc()), target, Person("tester", "because"), frozenset()) as rollout:
        climb(rollout, 1)


@pytest.mark.parametrize(("options", "user", "host"), [
    ("", "root", "127.0.0.1"), ("ssl_mode=REQUIRED", "root", "localhost"), ("ssl_ca=<ours>&ssl_mode=VERIFY_CA", "root", "localhost"),
    ("ssl_ca=<ours>&ssl_cert=<client>&ssl_key=<client-key>", "sealed", "127.0.0.1"),
])
def test_it_copies_over_tls(strict: Server, app: App, papers: dict[str, Path], tmp_path: Path, options: str, user: str, host: str) -> None:
    for name, path in papers.items():
        options = options.replace(f"<{name}>", str(path))

    widened(strict, tmp_path / "plan", options, user=user, host=host)

    assert "`kind` varchar(64)" in app.create_table("job")


def test_it_looks_at_the_authority_as_we_do(strict: Server, app: App, papers: dict[str, Path], tmp_path: Path,
                                            monkeypatch: pytest.MonkeyPatch) -> None:
    """Our own sessions would be refused before it is started, so only the tool is told of the other authority."""
    real, other = handover_tool.dsn_part, {"ssl_mode": "VERIFY_CA", "ssl_ca": str(papers["theirs"])}
    monkeypatch.setattr(handover_tool, "dsn_part", lambda target: real(Target(target.url.set(query=other))))

    with pytest.raises(Stopped, match="certificate"):
        widened(strict, tmp_path / "plan", f"ssl_mode=VERIFY_CA&ssl_ca={papers['ours']}")

    assert "`kind` varchar(32)" in app.create_table("job")
