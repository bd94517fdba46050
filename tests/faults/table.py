"""What the matrix has to show: a line for each kind of fault."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

COLUMNS = ("kind", "faults tried", "ended equal", "writes acknowledged", "writes lost", "rows wrong", "same command again, most",
           "longest time to notice")
README = Path(__file__).with_name("README.md")


def lines(verdicts: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """The table's lines, kinds in the order in which they came, then all together. What met nothing was not tried."""
    kinds = dict.fromkeys(verdict["kind"] for verdict in verdicts)
    found = [(kind, [v for v in verdicts if v["kind"] == kind]) for kind in kinds]
    return [_line(kind, of_kind) for kind, of_kind in [*found, ("all", verdicts)]]


def _line(kind: str, found: list[dict[str, Any]]) -> tuple[str, ...]:
    tried = [v for v in found if v["hit"]]
    return (kind, str(len(tried)), str(sum(v["equal"] and not v["wrong"] for v in tried)), str(sum(v["acknowledged"] for v in found)),
            str(sum(v["lost"] for v in found)), str(sum(v["rows_wrong"] for v in found)), str(max((v["tries"] for v in found), default=0)),
            f"{max((v['noticed_s'] for v in found), default=0):.1f} s")


def into_readme(verdicts: list[dict[str, Any]]) -> None:
    """Put the table into the README beside this file, between its two marks."""
    ruled = ["| " + " | ".join(line) + " |" for line in (COLUMNS, ("---",) * len(COLUMNS), *lines(verdicts))]
    said = (f"{len(verdicts)} cases, of which {sum(not v['hit'] for v in verdicts)} came to an end before the fault could strike; "
            f"{sum(bool(v['wrong']) for v in verdicts)} ended wrong; {sum(v['took_s'] for v in verdicts) / 60:.0f} minutes of one worker.")
    text = README.read_text(encoding="utf-8")
    README.write_text(re.sub(r"(?<=<!-- begin faults -->\n).*?(?=<!-- end faults -->)", lambda _: "\n".join([*ruled, "", said, ""]), text,
                             flags=re.DOTALL), encoding="utf-8")


def show(verdicts: list[dict[str, Any]], seconds: float) -> None:
    """The table, what struck nothing, and the cases that are wrong."""
    console, shown = Console(width=160, highlight=False), Table(*COLUMNS)
    for line in lines(verdicts):
        shown.add_row(*line)
    console.print(shown)
    console.print(f"{len(verdicts)} cases in the journal, {sum(not v['hit'] for v in verdicts)} struck nothing, "
                  f"{sum(bool(v['wrong']) for v in verdicts)} wrong; {seconds / 60:.0f} minutes")
    for verdict in verdicts:
        if verdict["wrong"]:
            console.print(f"WRONG {verdict['case']} ({verdict['point']}): {verdict['wrong'][0]}", markup=False)
