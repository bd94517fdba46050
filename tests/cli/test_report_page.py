"""`report --html`: one file that needs nothing else, obeys nothing that is written in it, and answers who did what, when and why."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

from flows import report, report_page
from flows.phase_facts import went_back
from steps.ledger import Event
from steps.rollout import Rollout
from tests.cli.calling import DEPLOYED, PLAN, Call, standing
from tests.conftest import App
from tests.trails import HOSTILE, weeks

Rollouts = Callable[..., Rollout]
VOID = {"meta", "br"}


class Read(HTMLParser):
    """The page as a browser takes it: its tags in order, what they are given, and the text between them."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())

    @property
    def names(self) -> set[str]:
        return {tag for tag, _ in self.tags}


def written(here: Call, tmp_path: Path) -> Read:
    file = tmp_path / "report.html"
    assert here("report", PLAN, "--html", str(file)).code == 0
    return Read(file.read_text(encoding="utf-8"))


def needs_nothing_else(page: Read) -> None:
    """No script, nothing fetched, no name twice, every tag closed; its own policy forbids the rest."""
    assert page.open == []
    assert not page.names & {"script", "img", "link", "iframe", "object", "embed", "form", "base", "video", "audio", "image", "use"}
    for tag, given in page.tags:
        assert not [name for name in given if name.startswith("on")], tag
        for name in ("href", "src", "xlink:href", "action", "formaction"):
            assert str(given.get(name) or "#").startswith("#"), (tag, given)
    names = [given["id"] for _, given in page.tags if given.get("id")]
    assert len(names) == len(set(names))
    assert {str(given["href"])[1:] for _, given in page.tags if given.get("href")} <= {str(name) for name in names}
    [policy] = [given["content"] for tag, given in page.tags if given.get("http-equiv")]
    assert str(policy).startswith("default-src 'none'")


def test_the_page_is_one_file_with_verdict_people_phases_pictures_and_every_statement(here: Call, begun: App, tmp_path: Path) -> None:
    page = written(here, tmp_path)

    needs_nothing_else(page)
    text = page.text
    order = ["Run done: pre_deploy, deploy, backfill, verify, shadow_write done", "Next:", "Who, why, when", "Phases", "Pictures",
             "Every run"]
    assert [text.index(said) for said in order] == sorted(text.index(said) for said in order)
    assert "it is due" in text
    assert [given["id"] for tag, given in page.tags if tag == "section" and given.get("id")] == ["run-1"]
    assert sum(tag == "svg" for tag, _ in page.tags) == 3  # timeline, pace of the first pass, parity
    for said in ("Done: 11 schema steps, 2 sync triggers, proven by the canary, 6 of 9 rows filled.",
                 "Done: 9 rows looked at, 5 smoke queries, nothing wrong.", "Done: 9 rows looked at, all agree."):
        assert said in text
    statements = begun.rows("SELECT statement FROM _rollout_event WHERE statement IS NOT NULL")
    assert len(statements) >= 14
    for (statement,) in statements:
        assert text.count(" ".join(str(statement).split())) >= 2  # where it ran, and in the audit
    assert re.search(r"ann on \S+ \(run 1\)", text)


def test_who_was_asked_at_a_gate_and_said_what_stands_beside_the_runs(here: Call, seeded: App, tmp_path: Path) -> None:
    gated = ("--set", "gates.approve=['deploy']", "--set", "gates.approvers=['ben']")
    words = ("run", PLAN, "--no-prefect", "--through", "deploy", "--by", "ann", "--reason", "it is due", *DEPLOYED, *gated)
    assert here(*words).code == 4
    assert here("approve", PLAN, "deploy", "--by", "eve", "--reason", "me too", *gated).code == 3
    assert here("approve", PLAN, "deploy", "--by", "ben", "--reason", "looked at it", *gated).code == 0
    assert here(*words).code == 0

    page = written(here, tmp_path)

    needs_nothing_else(page)
    assert "Gates" in page.text
    assert re.search(r"2\. deploy [-\d]+ [:\d]+ ann it is due approved, and begun; in vain: eve: me too; refused: approval by eve "
                     r"does not count: gates.approvers are ben ben looked at it", page.text)


