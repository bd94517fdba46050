"""The README's sample outputs are what the commands print today."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from flows import samples_readme
from flows.demo.traffic import seed
from steps.target import ENVIRONMENT, Target
from tests.cli.conftest import quiet_afterwards  # noqa: F401  # used by being here

TEXT = samples_readme.README.read_text(encoding="utf-8")


@pytest.fixture
def made(empty: Target, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """The samples taken anew, on a database of this test's."""
    url = empty.url.render_as_string(hide_password=False)
    seed(url)
    monkeypatch.setenv(ENVIRONMENT, url)
    return samples_readme.samples(samples_readme.in_this_process, empty.schema)


def test_samples_are_what_the_commands_print(made: dict[str, str]) -> None:
    """When this fails: `python -m flows.samples_readme`."""
    shown = {name: block.partition("\n")[2].rpartition("<!--")[0].rstrip("\n") for name, block in (
        (found[2], found[0]) for found in samples_readme.BLOCK.finditer(TEXT))}

    assert list(shown) == list(samples_readme.SHOWN)
    for name, block in made.items():
        assert shown[name] == block, name


def test_making_them_again_keeps_what_is_written_by_hand() -> None:
    made = samples_readme.render("before\n<!-- begin sample check -->\nold\n<!-- end sample check -->\nafter\n", {"check": "new"})

    assert made == "before\n<!-- begin sample check -->\nnew\n<!-- end sample check -->\nafter\n"


def test_what_no_two_runs_have_in_common_is_replaced() -> None:
    shown = "\n".join(found[0] for found in samples_readme.BLOCK.finditer(TEXT))

    assert set(re.findall(r"20\d\d-\d\d-\d\d", shown)) == {"2026-06-21"}
    assert re.findall(r"\(\d[\d.]* ms", shown) == []
