"""What a person does on Prefect's pages, by what they can see there: names of links, labels of fields, words on buttons."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page, TimeoutError, expect  # noqa: A004  # its own, and no other is raised here

from flows.params import Request

RUN_MS, CLICK_MS = 180_000, 10_000
DESK, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
LOOKS = 10  # at a graph, until it has come to rest


class Person:
    """Somebody with *page* before them; the pictures they take are numbered and kept in *pictures*."""

    def __init__(self, page: Page, pictures: Path) -> None:
        self.page, self.pictures, self._taken, self._deployment = page, pictures, 0, ""
        self.main = page.get_by_role("main")

    def looks(self, name: str) -> None:
        """Keep a picture of the page as it is, in its whole length."""
        self._taken += 1
        self.page.evaluate("scrollTo(0, 0)")
        self.page.screenshot(path=self.pictures / f"{self._taken:02}-{name}.png", full_page=True)

    def looks_on_a_phone(self, name: str) -> None:
        """The same as a phone shows it."""
        self.page.set_viewport_size(PHONE)  # type: ignore[arg-type]
        self.sees_the_graph_at_rest()
        self.looks(name)
        self.page.set_viewport_size(DESK)  # type: ignore[arg-type]

    def sees_the_graph_at_rest(self) -> None:
        """The run's graph comes flying into an empty canvas: it is there when two looks see the same, and not what the first one saw."""
        canvas = self.main.locator("canvas").first
        first = before = canvas.screenshot()
        for _ in range(LOOKS):
            now = canvas.screenshot()
            if now == before != first:
                return
            before = now

    def opens_deployments(self) -> None:
        """As somebody who has only the address of the server."""
        self.page.goto("/")
        self.page.get_by_role("link", name="Deployments").click()

    def opens_form(self, deployment: str) -> None:
        """The form of *deployment*, from the list of deployments."""
        self._deployment = deployment
        self.page.get_by_role("link", name="Deployments").first.click()
        self.page.get_by_role("textbox", name="Search deployments").fill(deployment)
        link = self.page.get_by_role("table").get_by_role("link", name=deployment, exact=True).first
        for patience_ms in (CLICK_MS, CLICK_MS, RUN_MS):  # a search that is carried out late leads back to the list
            self._follows(link, "**/deployments/deployment/**")
            with suppress(TimeoutError):
                self.page.get_by_role("button", name="Run", exact=True).click(timeout=patience_ms)
                break
        self.page.get_by_role("menuitem", name="Custom run").click()
        expect(self.page.get_by_role("button", name="Submit")).to_be_visible()

    def _follows(self, link: Locator, to: str) -> None:
        """Click *link* until the page is the one at *to*: a click on a list that is just drawn anew goes nowhere."""
        for patience_ms in (CLICK_MS, CLICK_MS, RUN_MS):
            link.click()
            with suppress(TimeoutError):
                return self.page.wait_for_url(to, timeout=patience_ms)
        raise AssertionError(f"never came to {to}")

    def writes(self, form: type[Request], **texts: str) -> None:
        """Each of *texts* into the field of that name, of the form that is made of the model *form*."""
        for name, text in texts.items():
            self.writes_under(title_of(form, name), text)

    def writes_under(self, title: str, text: str) -> None:
        """*text* into the field with that *title*."""
        self.page.get_by_role("textbox", name=titled(title)).fill(text)

    def adds(self, form: type[Request], name: str, *items: str) -> None:
        """*items* to the list *name*."""
        heading = self.main.get_by_text(titled(title_of(form, name)))
        listed = heading.locator("xpath=ancestor::*[.//button[.='Add item']][1]")
        for number, item in enumerate(items):
            listed.get_by_role("button", name="Add item").click()
            listed.get_by_role("textbox").nth(number).fill(item)

    def picks(self, form: type[Request], name: str, *choices: str) -> None:
        """*choices* in the field *name*, which offers a few and takes several."""
        heading = self.main.get_by_text(titled(title_of(form, name)))
        heading.locator("xpath=following::button[contains(normalize-space(.), 'Select')][1]").click()
        for choice in choices:
            self.page.get_by_role("option", name=choice, exact=True).click()
        self.page.keyboard.press("Escape")
        expect(self.page.get_by_role("option")).to_have_count(0)  # another list may have options of the same names

    def chooses(self, form: type[Request], name: str, choice: str) -> None:
        """*choice* in the field *name*, which offers a few."""
        self.chooses_under(f"{re.escape(title_of(form, name))}|{re.escape(type_of(form, name))}", choice)

    def chooses_under(self, title: str, choice: str) -> None:
        """*choice* in the field whose button is named by that *title*, a pattern: the field's own, or its type's."""
        self.page.get_by_role("button", name=re.compile(f"^Select ({title})$")).click()
        self.page.get_by_role("option", name=choice, exact=True).click()
        expect(self.page.get_by_role("option")).to_have_count(0)

    def submits(self) -> None:
        """The form; and goes to the run that it made, by the list of runs: the note that tells of it is gone again in a few seconds."""
        made = self.page.get_by_role("textbox", name="Run Name").input_value()  # until the run has begun, and names itself
        self.page.get_by_role("button", name="Submit").click()
        expect(self.page.get_by_role("button", name="Submit")).to_have_count(0)
        self.page.get_by_role("link", name="Runs", exact=True).first.click()
        run = self.main.get_by_role("link", name=re.compile(rf"^({re.escape(made)}|{self._deployment} .+ by .+)$")).first
        self._follows(run, "**/runs/flow-run/**")
        expect(self.page.get_by_role("tab", name="Task Runs")).to_be_visible()

    def waits_for(self, state: str) -> None:
        """Until the run before them is in *state*."""
        expect(self.main.get_by_text(state, exact=True).first).to_be_visible(timeout=RUN_MS)

    def opens_tab(self, name: str) -> Locator:
        """A tab of the run's page; what is in it."""
        self.page.get_by_role("tab", name=name).click()
        return self.page.get_by_role("tabpanel", name=name)

    def asks_the_run_to(self, action: str) -> None:
        """Choose *action* from the menu of the run before them."""
        self.main.get_by_role("button", name="Open menu").first.click()
        self.page.get_by_role("menuitem", name=action).click()


def titled(title: str) -> re.Pattern[str]:
    """A field's label: its title, and whether it may be left out."""
    return re.compile(rf"^{re.escape(title)}( \(Optional\))?$")


def title_of(form: type[Request], name: str) -> str:
    """The title under which Prefect's page shows the field *name*."""
    shown: dict[str, Any] = form.model_json_schema()["properties"][name]
    return str(shown.get("title") or type_of(form, name))


def type_of(form: type[Request], name: str) -> str:
    """The title of the type that the field *name* is of."""
    schema: dict[str, Any] = form.model_json_schema()
    return str(schema["$defs"][schema["properties"][name]["$ref"].rpartition("/")[2]]["title"])
