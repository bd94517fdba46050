"""Prefect's pages in Debian's Chromium. Nothing here imports Prefect: its settings in this process belong to other tests."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from steps.target import Target
from tests.browser.chromium import provide_chromium
from tests.browser.cockpit import ROOT, Cockpit
from tests.browser.pages import DESK, Person

PICTURES = ROOT / "build" / "cockpit"
PATIENCE_MS = 90_000
DRAWING = ("--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader")  # as root; the run graph is WebGL


@pytest.fixture(scope="session")
def chromium() -> str:
    """Chromium's path; where there is none the tests fail, and say how to get it, before anything else is started."""
    return provide_chromium()


@pytest.fixture
def cockpit(chromium: str, tmp_path: Path, seeded: object, empty: Target) -> Iterator[Cockpit]:
    """Prefect and `rollout serve` for the test's nine jobs."""
    found = Cockpit(tmp_path)
    with found.server(), found.served(empty.url.render_as_string(hide_password=False)):
        yield found


@pytest.fixture
def person(chromium: str, cockpit: Cockpit) -> Iterator[Person]:
    """Somebody at a desk with Prefect's page before them; pictures of what they see are left in `build/cockpit`."""
    shutil.rmtree(PICTURES, ignore_errors=True)
    PICTURES.mkdir(parents=True)
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(DRAWING))
        page: Page = browser.new_page(base_url=cockpit.url, viewport=DESK)  # type: ignore[arg-type]
        page.set_default_timeout(PATIENCE_MS)
        found = Person(page, PICTURES)
        yield found
        found.looks("last")  # what they saw when it failed, or at the end
        browser.close()
