"""
kill -9 at every boundary, forward and back; then the same command again must end well, and exactly as if nothing had happened.

By default a sample: in holds the point after every single statement (between two of them nothing else happens on the server), of
the others every few and the last. ROLLOUT_FULL_MATRIX=1 tries them all. The rehearsal leaves nothing behind and is remembered, so
that a case takes a second, but for those that die in it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pymysql
import pytest

from deploy.mysql_server import Server
from tests.faults.theatre import START, Theatre, opened

FULL = bool(os.environ.get("ROLLOUT_FULL_MATRIX"))
KILLED = -9
EVERY = 70  # of the points outside holds
CLONE_EVERY = 200


@pytest.fixture(scope="module")
def theatre(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Theatre]:
    with opened(server.url, tmp_path_factory.mktemp("faults")) as standing:
        yield standing


def on_clone(theatre: Theatre, command: str) -> list[str]:
    """What the rehearsal of *command* passes: the first one looks for the baseline too, the way down knows it."""
    if command == "run":
        return theatre.on_clone
    if not FULL or command != "back-drop":
        return []
    theatre.enter(command)
    return list(theatre.run(command, known=False)["passed"]["clone"])


def chosen(live: list[str], clone: list[str]) -> Iterator[tuple[str, int]]:
    for number, name in enumerate(live, 1):
        effect = name.startswith(("[hold] done", "[hold] the tables", "before release"))
        if FULL or (effect and number % 2) or (not name.startswith("[hold]") and number % EVERY == EVERY // 2):
            yield "live", number
    for number in range(1, len(clone) + 1):
        if FULL or number % CLONE_EVERY == CLONE_EVERY // 2:
            yield "clone", number


def killed_and_run_again(theatre: Theatre, command: str, series: str, at: int, wanted: dict[str, Any]) -> list[str]:
    """What is wrong after a kill at that boundary; empty when nothing is."""
    theatre.enter(command)
    died = theatre.run(command, series=series, at=at, known=series == "live")
    passed = len(died.get("passed", {}).get(series, []))
    if died["ended"] == 0 and 0 < passed < at:  # a beat more or less: the last boundary of this run is before that of the one counted
        return killed_and_run_again(theatre, command, series, passed, wanted)
    if died["ended"] != KILLED:
        return [f"was not killed but ended with {died['ended']}: {died.get('said')}"]
    try:
        theatre.clients(command)
    except (pymysql.err.Error, AssertionError) as error:
        return [f"{died['at']}: a client failed after the kill, ledger {theatre.stage.states()}: {error!r}"]
    again = theatre.run(command, known=series == "live")
    if again["ended"]:
        return [f"{died['at']}: run again, it ended with {again['ended']}: {again.get('said')}"]
    ending = theatre.ending(command)
    return [f"{died['at']}: {what} is {ending.get(what)!r} instead of {wanted.get(what)!r}"
            for what in wanted.keys() | ending.keys() if ending.get(what) != wanted.get(what)]


def test_a_copied_state_is_the_state(theatre: Theatre) -> None:
    theatre.stage.restore(theatre.states["dropped"])

    assert theatre.stage.copied().anonymous() == theatre.states["dropped"].anonymous()
    assert theatre.run("cleanup")["said"] == "nothing to do"


@pytest.mark.timeout(7200 if FULL else 600)
@pytest.mark.parametrize("command", START)
def test_killed_anywhere_and_run_again_it_ends_as_if_nothing_had_happened(theatre: Theatre, command: str) -> None:
    live, wanted = theatre.undisturbed(command)
    clone = on_clone(theatre, command)
    cases = list(chosen(live, clone))

    wrong = {f"{command} {series}:{at}": found for series, at in cases
             if (found := killed_and_run_again(theatre, command, series, at, wanted))}

    print(f"{command}: {len(live)} boundaries, {len(clone)} more on the clone, {len(cases)} tried, "  # noqa: T201  # the figures
          f"{len(cases) - len(wrong)} ended equal; longest wait of a client {theatre.stage.longest_s * 1000:.0f} ms")
    assert not wrong, "\n".join(f"{where}: {text[:1500]}" for where, texts in wrong.items() for text in texts)
