"""The Chinese README holds what the English one holds: a command, code, phase or option that is added or renamed has to come into both."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from flows.desk import ACCEPT_KEYS
from flows.params import Through
from steps.errors import EXIT_CODES
from steps.phase import FORWARD, Phase

ROOT = Path(__file__).resolve().parents[2]
ENGLISH = (ROOT / "README.md").read_text(encoding="utf-8")
CHINESE = (ROOT / "README.zh.md").read_text(encoding="utf-8")
RUNBOOK = (ROOT / "deploy" / "runbook.md").read_text(encoding="utf-8")
IN_THE_ADR = {  # ADR-002 section 8: its own words, and what they are in Chinese
    Phase.PRE_DEPLOY: ("1. Pre-deploy", "部署前"),
    Phase.DEPLOY: ("2. Deploy V1", "部署 V1"),
    Phase.BACKFILL: ("3. Backfill", "回填"),
    Phase.VERIFY: ("4. Verify", "验证"),
    Phase.SHADOW_WRITE: ("5. Shadow Write", "双向影子写入"),
    Phase.CLEANUP: ("6. Cleanup", "清理"),
}
BESIDE = (("| command | what it does |", "| 命令 | 作用 |"), ("| exit code | meaning |", "| 退出码 | 含义 |"),
          ("| phase | what it does |", "| 阶段 | ADR 中的名称 |"), ("| `deploy.how` | puts out by |", "| `deploy.how` | 怎样上线 |"))


def first_cells(text: str, header: str) -> list[str]:
    """The first cell of each row of the one table whose head begins with *header*."""
    _, found, rest = text.partition("\n" + header)
    assert found, f"there is no table {header}"
    return [re.split(r"(?<!\\)\|", row)[1].strip() for row in rest.split("\n\n")[0].splitlines()[2:]]


@pytest.mark.parametrize(("english", "chinese"), BESIDE, ids=["commands", "exit codes", "phases", "ways of deploying"])
def test_each_row_of_the_english_tables_is_in_the_chinese_ones(english: str, chinese: str) -> None:
    rows = first_cells(ENGLISH, english)

    assert len(rows) >= 5
    assert first_cells(CHINESE, chinese) == rows


def test_exit_codes_are_those_of_the_code() -> None:
    assert [int(code) for code in first_cells(CHINESE, "| 退出码 | 含义 |")] == list(EXIT_CODES)


def commands(text: str) -> list[str]:
    """The calls of the product in blocks of a shell, without what is said about them."""
    blocks = "".join(re.findall(r"^```\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    return [" ".join(re.sub(r"\s#.*", "", line).split()) for line in blocks.splitlines() if re.match(r"(rollout|make|export) ", line)]


def test_the_calls_to_copy_are_the_same() -> None:
    copied = commands(CHINESE)

    assert len(copied) > 8
    assert [call for call in commands(ENGLISH) if call in copied] == copied


def test_each_phase_is_named_in_both_languages_here_and_in_the_runbook() -> None:
    assert tuple(IN_THE_ADR) == FORWARD
    for phase, (name, meaning) in IN_THE_ADR.items():
        (row,) = re.findall(rf"^\| `{phase}` \| (.*?) \|", CHINESE, re.MULTILINE)
        assert row.startswith(name)
        assert meaning in row
        assert re.search(rf"^### {re.escape(phase.label)}.*{re.escape(name.partition(' ')[2])}.*{meaning}", RUNBOOK, re.MULTILINE), phase


def test_every_way_back_of_the_cockpit_is_named() -> None:
    for name in ("rollback", *(f"rollback_{phase.value}" for phase in Through)):
        assert f"`{name}`" in CHINESE, name


def test_accept_keys_that_it_names_are_taken() -> None:
    named = set(re.findall(r"--accept ([a-z][a-z-]+)", CHINESE))

    assert len(named) > 3
    assert named <= ACCEPT_KEYS


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", CHINESE))))
def test_what_it_links_to_is_there(target: str) -> None:
    assert (ROOT / target).exists()


def test_it_is_found_from_the_english_one() -> None:
    assert "(README.zh.md)" in ENGLISH
