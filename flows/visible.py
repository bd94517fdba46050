"""Texts of others (names, reasons, statements) made visible: what could steer a terminal, a page or the reader's eye is spelled out."""

from __future__ import annotations

import unicodedata

KEPT = frozenset("\n\t")
STEERING = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})  # controls, bidirectional overrides, zero width, halves of pairs


def visible(text: str) -> str:
    """*text* with every character that is not seen, or that turns others round, as its number. Line breaks and tabs stay."""
    return "".join(char if char in KEPT or unicodedata.category(char) not in STEERING else f"⟨U+{ord(char):04X}⟩" for char in text)


def one_line(text: str) -> str:
    """:func:`visible` without line breaks."""
    return " ".join(visible(text).split())


def cut(text: str, most: int) -> str:
    """*text*, or its first *most* characters and how many were left out."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most:,} more characters)"


def number(value: float | None) -> str:
    """A number as people write it; nothing for None."""
    return "" if value is None else f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"  # noqa: PLR2004


def duration(seconds: float) -> str:
    """*seconds* in the largest unit that tells enough."""
    for unit_s, unit, smaller_s, smaller in ((86_400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if seconds >= unit_s:
            left = int(seconds % unit_s // smaller_s)
            return f"{int(seconds // unit_s)} {unit}" + (f" {left} {smaller}" if left else "")
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def when(text: str | None) -> str:
    """The ledger's time as people write it; all of them are UTC."""
    return (text or "").replace("T", " ").removesuffix("Z")


def second(text: str | None) -> str:
    """:func:`when` to the second."""
    return when(text).partition(".")[0]
