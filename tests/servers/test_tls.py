"""TLS to a real server, in every word a URL has for it, and a login by caching_sha2_password with it and without it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from sqlalchemy import make_url

from deploy.mysql_server import Server, provide
from steps import plan_loader
from steps.checks import Look, transport
from steps.mysql import Session
from steps.target import ENVIRONMENT, target_of
from tests.cli.calling import DEPLOYED, PLAN, Call, standing
from tests.conftest import App
from tests.doubles.certificates import Authority, Pair
from tests.servers.conftest import seeded_on

RUN = ("run", PLAN, "--no-prefect", "--by", "ann", "--reason", "it is due", *DEPLOYED)
HARD = "p\u00e4ss \u65e5'\"\\%:@/?#"
Papers = dict[str, Path]


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Papers:
    """Files by what they are: authorities, the server's certificate for 127.0.0.1 alone, clients' certificates."""
    folder = tmp_path_factory.mktemp("papers")
    ours, theirs = Authority(folder, "ours"), Authority(folder, "theirs")
    pairs: dict[str, Pair] = {"server": ours.issue("server", addresses=("127.0.0.1",)),
                              "client": ours.issue("client"), "stranger": theirs.issue("stranger"),
                              "locked": ours.issue("locked", passphrase=b"nobody knows")}
    text = folder / "text.pem"
    text.write_text("no certificate")
    return {"ours": ours.ca, "theirs": theirs.ca, "text": text, "missing": folder / "missing.pem",
            **{f"{name}.{part}": getattr(pair, part) for name, pair in pairs.items() for part in ("cert", "key")}}


@pytest.fixture(scope="module")
def strict(papers: Papers) -> Iterator[Server]:
    """A server that takes encrypted connections only."""
    with provide(options=[f"--ssl-ca={papers['ours']}", f"--ssl-cert={papers['server.cert']}", f"--ssl-key={papers['server.key']}",
                          "--require-secure-transport=ON"]) as server:
        yield server


@pytest.fixture(scope="module")
def bare() -> Iterator[Server]:
    """A server without TLS."""
    with provide(options=["--tls-version="]) as server:
        yield server


@pytest.fixture
def job(strict: Server) -> Iterator[App]:
    with seeded_on(strict) as app:
        yield app


@pytest.fixture
def plain_job(bare: Server) -> Iterator[App]:
    with seeded_on(bare) as app:
        yield app


def url_of(server: Server, app: App, options: str = "", *, host: str = "127.0.0.1", user: str = "", password: str = "") -> str:
    base = make_url(server.url)
    login = f"{quote(user or str(base.username))}:{quote(password or str(base.password), safe='')}"
    return f"mysql://{login}@{host}:{base.port}/{app.value('SELECT DATABASE()')}?{options}"


def filled(options: str, papers: Papers) -> str:
    """*options* with `<name>` replaced by that paper's path."""
    for name, path in papers.items():
        options = options.replace(f"<{name}>", quote(str(path), safe=""))
    return options


@pytest.mark.parametrize(("options", "host"), [
    ("", "127.0.0.1"), ("ssl_mode=REQUIRED", "127.0.0.1"), ("sslaccept=accept_invalid_certs", "127.0.0.1"),
    ("ssl_ca=<ours>", "127.0.0.1"), ("sslcert=<ours>&sslaccept=strict", "127.0.0.1"),
    ("ssl_ca=<ours>&ssl_verify_identity=true", "127.0.0.1"), ("ssl_ca=<ours>&ssl_verify_cert=true", "127.0.0.1"),
    ("ssl-ca=<ours>&ssl-mode=VERIFY_CA", "localhost"), ("ssl_ca=<ours>&ssl_check_hostname=false", "localhost"),
])
def test_each_way_of_asking_comes_in_encrypted(strict: Server, job: App, papers: Papers, options: str, host: str) -> None:
    with Session(target_of(url_of(strict, job, filled(options, papers), host=host))) as session:
        assert (session.encryption or "").startswith("TLSv1.")
        assert session.query("SHOW SESSION STATUS LIKE 'Ssl_version'")[0][1] == session.encryption


@pytest.mark.parametrize(("options", "host", "reason", "remedy"), [
    ("ssl_ca=<theirs>", "127.0.0.1", "its certificate was issued by nobody in <theirs>", "name the authority that issued it in ssl_ca"),
    ("ssl_ca=<theirs>&ssl_verify_identity=true", "127.0.0.1", "issued by nobody in <theirs>", "in ssl_ca"),
    ("sslaccept=strict", "127.0.0.1", "issued by nobody in the system's list", "in ssl_ca"),
    ("ssl_ca=<ours>", "localhost", "its certificate is another host's", "ssl_mode=VERIFY_CA"),
    ("ssl_ca=<ours>&ssl_verify_identity=true", "localhost", "its certificate is another host's", "instead of localhost"),
    ("sslcert=<ours>&sslaccept=strict", "localhost", "its certificate is another host's", "instead of localhost"),
    ("ssl_mode=DISABLED", "127.0.0.1", "MySQL error 3159", "ssl_mode=REQUIRED"),
    ("ssl_ca=<missing>", "127.0.0.1", "ssl_ca <missing> cannot be read (No such file or directory)", "correct the path"),
    ("ssl_ca=<text>", "127.0.0.1", "ssl_ca <text> is no PEM file", "correct the path, or the file"),
    ("ssl_ca=<server.key>", "127.0.0.1", "ssl_ca <server.key> holds no certificate", "correct the path, or the file"),
    ("ssl_cert=<client.cert>&ssl_key=<locked.key>", "127.0.0.1", "ssl_key <locked.key> is under a passphrase", "correct the path"),
    ("ssl_cert=<client.cert>&ssl_key=<server.key>", "127.0.0.1", "do not belong together", "correct the path"),
])
def test_what_does_not_fit_is_refused_with_its_reason_and_nothing_is_touched(strict: Server, job: App, papers: Papers, call: Call,
                                                                            monkeypatch: pytest.MonkeyPatch, options: str, host: str,
                                                                            reason: str, remedy: str) -> None:
    before = standing(job)
    monkeypatch.setenv(ENVIRONMENT, url_of(strict, job, filled(options, papers), host=host))

    answer = call(*RUN)

    assert answer.code == 3, answer.text
    for name, path in papers.items():
        reason = reason.replace(f"<{name}>", str(path))
    assert reason in answer.text
    assert remedy in answer.text
    assert "nothing was touched" in answer.text
    assert str(make_url(strict.url).password) not in answer.text
    assert standing(job) == before


