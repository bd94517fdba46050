"""
Markdown pages for Prefect's artifacts: what others wrote is shown and never obeyed, and a page that grows too long is cut honestly.

Secrets are masked before anything is escaped, since an escaped one would not be known any more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from flows.visible import cut, one_line, visible
from steps.masking import mask

LONGEST_BYTES = 50_000  # Prefect stores each artifact twice (research B5)
LONGEST_CELL = 600
LONGEST_STATEMENT = 6000
MARKS = re.compile(r"([\\`*\[\]|~])|(?<![0-9A-Za-z])_|_(?![0-9A-Za-z])")
HTML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def words(text: object, most: int = LONGEST_CELL) -> str:
    """*text* on one line, without any meaning to Markdown or HTML; fit for a table's cell."""
    return MARKS.sub(lambda found: "\\" + found.group(), cut(one_line(mask(str(text))), most)).translate(HTML)


def code(name: object, most: int = LONGEST_CELL) -> str:
    """*name* as code on one line; longer than any run of backticks in it. Not for a table's cell, which a `|` would end."""
    text = cut(one_line(mask(str(name))), most)
    mark = "`" * (1 + max([0, *map(len, re.findall("`+", text))]))
    return f"{mark} {text} {mark}" if "`" in text else f"{mark}{text}{mark}"


def fenced(sql: str, language: str = "sql") -> str:
    """*sql* in a fence longer than any run of backticks in it."""
    text = cut(visible(mask(sql)), LONGEST_STATEMENT)
    fence = "`" * (2 + max([1, *map(len, re.findall("`+", text))]))
    return f"{fence}{language}\n{text}\n{fence}"


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, numbers: frozenset[str] = frozenset()) -> list[str]:
    """The lines of a table; *numbers* are the columns set to the right. Cells are escaped here."""
    head = [f"| {' | '.join(columns)} |", "|" + "|".join("---:" if column in numbers else "---" for column in columns) + "|"]
    return head + [f"| {' | '.join(words('' if cell is None else cell) for cell in row)} |" for row in rows]


def item(*lines: str) -> str:
    """One item of a list, each of its *lines* on a line of its own. Nothing is escaped here."""
    return "- " + "  \n  ".join(lines)


def image(alt: str, uri: str) -> str:
    """A picture in the page itself. Prefect's UI shows `data:` URIs here; its image artifact would print the whole URI below (3.9.1)."""
    return f"![{words(alt, 1000)}]({uri})"


class Page:
    """
    A page within :data:`LONGEST_BYTES`: what is added first is kept; of a part that does not fit any more, what was left out is told.
    No part takes more than half of the room that is left, so that the next ones have some too; the *last* one may take it all.

    *where* is the command that tells all of it.
    """

    def __init__(self, where: str, most: int = LONGEST_BYTES) -> None:
        self.where, self._room = where, most
        self._lines: list[str] = []

    def add(self, *lines: str) -> None:
        """Lines of the page's own making, short by themselves."""
        for line in lines:
            self._fits(line)

    def part(self, title: str, blocks: Sequence[str], what: str, *, head: Sequence[str] = (), last: bool = False) -> None:
        """A section *title* of *blocks*, as many as fit, under *head*; nothing where there are none."""
        if not blocks:
            return
        self.add("", f"## {title}", "", *head)
        spare = 0 if last else self._room // 2
        for number, block in enumerate(blocks):
            if not self._fits(block, spare):
                self.add("", f"*{len(blocks) - number} of {len(blocks)} {what} left out here; all of them: `{self.where}`*")
                return

    def _fits(self, line: str, spare: int = 0) -> bool:
        size = len(line.encode("utf-8", "replace")) + 1
        if size > self._room - spare:
            return False
        self._room -= size
        self._lines.append(line)
        return True

    def __str__(self) -> str:
        return "\n".join(self._lines) + "\n"
