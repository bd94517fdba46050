"""The README's table of pre-checks, made from the tuple of checks: `python -m flows.checks_readme` writes it anew."""

from __future__ import annotations

import re
from pathlib import Path

from steps import room
from steps.checks import CHECKS

README = Path(__file__).resolve().parents[1] / "README.md"
BLOCK = re.compile(r"(<!-- begin checks -->\n).*?(<!-- end checks -->)", re.DOTALL)
Row = tuple[str, str, str, tuple[str, ...], str]
REHEARSED: tuple[Row, ...] = (
    ("rehearsal", "pre_deploy", "refuse", (), "whether every step goes up and down on a clone, and a sample of rows comes back unchanged"),
    ("copy-blocks", "pre_deploy", "refuse", (), "copies that would block writes for longer than `max_blocked_s` and cannot be handed over"),
    ("room", "pre_deploy", "refuse", (room.SPACE,), "what copies and index builds need of a server, with a table over `large_rows`"),
    ("sync", "pre_deploy", "warn", (), "whether the sync triggers that ought to stand do, with their own body"),
)
"""What is told after the rehearsal, as the checks are: name, phase it protects, severity, accept keys, looks at."""

HEAD = ("check", "protects", "severity", "`--accept`", "looks at")


def table() -> str:
    """One row a check, in the order in which they are read; behind them what the rehearsal has shown."""
    told = [(check.name, check.phase, check.severity, check.accepts, check.looks_at) for check in CHECKS]
    rows = [(f"`{name}`", f"`{phase}`", severity, ", ".join(f"`{key}`" for key in accepts) or "–", looks_at)
            for name, phase, severity, accepts, looks_at in (*told, *REHEARSED)]
    return "\n".join("| " + " | ".join(row) + " |" for row in (HEAD, ("---",) * len(HEAD), *rows))


def render(text: str) -> str:
    """*text* with the table made anew. Safe to repeat."""
    return BLOCK.sub(lambda found: f"{found[1]}{table()}\n{found[2]}", text)


if __name__ == "__main__":
    README.write_text(render(README.read_text()))
