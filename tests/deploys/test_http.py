"""By HTTP, against a service of ours: start, status, undo; nothing is started twice, and the token goes nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from steps.deploys.http import Http
from steps.errors import DeployFailed, DeploySystemAway, Stopped
from steps.masking import mask
from steps.plan_deploy import DeployService
from tests.deploys.conftest import Ledger
from tests.doubles.deploy_service import TOKEN, DeployServiceDouble
from tests.doubles.serving import serving

STARTED = {"v1": {"key": "run-1-v1", "id": "d1"}}


@pytest.fixture
def service() -> DeployServiceDouble:
    return DeployServiceDouble()


@pytest.fixture
def address(service: DeployServiceDouble, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("DEPLOY_TOKEN", TOKEN)
    with serving(service.answer) as found:
        yield found


def way(address: str, **more: Any) -> Http:
    return Http(DeployService.model_validate({
        "start_url": f"{address}/deploys", "status_url": f"{address}/deploys/{{id}}", "undo_url": f"{address}/deploys/{{id}}/undo",
        "bodies": {"v1": {"version": "1"}}, "token_env": "DEPLOY_TOKEN", "id_at": "deploy.id", "status_at": "deploy.state",
        "reason_at": "why", **more}))


def test_there_and_back(service: DeployServiceDouble, address: str, ledger: Ledger) -> None:
    assert ledger.put_out(way(address)) == {"deploy": "d1"}
    assert (service.now, ledger.kept) == ("1", STARTED)

    assert ledger.take_back(way(address)) == {"deploy": "d1", "undo": "d2"}
    assert service.now == "0"
    assert ledger.take_back(way(address)) == {"deploy": "d1", "undo": "d2"}
    assert len(service.deploys) == 2


def test_an_undo_without_an_id_of_its_own_is_followed_by_the_deploys_status(service: DeployServiceDouble, address: str,
                                                                            ledger: Ledger) -> None:
    service.undo_has_its_own_id = False
    ledger.put_out(way(address))

    ledger.take_back(way(address))

    assert service.deploys["d1"]["status"] == "undone"


def test_without_undo_the_generation_before_is_started_like_any_other(service: DeployServiceDouble, address: str, ledger: Ledger) -> None:
    both = way(address, undo_url=None, bodies={"v0": {"version": "0"}, "v1": {"version": "1"}})
    ledger.put_out(both)

    ledger.take_back(both)

    assert (service.now, service.by_key) == ("0", {"run-1-v1": "d1", "run-1-v0": "d2"})
    assert "neither undo_url nor a body for v0" in str(way(address, undo_url=None).cannot_take_back("v0", ledger.kept))


def test_a_failed_deploy_says_why_and_is_undone(service: DeployServiceDouble, address: str, ledger: Ledger) -> None:
    service.ends_as = "failed"

    with pytest.raises(DeployFailed, match="deploy d1 of v1: ended as failed: the canary was sick"):
        ledger.put_out(way(address))

    ledger.take_back(way(address))
    assert service.now == "0"


def test_an_undo_that_failed_is_tried_anew_by_the_next_rollback(service: DeployServiceDouble, address: str, ledger: Ledger) -> None:
    ledger.put_out(way(address))
    service.undo_ends_as = "failed"
    with pytest.raises(DeployFailed):
        ledger.take_back(way(address))
    service.undo_ends_as = "succeeded"

    assert ledger.take_back(way(address), run_id="run-2") == {"deploy": "d1", "undo": "d3"}
    assert ledger.take_back(way(address), run_id="run-3") == {"deploy": "d1", "undo": "d3"}
    assert service.now == "0"


def test_a_start_of_the_generation_before_that_failed_is_tried_anew(service: DeployServiceDouble, address: str, ledger: Ledger) -> None:
    both = way(address, undo_url=None, bodies={"v0": {"version": "0"}, "v1": {"version": "1"}})
    ledger.put_out(both)
    service.ends_as = "failed"
    with pytest.raises(DeployFailed):
        ledger.take_back(both)
    service.ends_as = "succeeded"

    ledger.take_back(both, run_id="run-2")

    assert (service.now, service.by_key) == ("0", {"run-1-v1": "d1", "run-1-v0": "d2", "run-2-v0": "d3"})


def test_a_run_after_a_failed_one_starts_with_a_key_of_its_own(service: DeployServiceDouble, address: str, ledger: Ledger) -> None:
    service.ends_as = "failed"
    with pytest.raises(DeployFailed):
        ledger.put_out(way(address))
    service.ends_as = "succeeded"

    ledger.put_out(way(address), run_id="run-2")

    assert service.by_key == {"run-1-v1": "d1", "run-2-v1": "d2"}


class Killed(BaseException):
    """As SIGKILL: nothing is caught, only the ledger is left."""


def test_killed_before_the_answer_it_is_continued_with_the_same_key_and_nothing_starts_twice(
        service: DeployServiceDouble, address: str, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Http._post

    def dies(*args: Any) -> None:
        real(*args)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Http, "_post", dies)
        with pytest.raises(Killed):
            ledger.put_out(way(address))
    assert ledger.kept == {"v1": {"key": "run-1-v1"}}

    ledger.put_out(way(address), run_id="run-2")

    assert service.by_key == {"run-1-v1": "d1"}
    assert ledger.kept == STARTED


def test_killed_before_the_answer_it_can_be_taken_back(service: DeployServiceDouble, address: str, ledger: Ledger) -> None:
    service.deploys["d1"] = {"version": "1", "status": "queued", "ends": "succeeded"}
    service.by_key["run-1-v1"] = "d1"
    ledger.keep({"v1": {"key": "run-1-v1"}})

    assert ledger.take_back(way(address), run_id="run-2") == {"deploy": "d1", "undo": "d2"}

    assert service.now == "0"


@pytest.mark.parametrize("lost", [[0], [503], [500, 0]])
def test_lost_answers_are_asked_for_again_with_the_same_key(service: DeployServiceDouble, address: str, ledger: Ledger,
                                                            lost: list[int]) -> None:
    service.faults = lost

    ledger.put_out(way(address))

    assert list(service.deploys) == ["d1"]


def test_a_service_that_stays_away_is_never_taken_for_a_failure(service: DeployServiceDouble, address: str, ledger: Ledger) -> None:
    service.faults = [500] * 20

    with pytest.raises(DeploySystemAway, match="answered 500") as away:
        ledger.put_out(way(address))

    assert away.value.exit_code == 4
    service.faults.clear()
    ledger.put_out(way(address), run_id="run-2")
    assert service.by_key == {"run-1-v1": "d1"}


def test_a_refused_start_started_nothing_and_leaves_nothing_to_undo(service: DeployServiceDouble, address: str, ledger: Ledger) -> None:
    service.refuses = {"start": 403}

    with pytest.raises(DeployFailed, match="start was refused with 403") as failed:
        ledger.put_out(way(address))

    assert TOKEN not in str(failed.value)
    assert ledger.take_back(way(address)) == {"deploy": "none was started"}
    service.refuses.clear()
    ledger.put_out(way(address), run_id="run-2")
    assert service.by_key == {"run-2-v1": "d1"}


def test_an_answer_without_an_id_is_named(address: str, ledger: Ledger) -> None:
    with pytest.raises(DeployFailed, match=r"start answered 201 without id; correct deploy\.http\.id_at"):
        ledger.put_out(way(address, id_at="id"))


def test_it_does_not_wait_beyond_the_deadline(service: DeployServiceDouble, address: str, ledger: Ledger) -> None:
    service.ends_as = "running"

    with pytest.raises(DeployFailed, match=r"deploy d1 of v1: did not come within 0\.2 s: its status is (queued|running)"):
        ledger.put_out(way(address), deadline_s=0.2)


def test_a_redirect_is_not_followed_and_the_token_stays_here(service: DeployServiceDouble, address: str, ledger: Ledger) -> None:
    elsewhere = DeployServiceDouble()
    with serving(elsewhere.answer) as other:
        service.redirect = f"{other}/deploys"

        with pytest.raises(DeployFailed, match=r"start was refused with 307 \(redirects are not followed\)"):
            ledger.put_out(way(address))

    assert (elsewhere.asked, service.asked) == ([], ["POST /deploys"])


@pytest.mark.parametrize("kind", ["token_env", "token_file"])
def test_a_missing_token_stops_before_anything_is_asked(service: DeployServiceDouble, address: str, ledger: Ledger, kind: str,
                                                        tmp_path: Path) -> None:
    missing = {"token_env": None, kind: "NOT_SET" if kind == "token_env" else str(tmp_path / "none")}

    with pytest.raises(Stopped, match=r"the token in .* is missing"):
        ledger.put_out(way(address, **missing))

    assert (service.asked, ledger.kept) == ([], {})


def test_a_token_from_a_file_is_used_and_masked(service: DeployServiceDouble, address: str, ledger: Ledger, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(TOKEN + "\n")

    ledger.put_out(way(address, token_env=None, token_file=str(tmp_path / "token")))

    assert service.now == "1"
    assert mask(f"Bearer {TOKEN}") == "Bearer ***"


def test_a_certificate_of_an_unknown_authority_gets_no_token_and_a_named_one_does(
        service: DeployServiceDouble, ledger: Ledger, certificate: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEPLOY_TOKEN", TOKEN)
    with serving(service.answer, certificate=certificate) as address:
        with pytest.raises(DeploySystemAway, match="certificate verify failed"):
            ledger.put_out(way(address))
        assert service.asked == []

        ledger.put_out(way(address, ca_file=certificate[0]))

    assert service.now == "1"
