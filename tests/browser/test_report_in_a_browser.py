"""The report's one file as somebody opens it who has only that: on a phone, at a desk, printed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from flows import actions, report, report_page
from flows.conductor import PlainConductor
from flows.params import RunRequest
from steps.rollout import Rollout
from tests.browser.cockpit import ROOT
from tests.browser.pages import DESK, PHONE
from tests.conftest import App

pytestmark = pytest.mark.usefixtures("remembered_rehearsals")
PICTURES = ROOT / "build" / "report"
BEYOND = """[...document.querySelectorAll('body *')].filter(each => getComputedStyle(each).overflowX === 'visible'
    && each.scrollWidth > each.clientWidth + 1 && each.getBoundingClientRect().right > innerWidth + 1).map(each => each.outerHTML)"""


@pytest.mark.parametrize(("name", "viewport"), [("phone", PHONE), ("desk", DESK)])
def test_nothing_is_cut_off_on_a_phone_or_a_desk_and_it_prints(
        chromium: str, rollouts: Callable[..., Rollout], seeded: App, tmp_path: Path, name: str, viewport: dict[str, int]) -> None:
    rollout = rollouts()
    actions.run(rollout, RunRequest(plan="ai_analysis_job", by="ann", reason="CHG-1 " + "long" * 60), PlainConductor())
    file = tmp_path / "report.html"
    file.write_text(report_page.page(report.whole(rollout), rollout), encoding="utf-8")
    PICTURES.mkdir(parents=True, exist_ok=True)

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport=viewport)  # type: ignore[arg-type]
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(file.as_uri())
        page.screenshot(path=PICTURES / f"{name}.png", full_page=True)
        wide, beyond = page.evaluate("document.documentElement.scrollWidth"), page.evaluate(BEYOND)
        printed = page.pdf(format="A4")
        browser.close()

    assert (wide, beyond) == (viewport["width"], [])
    assert (asked, printed[:5]) == ([file.as_uri()], b"%PDF-")
