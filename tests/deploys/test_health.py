"""Health is asked until it says yes: a command's exit code, or a status 2xx of an address."""

from __future__ import annotations

from pathlib import Path

import pytest

from steps.deploys.health import Health, wait_for
from steps.errors import DeployFailed
from tests.deploys.conftest import Ledger
from tests.doubles.serving import Request, serving


def test_an_address_is_asked_until_it_answers_well(ledger: Ledger) -> None:
    answers = iter([None, 503, 404, 204])
    asked: list[str] = []

    def health(request: Request) -> tuple[int, object] | None:
        asked.append(request.path)
        status = next(answers)
        return None if status is None else (status, {})

    with serving(health) as address:
        wait_for("url", f"{address}/ready", ledger.job("v1"))

    assert asked == ["/ready"] * 4


@pytest.mark.parametrize(("status", "said"), [(500, "answered 500"), (302, "answered 302"), (401, "answered 401")])
def test_an_address_that_is_never_well_says_what_it_answers(ledger: Ledger, status: int, said: str) -> None:
    with serving(lambda _: (status, {})) as address, \
            pytest.raises(DeployFailed, match=rf"health url: did not say yes within 0\.1 s: .*{said}"):
        wait_for("url", f"{address}/ready", ledger.job("v1", deadline_s=0.1))


def test_a_command_is_told_which_generation_it_is_asked_about(ledger: Ledger, tmp_path: Path) -> None:
    wait_for("command", f"echo $ROLLOUT_PLAN $ROLLOUT_GENERATION > {tmp_path}/told", ledger.job("v2"))

    assert (tmp_path / "told").read_text() == "small v2\n"


def test_command_and_address_are_both_asked_where_both_are_given() -> None:
    assert Health("true", "http://localhost/").questions() == (("command", "true"), ("url", "http://localhost/"))
    assert Health().questions() == ()
