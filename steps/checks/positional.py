"""
Writers that the plan's columns break although they name none: INSERT without a column list, INSERT … SELECT *, REPLACE (case C32).

Only what was really seen is told: in stored programs, and in the server's statement digests of the last week, which hold no values.
"""

from __future__ import annotations

from steps.checks import changes, words
from steps.checks.finding import Finding, Look, could_not_look, unavailable
from steps.errors import StatementFailed
from steps.mysql import VALUE

NAME = "positional"
RECENT_DAYS = 7
SAYS_HOW = {"LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "IGNORE", "INTO"}
BY_POSITION = {"VALUES", "VALUE", "SELECT", "WITH", "TABLE"}
SHOWN = 5


def run(look: Look) -> list[Finding]:
    """One finding for each kind of statement; nothing once the plan's columns are all there. Reads the catalogue and digests only."""
    if not look.shape.columns or not _adds(look):
        return []
    seen: dict[str, list[str]] = {}
    for program in look.programs:
        for kind in kinds(program.text or "", look.table):
            seen.setdefault(kind, []).append(program.subject)
    denied: list[Finding] = []
    try:
        for digest, text in _digests(look):
            for kind in kinds(text, look.table):
                seen.setdefault(kind, []).append(f"statement {digest[:12]}")
    except StatementFailed as error:
        if not unavailable(error):
            raise
        denied = [could_not_look(NAME, "statement digests", error, "warn")]
    return denied + [_finding(look, kind, users) for kind, users in sorted(seen.items())]


def kinds(text: str, table: str) -> set[str]:
    """`positional`, `copied` or `replaced`, for each statement of that kind in *text* that writes, or copies from, *table*."""
    try:
        spelled = words.spelled(text)
    except words.Unreadable:
        return set()
    found = set()
    for at, word in enumerate(spelled):
        if word.upper() not in ("INSERT", "REPLACE"):
            continue
        rest = spelled[at + 1:]
        while rest and rest[0].upper() in SAYS_HOW:
            rest = rest[1:]
        rest = rest[2:] if rest[1:2] == ["."] else rest
        if not rest or words.bare(rest[0]).lower() != table.lower():
            if _stars_from(rest[1:], table):
                found.add("copied")
            continue
        if word.upper() == "REPLACE":
            found.add("replaced")
        following = [part.upper() for part in rest[1:3]]
        if following[:1] and (following[0] in BY_POSITION or following == ["(", "SELECT"]):
            found.add("positional")
    return found


def _stars_from(rest: list[str], table: str) -> bool:
    """Whether *rest*, behind another table's name, goes on with SELECT * FROM *table*."""
    upper = [word.upper() for word in rest]
    if "SELECT" not in upper:
        return False
    chosen = rest[upper.index("SELECT") + 1:]
    names = chosen[2:3] if chosen[3:4] != ["."] else chosen[4:5]
    return chosen[:1] == ["*"] and bool(names) and words.bare(names[0]).lower() == table.lower()


def _adds(look: Look) -> bool:
    coming = [change.column for _step, _columns, made in changes.simulated(look) for change in made if change.does == "add"]
    return any(not look.has(name) for name in (*coming, *(rename.new for rename in look.plan.dual_renames)))


def _digests(look: Look) -> list[tuple[str, str]]:
    return [(str(digest), str(text)) for digest, text in look.session.query(
        "SELECT DIGEST, DIGEST_TEXT FROM performance_schema.events_statements_summary_by_digest WHERE SCHEMA_NAME = "
        f"{VALUE} AND LAST_SEEN > NOW(6) - INTERVAL {RECENT_DAYS} DAY AND (DIGEST_TEXT LIKE 'INSERT%' OR DIGEST_TEXT LIKE 'REPLACE%') "
        f"AND LOCATE({VALUE}, DIGEST_TEXT) > 0 ORDER BY 1", look.schema, look.table)]


def _finding(look: Look, kind: str, users: list[str]) -> Finding:
    who = ", ".join(users[:SHOWN]) + (f" and {len(users) - SHOWN} more" if len(users) > SHOWN else "")
    what, remedy = {
        "positional": ("write the table without naming columns and fail with 1136 as soon as a column is added",
                       "let them name their columns"),
        "copied": ("copy the table with SELECT * into another one, which fails with 1136 as soon as a column is added",
                   "let them name their columns"),
        "replaced": ("REPLACE rows, which deletes what the new application wrote into columns they do not name",
                     "let them use INSERT … ON DUPLICATE KEY UPDATE"),
    }[kind]
    return Finding(NAME, "warn", f"table {look.table}", f"{who}: they {what}", f"{remedy} before pre_deploy")
