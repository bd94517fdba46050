"""The README's table of pre-checks, made from the tuple of checks: `python -m flows.checks_readme` writes it anew."""

from __future__ import annotations

import re
from pathlib import Path

from steps.checks import CHECKS

README = Path(__file__).resolve().parents[1] / "README.md"
BLOCK = re.compile(r"(<!-- begin checks -->\n).*?(<!-- end checks -->)", re.DOTALL)
HEAD = ("check", "protects", "severity", "`--accept`", "looks at")


def table() -> str:
    """One row a check, in the order in which they are read."""
    rows = [(f"`{check.name}`", f"`{check.phase}`", check.severity, ", ".join(f"`{key}`" for key in check.accepts) or "–", check.looks_at)
            for check in CHECKS]
    return "\n".join("| " + " | ".join(row) + " |" for row in (HEAD, ("---",) * len(HEAD), *rows))


def render(text: str) -> str:
    """*text* with the table made anew. Safe to repeat."""
    return BLOCK.sub(lambda found: f"{found[1]}{table()}\n{found[2]}", text)


if __name__ == "__main__":
    README.write_text(render(README.read_text()))
