"""What is left with Prefect besides the phases' pages: keys, tables, a soak's progress; and what happens when it cannot be left."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from steps.masking import remember

BEGAN = datetime(2026, 11, 2, 9, 0, tzinfo=UTC)
DUE = BEGAN + timedelta(days=14)


def latest(key: str) -> Any:
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        found = client._client.post("/artifacts/filter", json={"artifacts": {"key": {"any_": [key]}}, "sort": "CREATED_DESC"}).json()
    return found[0] if found else None


@pytest.mark.parametrize(("parts", "key"), [
    (("My Plan", "1. pre_deploy"), "my-plan-1-pre-deploy"), (("数据",), "rollout"), (("a" * 300,), "a" * 200), (("-x-", "_"), "x")])
def test_keys_are_such_as_prefect_takes(parts: tuple[str, ...], key: str) -> None:
    from flows.artifacts import key_of

    assert key_of(*parts) == key


def test_a_page_and_a_table_are_left_masked_and_found_by_their_key(prefect_server: None) -> None:
    from flows.artifacts import Artifacts

    remember("s3cr3t-word")
    artifacts = Artifacts()
    artifacts.page("kept-page", lambda: ("# s3cr3t-word *and*", "<b>s3cr3t-word</b>"))
    artifacts.table("kept-table", [{"a": "s3cr3t-word", "b": "2"}], "two")

    page, table = latest("kept-page"), latest("kept-table")
    assert (page["data"], page["description"]) == ("# *** *and*", "&lt;b&gt;\\*\\*\\*&lt;/b&gt;")
    assert str(artifacts.left["kept-page"]) == page["id"]
    assert "s3cr3t-word" not in str(table)
    assert '"b": "2"' in str(table["data"]).replace("'", '"')
    assert artifacts.untold == ""


def test_a_page_that_cannot_be_made_is_logged_and_stops_nothing(prefect_server: None) -> None:
    from flows.artifacts import Artifacts

    artifacts = Artifacts()
    with capture_logs() as logs:
        artifacts.page("broken-page", lambda: ("", str(1 // 0)))
    assert [(log["event"], log["reason"]) for log in logs] == [("a page could not be made", "ZeroDivisionError")]
    assert latest("broken-page") is None
    artifacts.page("whole-page", lambda: ("# fine", ""))
    assert latest("whole-page")["data"] == "# fine"


def test_after_the_first_that_cannot_be_left_no_other_is_tried(prefect_server: None, monkeypatch: pytest.MonkeyPatch) -> None:
    from flows import artifacts as module

    tried: list[str] = []

    def nobody(markdown: str, **_: Any) -> None:
        tried.append(markdown)
        raise OSError("nobody answers")

    monkeypatch.setattr(module, "create_markdown_artifact", nobody)
    artifacts = module.Artifacts()
    for page in ("one", "two"):
        artifacts.page("k", lambda page=page: (page, ""))
    assert (tried, artifacts.untold, artifacts.left) == (["one"], "OSError", {})


@pytest.mark.parametrize(("now", "percent", "said"), [
    (BEGAN - timedelta(days=1), 0.0, "15 d of 14 d left"),
    (BEGAN + timedelta(days=7), 50.0, "7 d of 14 d left, over at 2026-11-16 09:00 UTC"), (DUE, 100.0, "over since 2026-11-16 09:00 UTC"),
    (DUE + timedelta(days=3), 100.0, "over since")])
def test_a_soak_is_told_in_per_cent_with_what_is_left_and_what_was_seen(prefect_server: None, now: datetime, percent: float,
                                                                              said: str) -> None:
    from flows.progress_artifact import tell_soak

    assert tell_soak("soaking", BEGAN, DUE, now, "last look: all agree") == percent
    left = latest("soaking-soak-progress")
    assert left["data"] == percent
    assert said in left["description"]
    assert left["description"].endswith("; last look: all agree")


@pytest.mark.parametrize(("over", "told"), [(timedelta(days=11, hours=14, minutes=48), 82.9), (timedelta(days=14, seconds=-1), 99.9)])
def test_what_is_told_has_one_decimal_and_is_whole_only_once_it_is_over(prefect_server: None, over: timedelta, told: float) -> None:
    from flows.progress_artifact import tell_soak

    assert tell_soak("nearly", BEGAN, DUE, BEGAN + over) > told
    assert latest("nearly-soak-progress")["data"] == told


def test_a_soak_of_no_length_is_over(prefect_server: None) -> None:
    from flows.progress_artifact import tell_soak

    assert tell_soak("none", BEGAN, BEGAN, BEGAN) == 100.0