def test_a_whole_rollout_goes_over_it_with_a_certificate_of_our_own(strict: Server, job: App, papers: Papers, call: Call,
                                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    before = job.create_table()
    job.run("CREATE USER sealed@'127.0.0.1' IDENTIFIED BY 'secret' REQUIRE X509")
    job.run("GRANT ALL ON *.* TO sealed@'127.0.0.1'")
    try:
        base = filled("ssl_ca=<ours>", papers)
        monkeypatch.setenv(ENVIRONMENT, url_of(strict, job, base, user="sealed", password="secret"))
        without = call(*RUN)
        assert without.code == 3
        assert "REQUIRE X509 is also refused" in without.text

        monkeypatch.setenv(ENVIRONMENT, url_of(strict, job, base + filled("&ssl_cert=<stranger.cert>&ssl_key=<stranger.key>", papers),
                                               user="sealed", password="secret"))
        assert call(*RUN).code == 3
        assert job.create_table() == before

        monkeypatch.setenv(ENVIRONMENT, url_of(strict, job, base + filled("&ssl_cert=<client.cert>&ssl_key=<client.key>", papers),
                                               user="sealed", password="secret"))
        ran = call(*RUN)
        assert ran.code == 0, ran.text
        status = call("status", PLAN)
        assert "certificate and name looked at" in status.text
        back = call("rollback", PLAN, "--to", "v0", "--drop-added", "--no-prefect", "--by", "ann", "--reason", "x", *DEPLOYED)
        assert back.code == 0, back.text
        assert job.create_table() == before
    finally:
        job.run("DROP USER sealed@'127.0.0.1'")


@pytest.mark.parametrize("password", ["secret", HARD])
def test_without_tls_a_login_that_the_server_has_not_seen_yet_works_too(bare: Server, plain_job: App, password: str) -> None:
    plain_job.run("CREATE USER cold@'127.0.0.1' IDENTIFIED WITH caching_sha2_password BY %s", password)
    plain_job.run("GRANT ALL ON *.* TO cold@'127.0.0.1'")
    try:
        for _cold_then_warm in range(2):
            with Session(target_of(url_of(bare, plain_job, user="cold", password=password))) as session:
                assert session.encryption is None
    finally:
        plain_job.run("DROP USER cold@'127.0.0.1'")


def test_with_tls_a_password_of_any_letters_works(strict: Server, job: App) -> None:
    job.run("CREATE USER cold@'127.0.0.1' IDENTIFIED WITH caching_sha2_password BY %s", HARD)
    job.run("GRANT ALL ON *.* TO cold@'127.0.0.1'")
    try:
        with Session(target_of(url_of(strict, job, user="cold", password=HARD))) as session:
            assert session.encryption
    finally:
        job.run("DROP USER cold@'127.0.0.1'")


@pytest.mark.parametrize("options", ["ssl_mode=REQUIRED", "ssl_check_hostname=false", "sslaccept=accept_invalid_certs"])
def test_a_server_without_tls_is_refused_where_it_is_asked_for(bare: Server, plain_job: App, call: Call, monkeypatch: pytest.MonkeyPatch,
                                                               options: str) -> None:
    before = standing(plain_job)
    monkeypatch.setenv(ENVIRONMENT, url_of(bare, plain_job, options))

    answer = call(*RUN)

    assert answer.code == 3
    assert "the server offers no TLS" in answer.text
    assert standing(plain_job) == before


def test_speaking_in_clear_over_a_network_is_warned_of(bare: Server, strict: Server, plain_job: App, job: App,
                                                       monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_loader.load(PLAN)

    def found(url: str) -> list[str]:
        target = target_of(url)
        with Session(target) as session:
            return [f"{finding.severity}: {finding.what}" for finding in transport.run(Look(session, target, plan))]

    assert found(url_of(bare, plain_job)) == []
    monkeypatch.setattr(transport, "is_here", lambda target: False)
    assert found(url_of(strict, job)) == []
    [warned] = found(url_of(bare, plain_job))
    assert warned.startswith("warn: is spoken to in clear")
    assert warned.endswith("it offers no TLS")


@pytest.mark.parametrize(("url", "here"), [
    ("mysql://u@localhost/d", True), ("mysql://u@127.0.0.1/d", True), ("mysql://u@127.1.2.3/d", True), ("mysql://u@[::1]/d", True),
    ("mysql://u@db/d?socket=/run/mysqld.sock", True), ("mysql://u@db/d", False), ("mysql://u@10.0.0.5/d", False),
    ("mysql://u@localhost.example/d", False), ("mysql://u@[fe80::1]/d", False),
])
def test_only_this_machine_itself_is_no_network(url: str, here: bool) -> None:
    assert transport.is_here(target_of(url)) is here
