"""
Does anybody still use the old columns? Evidence from the server's statement digests over a window in which we are silent.

It proves presence, never absence: what cannot be seen (truncated digests, `SELECT *`, lost digests, a restart, performance_schema
off) is *could not look*, an answer of its own (F13 and design section 2, cleanup gate; case C91).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from steps.checks import words
from steps.errors import StatementFailed
from steps.mysql import VALUE, Session, quote

GONE_WRONG = (1054, 1136, 1364)
CUT_SHARE = 0.9


@dataclass(frozen=True)
class Seen:
    """The server's counters at one moment: per digest (text, executions, errors), lost digests, uptime, errors by number."""

    digests: dict[str, tuple[str, int, int]]
    lost: int
    uptime_s: int
    errors: int
    longest_text: int


@dataclass(frozen=True)
class Usage:
    """What happened between two moments: who named the columns, and why more could not be seen."""

    users: tuple[str, ...]
    unseen: tuple[str, ...]


def look(session: Session, schema: str) -> Seen | None:
    """The counters now, or None where they cannot be read. Takes no lock."""
    try:
        if not session.value("SELECT @@performance_schema"):
            return None
        rows = session.query("SELECT DIGEST, DIGEST_TEXT, COUNT_STAR, SUM_ERRORS "
                             "FROM performance_schema.events_statements_summary_by_digest "
                             f"WHERE SCHEMA_NAME = {VALUE} AND DIGEST IS NOT NULL", schema)
        status: dict[str, Any] = dict(session.query(
            "SHOW GLOBAL STATUS WHERE Variable_name IN ('Performance_schema_digest_lost', 'Uptime')"))
        errors = session.value("SELECT SUM(SUM_ERROR_RAISED) FROM performance_schema.events_errors_summary_global_by_error "
                               f"WHERE ERROR_NUMBER IN ({', '.join(map(str, GONE_WRONG))})")
        longest = int(session.value("SELECT LEAST(@@max_digest_length, @@performance_schema_max_digest_length)"))
    except StatementFailed:
        return None
    return Seen({str(digest): (str(text or ""), int(count), int(wrong)) for digest, text, count, wrong in rows},
                int(status.get("Performance_schema_digest_lost", 0)), int(status.get("Uptime", 0)), int(errors or 0), longest)


def between(before: Seen | None, after: Seen | None, table: str, columns: tuple[str, ...]) -> Usage:
    """Who named one of *columns* of *table* between two looks, and what could not be seen."""
    if before is None or after is None:
        return Usage((), ("statement digests cannot be read (performance_schema off, or no right to it)",))
    users, unseen = [], []
    if after.uptime_s < before.uptime_s:
        unseen.append("the server was restarted, which empties the digests")
    if after.lost > before.lost:
        unseen.append(f"{after.lost - before.lost} digests were lost (performance_schema_digests_size is too small)")
    cut = star = 0
    ran = {d: text for d, (text, count, _wrong) in after.digests.items() if count > before.digests.get(d, ("", 0, 0))[1]}
    for digest, text in ran.items():
        folded = text.lower()
        about_table = quote(table).lower() in folded
        # A digest shows a keyword such as STATUS without the quotes that a client left out, so words are compared.
        named = [column for column in columns if column.lower() in words.names(text)] if about_table else []
        if about_table and named and not folded.startswith(("create ", "alter ", "show ", "explain ")):
            users.append(f"digest {digest[:12]} names {', '.join(named)}")
        elif len(text) >= after.longest_text * CUT_SHARE - 100 and (about_table or " from " not in folded):
            cut += 1
        elif about_table and "select *" in folded:
            star += 1
    if cut:
        unseen.append(f"{cut} statements are longer than max_digest_length = {after.longest_text} and show only their beginning")
    if star:
        unseen.append(f"{star} statements use SELECT *")
    return Usage(tuple(users), tuple(unseen))


def broke(before: Seen | None, after: Seen | None, table: str) -> str | None:
    """
    Whether statements on *table* began to fail as they do when they name a column that is gone (1054, 1136, 1364).

    Global counters say that such errors came, digests that they came on this table.
    """
    if before is None or after is None or after.errors <= before.errors:
        return None
    failing = [digest[:12] for digest, (text, _count, wrong) in after.digests.items()
               if quote(table).lower() in text.lower() and wrong > before.digests.get(digest, ("", 0, 0))[2]]
    if not failing and after.lost > before.lost:
        failing = ["unknown, since digests were lost"]  # could not look is never clean
    if not failing:
        return None
    return f"{after.errors - before.errors} errors 1054, 1136 or 1364 since the tombstones, statements {', '.join(failing)}"
