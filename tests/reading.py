"""Markdown as Prefect's UI reads it: with tables, and with HTML that stands in it."""

from __future__ import annotations

from typing import Any

from markdown_it import MarkdownIt

READ = MarkdownIt("commonmark", {"html": True}).enable("table").enable("strikethrough")


def tokens(markdown: str) -> list[Any]:
    return [inner for token in READ.parse(markdown) for inner in (token, *(token.children or []))]


def kinds(markdown: str) -> set[str]:
    return {token.type for token in tokens(markdown)}


def shown(markdown: str) -> str:
    """What a person reads."""
    return " ".join("".join(token.content if token.type in ("text", "text_special", "code_inline", "fence") else "\n"
                            for token in tokens(markdown) if token.type != "inline").split())
