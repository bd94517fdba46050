"""
Renames in place: who would fail from that second on (F2; case C88).

Prisma names every column in every statement, so each request of a client that knows the old name fails with 1054 (P2022).
"""

from __future__ import annotations

from steps import catalogue
from steps.checks import words
from steps.checks.finding import Finding, Look
from steps.mysql import VALUE

NAME = "renames"
ACCEPT = "rename-in-place"
RECENT_S = 3600
CREATED_BY_US = ("create ", "alter ", "show ", "explain ")


def run(look: Look) -> list[Finding]:
    """
    One finding for each rename in place that is still to come; it refuses while clients that name the old column were seen in the
    last hour, or where nobody could be seen. Reads statement digests only.
    """
    if not look.plan.plan.renames_in_place:
        return []
    return [_finding(look, rename.old, rename.new) for rename in look.plan.renames
            if catalogue.has_column(look.session, look.schema, look.table, rename.old)]


def _finding(look: Look, old: str, new: str) -> Finding:
    cost = (f"is renamed to {new} in place: from that second on every request that names it fails with 1054, and before it every one "
            f"that names {new}")
    remedy = 'stop the old application first, or use path = "zero_downtime"'
    if not look.session.value("SELECT @@performance_schema"):
        return Finding(NAME, "refuse", f"column {look.table}.{old}", f"{cost}; whether anybody does could not be seen "
                       "(performance_schema is off)", remedy, ACCEPT, could_not_look=True)
    seen = [str(digest)[:12] for digest, text in look.session.query(
        "SELECT DIGEST, DIGEST_TEXT FROM performance_schema.events_statements_summary_by_digest WHERE SCHEMA_NAME = "
        f"{VALUE} AND LAST_SEEN > NOW(6) - INTERVAL {RECENT_S} SECOND AND DIGEST_TEXT LIKE {VALUE}", look.schema,
        f"%{look.table}%") if old.lower() in words.names(str(text)) and not str(text).lower().startswith(CREATED_BY_US)]
    if seen:
        return Finding(NAME, "refuse", f"column {look.table}.{old}", f"{cost}; statements of the last hour that name it: "
                       f"{', '.join(seen[:5])}", remedy, ACCEPT)
    lost = int((look.session.query("SHOW GLOBAL STATUS LIKE 'Performance_schema_digest_lost'") or [("", 0)])[0][1])
    if lost:
        return Finding(NAME, "refuse", f"column {look.table}.{old}", f"{cost}; whether anybody does could not be seen ({lost} statement "
                       "digests were lost, performance_schema_digests_size is too small)", remedy, ACCEPT, could_not_look=True)
    return Finding(NAME, "warn", f"column {look.table}.{old}", f"{cost}; no statement of the last hour shows it, which proves little: "
                   "long statements are cut before their last column", remedy)
