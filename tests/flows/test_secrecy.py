"""A password that stands nowhere else is in nothing that a whole rollout leaves or starts (case C86)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from sqlalchemy import make_url

from deploy.mysql_server import Server
from steps.ledger import TABLES
from steps.target import ENVIRONMENT, Target
from tests.cli.calling import PLAN, Call, caller
from tests.cli.conftest import quiet_afterwards  # noqa: F401  # used by being here
from tests.conftest import App

PASSWORD = "zq7'\"\\ü%s/@zq7"
FORMS = {PASSWORD, quote(PASSWORD, safe=""), json.dumps(PASSWORD)[1:-1], repr(PASSWORD)[1:-1], PASSWORD.replace("'", "''"), "zq7"}
SEES = "cat /proc/[0-9]*/cmdline /proc/$$/environ 2>/dev/null | tr '\\0' '\\n' >>{seen}; echo [{what}] >>{seen}"
COMMANDS = {"deploy.command": "v1", "deploy.rollback_command": "v1 back", "deploy.health_command": "health", "verify.command": "verify",
            "shadow_write.enable_command": "on", "shadow_write.disable_command": "off", "cleanup.deploy": "v2",
            "cleanup.rollback_deploy": "v2 back", "cleanup.health_command": "v2 health"}
SOON = ("cleanup.min_age_s=0", "cleanup.observe_s=0", "cleanup.cooling_s=0")


@pytest.fixture
def known(server: Server, seeded: App, monkeypatch: pytest.MonkeyPatch) -> Iterator[App]:
    """The command line's account and a replica's URL have the password; root has another."""
    schema = str(seeded.value("SELECT DATABASE()"))
    admin = App(Target(make_url(server.url)), "")
    admin.run(f"CREATE USER `{schema}`@'127.0.0.1' IDENTIFIED BY %s", PASSWORD)
    admin.run(f"GRANT ALL ON *.* TO `{schema}`@'127.0.0.1'")
    url = f"mysql://{schema}:{quote(PASSWORD, safe='')}@127.0.0.1:{make_url(server.url).port}/{schema}"
    monkeypatch.setenv(ENVIRONMENT, url)
    monkeypatch.setenv("REPLICA_ONE", url)
    yield seeded
    admin.run(f"DROP USER `{schema}`@'127.0.0.1'")
    admin.close()


@pytest.fixture
def call(prefect_server: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    return caller(monkeypatch, capsys)


def history() -> bytes:
    """Everything on disk that Prefect keeps: its database with its log, and its home."""
    from prefect.settings import PREFECT_API_DATABASE_CONNECTION_URL

    database = Path(str(make_url(str(PREFECT_API_DATABASE_CONNECTION_URL.value())).database))
    files = [*database.parent.glob(f"{database.name}*"), *Path(os.environ["PREFECT_HOME"]).rglob("*")]
    return b"".join(file.read_bytes() for file in files if file.is_file())


def test_it_is_in_no_argument_environment_log_document_report_ledger_and_nothing_that_prefect_keeps(known: App, call: Call,
                                                                                                   tmp_path: Path) -> None:
    seen, said = tmp_path / "seen", list[str]()
    commands = [f"{key}={SEES.format(seen=seen, what=what)}" for key, what in COMMANDS.items()]
    settings = [word for setting in (*commands, *SOON, 'backfill.replicas=["REPLICA_ONE"]') for word in ("--set", setting)]
    asked = (PLAN, *settings, "--by", "ann", "--reason", f"with {PASSWORD}")

    def works(*words: str, code: int = 0) -> None:
        answer = call(*words)
        said.append(answer.out + answer.err)
        assert answer.code == code, answer.text

    works("run", *asked, code=3)  # the server is no replica of itself, and the finding tells of its address
    asked = _without(asked, "backfill.replicas")
    works("run", *asked)
    works("run", *asked, "--through", "cleanup", "--accept", "cleanup", "--accept", "cleanup-unseen")
    for words in (("status", PLAN, "--json"), ("report", PLAN, "--json"), ("report", PLAN), ("plan", PLAN, "--sql", "--json"),
                  ("check", PLAN, "--json"), ("report", PLAN, "--html", str(tmp_path / "report.html"))):
        works(*words)
    works("rollback", *asked, "--to", "v0", "--drop-added", "--accept", "discard-added")
    ledger = "\n".join(repr(known.rows(f"SELECT * FROM _rollout_{table}")) for table in TABLES)
    kept = history()

    ran = seen.read_text(errors="replace")
    assert all(f"[{what}]" in ran for what in COMMANDS.values())
    assert "ROLLOUT_GENERATION=v1" in ran
    assert b"ann" in kept
    assert "begins" in ledger
    everything = {"programs": ran, "said": "\n".join(said), "ledger": ledger, "report": (tmp_path / "report.html").read_text(),
                  "prefect": kept.decode(errors="replace")}
    assert {(where, form) for where, text in everything.items() for form in FORMS if form in text} == set()


def _without(words: tuple[str, ...], key: str) -> tuple[str, ...]:
    """*words* without the setting of *key*."""
    at = next(number for number, word in enumerate(words) if word.startswith(key))
    return words[:at - 1] + words[at + 1:]
