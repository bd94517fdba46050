"""
Sample outputs for the README, taken from a real rollout of nine rows: `python -m flows.samples_readme` writes them anew.

What differs from run to run (times, durations, names of hosts and schemas) is replaced by what stands for it, the server counts as
fast as the figures behind the estimates, long lines are broken, and of the report's first phase one step is shown.
"""

from __future__ import annotations

import io
import os
import platform
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

from deploy.mysql_server import provide
from flows.cli import ending, leaving
from flows.cli.app import main as rollout
from flows.demo.traffic import seed
from steps import rehearsal
from steps.target import ENVIRONMENT

README = Path(__file__).resolve().parents[1] / "README.md"
PLAN, SCHEMA, HOST = "ai_analysis_job", "shop", "admin-1"
RUN = ("run", PLAN, "--no-prefect", "--by", "ann", "--reason", "CHG-1234")
CALLS = {"check": ("check", PLAN), "plan": ("plan", PLAN), "waits": RUN, "status": ("status", PLAN),
         "goes on": (*RUN, "--deployed-by", "ben"), "report": ("report", PLAN)}
SHOWN = ("check", "plan", "status", "report")
BLOCK = re.compile(r"(<!-- begin sample (\w+) -->\n).*?(<!-- end sample \2 -->)", re.DOTALL)
WIDTH, UNBROKEN = 138, 400
STANDS_FOR = ((r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", "2026-06-21T09:00:00.000Z"), (r"(?m)^  \d\d:\d\d:\d\d\.\d{3}", "  09:00:00.000"),
              (r"\(\d[\d.,]* ms", "(N ms"), (r"estimate_ms = [\d.]+", "estimate_ms = N"), (r"(?m)( / )[\d.]+$", r"\1N"),
              (r"connection: .*", "connection: TLSv1.3, certificate not looked at"))
ONE_STEP = "010_widen_job_type"
Call = Callable[[tuple[str, ...]], str]


def samples(call: Call, schema: str) -> dict[str, str]:
    """
    Each sample by its name, from the first look to the report, with a person who deploys by hand in between.

    *call* runs `rollout WORDS` on the seeded, untouched database *schema* and returns what went to stdout.
    """
    with as_fast_as_the_figures(), patch.object(ending, "PIPE_COLUMNS", UNBROKEN):
        said = {name: call(words) for name, words in CALLS.items()}
    return {name: fenced(CALLS[name], standing_for(said[name], schema)) for name in SHOWN}


@contextmanager
def as_fast_as_the_figures() -> Iterator[None]:
    """The server is taken to be no slower than the one the estimates were measured on, so that they come out the same everywhere."""
    with patch.object(rehearsal, "NOMINAL_MS", float("inf")):
        yield


def standing_for(text: str, schema: str) -> str:
    """*text* with a placeholder for each thing that no two runs have in common."""
    text = text.replace(schema, SCHEMA).replace(f" on {platform.node()}:", f" on {HOST}:")
    for varies, placeholder in STANDS_FOR:
        text = re.sub(varies, placeholder, text)
    return text


def fenced(words: tuple[str, ...], text: str) -> str:
    """The call and what it said, as a block of the README."""
    lines = [line for line in _abridged(text.splitlines()) if not _is_border(line)]
    while lines and not lines[-1].strip():
        lines.pop()
    return "\n".join(["```text", f"$ rollout {' '.join(words)}", *_broken(_narrowed(lines)), "```"])


def _abridged(lines: list[str]) -> Iterator[str]:
    """A report without the other steps of its first phase and without the texts for the application's repository."""
    step = ""
    for line in lines:
        found = re.match(r"  09:00:00\.000  (\w+) +(?:back )?(.+?): ", line)
        step = f"{found[1]} {found[2]}" if found else step if line.startswith("      ") else ""
        if step.startswith("pre_deploy ") and not step.endswith(ONE_STEP):
            continue
        yield line
        if step.endswith(ONE_STEP) and "algorithm = " in line:
            yield "  …"
        if line.startswith("In the application's repository"):
            yield "  …"
            return


def _is_border(line: str) -> bool:
    return line[:1] in ("┏", "┡", "└")


def _narrowed(lines: list[str]) -> Iterator[str]:
    """Rows of a table with a rule under the head instead of a box, as wide as their cells are now."""
    rows = [[cell.strip() for cell in re.split("[│┃]", line)[1:-1]] for line in lines if line[:1] in ("│", "┃")]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for line in lines:
        if line[:1] not in ("│", "┃"):
            yield line
            continue
        cells = [cell.strip() for cell in re.split("[│┃]", line)[1:-1]]
        yield "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()
        if line[:1] == "┃":
            yield "  ".join("─" * width for width in widths)


def _broken(lines: Iterator[str]) -> Iterator[str]:
    """Lines that are too wide for a page go on in the next, further in; a table's stay as they are."""
    for line in lines:
        inside = " " * (len(line) - len(line.lstrip()) + 4)
        yield from [line] if "  " in line.strip() else textwrap.wrap(line, WIDTH, subsequent_indent=inside, break_long_words=False,
                                                                      break_on_hyphens=False) or [""]


def render(text: str, made: dict[str, str]) -> str:
    """*text* with every sample made anew. Safe to repeat."""
    return BLOCK.sub(lambda found: f"{found[1]}{made[found[2]]}\n{found[3]}", text)


def in_this_process(words: tuple[str, ...]) -> str:
    """What `rollout WORDS` prints on stdout."""
    said = io.StringIO()
    with patch.object(sys, "argv", ["rollout", *words]), redirect_stdout(said), redirect_stderr(io.StringIO()), leaving.staying():
        try:
            rollout()
        except SystemExit:
            return said.getvalue()
    return said.getvalue()


def main() -> None:
    """Take the samples on a private server and write them into the README."""
    with provide() as server:
        url = f"{server.url.rstrip('/')}/{SCHEMA}"
        seed(url)
        with patch.dict(os.environ, {ENVIRONMENT: url}):
            README.write_text(render(README.read_text(encoding="utf-8"), samples(in_this_process, SCHEMA)), encoding="utf-8")


if __name__ == "__main__":
    main()
