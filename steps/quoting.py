"""One quoting function for names, and texts that mean the same under every sql_mode; values are bound with :data:`VALUE`."""

from __future__ import annotations

from steps.errors import Refused

VALUE = "\x00?"
"""The place of a bound value: a mark that no identifier may contain."""

LONGEST_NAME = 64
LAST_BMP = 0xFFFF


def quote(name: str) -> str:
    """
    *name* as an identifier; the only way a name gets into SQL (case C80).

    Raises:
        Refused: for names MySQL or this tool cannot carry: empty, over 64 characters, with NUL, ending in a space,
            or outside the Basic Multilingual Plane.
    """
    if not name or len(name) > LONGEST_NAME or "\x00" in name or name.endswith(" ") or any(ord(c) > LAST_BMP for c in name):
        raise Refused(f"name {name!r}", "is not a usable MySQL identifier", "rename the object or correct the plan")
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    """
    *text* as an SQL string for trigger bodies and guards; the same under every sql_mode (case C77).

    Without a character set introducer: the catalogue shows bodies without those, and bodies are compared (case C73).
    """
    return f"'{text}'" if _plain(text) else f"CONVERT(x'{text.encode().hex()}' USING utf8mb4)"


def byte_literal(text: str) -> str:
    """*text* to be held against a binary expression."""
    return f"'{text}'" if _plain(text) else f"x'{text.encode().hex()}'"


def _plain(text: str) -> bool:
    return all(" " <= c <= "~" and c not in "'\\" for c in text)
