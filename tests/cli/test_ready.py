"""`rollout ready`, a worker's health check: what answers, what does not, and that neither an answer's page nor a password comes through."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flows.login import AUTH, FILE, KEY
from flows.readiness import API, AUTHORITY
from steps.target import ENVIRONMENT, ENVIRONMENT_FILE
from tests.cli.calling import Call
from tests.doubles.serving import Request, serving

NOWHERE = "http://127.0.0.1:9/api"


@pytest.fixture(autouse=True)
def nothing_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (API, AUTH, AUTHORITY, FILE, KEY, ENVIRONMENT_FILE):
        monkeypatch.delenv(name, raising=False)


def prefect(request: Request) -> tuple[int, Any]:
    """Prefect with a password, as its server asks for one."""
    if request.path != "/api/flows/count" or request.command != "POST":
        return 404, "nothing here"
    return (200, 7) if request.headers.get("Authorization") == "Basic YTpi" else (401, {"exception_message": "Unauthorized"})


def test_both_answer_and_the_database_comes_from_a_file(call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, url: str) -> None:
    (tmp_path / "url").write_text(f"{url}\n")
    monkeypatch.setenv(ENVIRONMENT_FILE, str(tmp_path / "url"))
    with serving(prefect) as address:
        monkeypatch.setenv(API, f"{address}/api")
        (tmp_path / "login").write_text("a:b\n")
        monkeypatch.setenv(FILE, str(tmp_path / "login"))
        answer = call("ready", "--json")

    assert (answer.code, answer.document["trouble"]) == (0, {"database": None, "prefect": None})


def test_a_dead_api_is_exit_4_and_the_database_is_asked_all_the_same(here: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(API, NOWHERE)

    answer = here("ready", "--json")

    assert (answer.code, answer.document["subject"]) == (4, "prefect")
    assert answer.document["trouble"]["database"] is None
    assert "refused" in answer.document["trouble"]["prefect"]


def test_an_api_that_does_not_know_us_is_not_ready(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(prefect) as address:
        monkeypatch.setenv(API, f"{address}/api")
        monkeypatch.setenv(AUTH, "a:wrong")
        answer = call("ready", "--json")

    assert (answer.code, answer.document["trouble"]) == (4, {"prefect": f"it does not let us in: correct {AUTH}"})


def test_our_login_goes_where_we_said_and_no_further(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere: list[str] = []

    def heard(request: Request) -> tuple[int, Any]:
        elsewhere.append(request.path)
        return 200, 7

    def moved(request: Request) -> tuple[int, Any]:
        request.extra = {"Location": f"{other}/api/flows/count"}
        return 307, None

    monkeypatch.setenv(AUTH, "a:b")
    with serving(heard) as other, serving(moved) as address:
        monkeypatch.setenv(API, f"{address}/api")
        answer = call("ready", "--json")

    assert (answer.code, answer.document["trouble"], elsewhere) == (4, {"prefect": "it answers with 307"}, [])


def test_an_api_behind_an_authority_of_our_own_is_believed_as_prefects_client_believes_it(
        call: Call, certificate: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(AUTH, "a:b")
    with serving(prefect, certificate=certificate) as address:
        monkeypatch.setenv(API, f"{address}/api")
        unknown = call("ready", "--json")
        monkeypatch.setenv(AUTHORITY, certificate[0])
        known = call("ready", "--json")

    assert (unknown.code, "certificate verify failed" in unknown.document["trouble"]["prefect"]) == (4, True)
    assert (known.code, known.document["trouble"]) == (0, {"prefect": None})


def test_a_file_that_does_not_say_who_we_are_is_wrong_usage(call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(API, NOWHERE)
    monkeypatch.setenv(FILE, str(tmp_path / "none"))

    answer, served = call("ready", "--json"), call("serve")

    assert (answer.code, answer.document["subject"]) == (2, FILE)
    assert (served.code, f"{FILE}: names a file that cannot be read: No such file" in served.text) == (2, True)


@pytest.mark.parametrize("said", [(200, "<html>a proxy's page</html>"), (503, True), (200, True)])
def test_something_else_at_the_address_is_no_prefect(call: Call, monkeypatch: pytest.MonkeyPatch, said: tuple[int, Any]) -> None:
    with serving(lambda _: said) as address:
        monkeypatch.setenv(API, f"{address}/api")
        answer = call("ready")

    assert answer.code == 4
    assert "proxy" not in answer.text


def test_a_database_that_does_not_let_us_in_is_named_without_its_password(call: Call, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv(ENVIRONMENT, url.replace("root:", "root:hunter22"))

    answer = call("ready")

    assert answer.code == 4
    assert "database" in answer.text
    assert "hunter22" not in answer.text


def test_without_anything_to_ask_the_usage_is_wrong(call: Call) -> None:
    answer = call("ready")

    assert answer.code == 2
    assert API in answer.text