def test_a_page_of_a_virgin_database_says_that_nothing_has_begun(here: Call, seeded: App, tmp_path: Path) -> None:
    before = standing(seeded)
    page = written(here, tmp_path)

    needs_nothing_else(page)
    assert "Not begun" in page.text
    assert "nothing is on record" in page.text
    assert standing(seeded) == before


def test_hostile_names_and_reasons_are_read_and_never_obeyed(here: Call, seeded: App, tmp_path: Path) -> None:
    assert here("run", PLAN, "--no-prefect", "--through", "pre_deploy", "--by", HOSTILE, "--reason", HOSTILE * 3, *DEPLOYED).code == 0
    seeded.run("UPDATE _rollout_event SET step = %s, outcome = %s, statement = %s, detail = JSON_OBJECT(%s, %s) WHERE step = 'first pass'",
               HOSTILE[:190], "<b onmouseover=x>", f"SELECT '{HOSTILE}' {'x' * 100_000}", HOSTILE, HOSTILE)

    page = written(here, tmp_path)
    needs_nothing_else(page)
    assert "b" not in {tag for tag, given in page.tags if "onmouseover" in given}
    for said in ("<script>alert(1)</script> ![x](http://evil.example/y.png)", "</details>", "⟨U+202E⟩gnp.exe", "<b onmouseover=x>",
                 "数据 😀 &amp; {{ 7 * 7 }} '\"", "x" * 100_000):
        assert said in page.text
    assert "\u202e" not in page.text
    text = here("report", PLAN)
    assert text.code == 0
    assert not [line for line in text.out.splitlines() if line.startswith("# head")]


def test_weeks_of_a_rollout_that_went_back_once_tell_why_and_what_lies_between_the_runs(rollouts: Rollouts, seeded: App) -> None:
    rollout = rollouts()
    trail = weeks().document
    page = Read(report_page.page(trail, rollout))

    needs_nothing_else(page)
    assert went_back(trail["runs"][1])[0]["why"] in page.text
    assert "deploy was rolled back because: table Job: 1 of 20000 rows disagree" in page.text
    assert "Between the runs" in page.text
    assert page.text.count("parity watch") >= 6
    lines = report.text(trail)
    assert "deploy was rolled back because: table Job: 1 of 20000 rows disagree" in lines
    assert "between the runs" in lines


def test_after_a_way_back_what_was_undone_and_what_stands_are_told_apart(here: Call, begun: App, tmp_path: Path) -> None:
    assert here("rollback", PLAN, "shadow_write", "--no-prefect", "--by", "ann", "--reason", "not yet").code == 0

    page = written(here, tmp_path)
    assert "Rollback done. Undone: shadow_write. What stands: pre_deploy, deploy, backfill, verify Next:" in page.text


def test_a_way_back_that_ends_well_tells_the_failed_verify_that_it_takes_back(here: Call, seeded: App, tmp_path: Path) -> None:
    words = ("--no-prefect", "--by", "ann", "--reason", "it is due", *DEPLOYED, "--set", "verify.on_fail=stop", "--set",
             "verify.command=exit 9")
    assert here("run", PLAN, *words).code == 4
    assert here("rollback", PLAN, "--to", "pre_deploy", *words).code == 0

    page = written(here, tmp_path)
    assert ("Rollback done. Undone: verify, backfill, deploy. What stands: pre_deploy Before that, run 1 by ann failed. 4. verify: Failed: "
            "verify.command ended with 9 Next:") in page.text
    assert "verify failed all the same" in page.text


def test_what_was_looked_at_between_the_runs_is_told_by_all_three_forms(here: Call, begun: App, rollouts: Rollouts, tmp_path: Path) -> None:
    rollout = rollouts()
    rollout.ledger.record(Event("shadow_write", "parity watch", "clean", detail={"rows_examined": 9, "differing": 0, "complete": True}))

    document = here("report", PLAN, "--json").document
    assert [event["step"] for event in document["beside"]] == ["parity watch"]
    assert "parity watch: clean" in here("report", PLAN).text
    assert "parity watch" in written(here, tmp_path).text
