"""Texts of others inside Markdown: nothing of them becomes markup."""

from __future__ import annotations

import html
import re


def cell(text: str) -> str:
    """*text* so that it stays within one cell of a table and is no markup."""
    return html.escape(" ".join(text.split()), quote=False).replace("|", "\\|").replace("`", "\\`")


def fenced(sql: str) -> str:
    """*sql* in a fence longer than any run of backticks in it."""
    fence = "`" * (2 + max([1, *map(len, re.findall("`+", sql))]))
    return f"{fence}\n{sql}\n{fence}"
