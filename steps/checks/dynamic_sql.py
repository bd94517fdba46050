"""
Events and routines of the table's schema that PREPARE their statements: which tables and columns those name is not in their text.

A program that never PREPAREs, or only whole texts that do not name the table, is of no interest here.
"""

from __future__ import annotations

from steps.checks import words
from steps.checks.finding import Look
from steps.mysql import VALUE

ENDS = {";", ",", "END"}


def unseen(look: Look) -> list[str]:
    """Subjects of programs whose prepared statements may name the table. One look at the catalogue."""
    return [f"{kind} {look.schema}.{name}" for kind, name, text in look.session.query(
        "SELECT 'event', EVENT_NAME, EVENT_DEFINITION FROM information_schema.EVENTS WHERE EVENT_SCHEMA = "
        f"{VALUE} AND LOWER(EVENT_DEFINITION) LIKE {VALUE} UNION ALL SELECT LOWER(ROUTINE_TYPE), ROUTINE_NAME, ROUTINE_DEFINITION "
        f"FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = {VALUE} AND LOWER(ROUTINE_DEFINITION) LIKE {VALUE} ORDER BY 1, 2",
        look.schema, "%prepare%", look.schema, "%prepare%") if may_name(str(text), look.table)]


def may_name(text: str, table: str) -> bool:
    """Whether a statement that *text* prepares may name *table*: a string of it does, or the statement is put together at run time."""
    try:
        spelled = words.spelled(text)
    except words.Unreadable:
        return True
    upper = [word.upper() for word in spelled]
    prepared = [at + 3 for at, word in enumerate(upper) if word == "PREPARE" and upper[at - 1:at] != ["DEALLOCATE"]
                and upper[at + 2:at + 3] == ["FROM"]]
    if not prepared:
        return False
    strings = [word for word in spelled if word.startswith("'")]
    if any(table.lower() in string.lower() for string in strings):
        return True
    return not all(_is_plain(spelled, at) for at in prepared)


def _is_plain(spelled: list[str], at: int) -> bool:
    """Whether what is prepared at *at* is a string, or a variable that is only ever set to whole strings."""
    if spelled[at].startswith("'"):
        return True
    name = [word.lower() for word in spelled[at:at + 2]]
    sets = [place + 2 for place in range(len(spelled) - 2) if [word.lower() for word in spelled[place:place + 2]] == name
            and spelled[place + 2] in ("=", ":=", ":")]
    starts = [place + 1 + (spelled[place] == ":") for place in sets]
    return bool(starts) and all(spelled[start:start + 1] and spelled[start].startswith("'") and
                                (spelled[start + 1:start + 2] or [";"])[0].upper() in ENDS for start in starts)
