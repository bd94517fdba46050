"""What keeps instant changes from a table and a clone does not show: row versions used up, a full-text index that was (C12, C13)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from steps.checks import changes, server
from steps.checks.finding import Finding, Look, could_not_look, unavailable
from steps.errors import StatementFailed
from steps.mysql import VALUE, Row

NAME = "instant"
ACCEPT = "row-versions"
ROW_VERSIONS = 64
ROW_VERSIONS_FROM_9_1 = 255
HIDDEN_INDEX = "FTS_DOC_ID_INDEX"


def run(look: Look) -> list[Finding]:
    """One look at InnoDB's own tables, which needs PROCESS."""
    if not look.shape.columns:
        return []
    try:
        versions = _of_the_table(look, "SELECT MAX(t.TOTAL_ROW_VERSIONS) FROM information_schema.INNODB_TABLES t WHERE")
        formerly = _of_the_table(look, "SELECT COUNT(*) FROM information_schema.INNODB_TABLES t JOIN information_schema.INNODB_INDEXES i "
                                 f"USING (TABLE_ID) WHERE i.NAME = '{HIDDEN_INDEX}' AND")
    except StatementFailed as error:
        if not unavailable(error):
            raise
        return [could_not_look(NAME, f"row versions of {look.table}", error, "warn")]
    return [*_row_versions(look, versions[0]), *_formerly_full_text(look, int(formerly[0]))]


def _of_the_table(look: Look, select: str) -> Row:
    """The table or its partitions, as InnoDB stores their names."""
    stored = f"{_file_name(look.schema)}/{_file_name(look.table)}"
    return look.session.one(f"{select} (t.NAME = {VALUE} OR LEFT(t.NAME, {VALUE}) = {VALUE})", stored, len(stored) + 3, f"{stored}#p#")


def _row_versions(look: Look, used: int | None) -> list[Finding]:
    """Each statement that adds or drops columns instantly takes one; 4092 would come half-way."""
    limit = ROW_VERSIONS_FROM_9_1 if server.facts(look.session).number >= (9, 1) else ROW_VERSIONS
    needed = _needed(look)
    if used is None or not needed or used + needed <= limit:
        return []
    return [Finding(
        NAME, "refuse", f"table {look.table}",
        f"has used {used} of {limit} row versions; what is left of the plan and its way back take {needed}",
        f"rebuild the table first (ALTER TABLE … FORCE, in place), or go on with --accept {ACCEPT}",
        ACCEPT)]


def _needed(look: Look) -> int:
    """Up: every statement still to come that adds or drops columns. Back: every one of the plan. A copy on the way sets them to zero."""
    wanted = list(_statements(look))
    left = [names for names in wanted if not all(look.has(name) for name in names)]
    gone = any(look.has(name) for name in look.plan.removed_columns)
    cleanup = 1 if look.plan.removed_columns else 0
    return len(left) + len(wanted) + (cleanup if gone else 0) + cleanup


def _statements(look: Look) -> Iterator[list[str]]:
    """The columns that each statement of pre_deploy adds."""
    for _step, _columns, made in changes.simulated(look):
        names = [change.column for change in made if change.does == "add"]
        if names:
            yield names
    yield from ([rename.new] for rename in look.plan.dual_renames)


def _formerly_full_text(look: Look, hidden: int) -> list[Finding]:
    """A FULLTEXT index leaves a hidden column and its index behind when it is dropped; instant steps get 1845 until a rebuild."""
    standing = any(text.startswith("FULLTEXT") for text in look.shape.indexes.values())
    if not hidden or standing or look.has("FTS_DOC_ID"):
        return []
    return [Finding(
        NAME, "refuse", f"table {look.table}",
        "once had a FULLTEXT index, whose hidden column is still there: every step that is instant on the clone would be refused on the "
        "table itself (1845)",
        "rebuild the table first: ALTER TABLE … FORCE, which is done in place")]


def _file_name(name: str) -> str:
    """*name* as InnoDB stores it; letters outside ASCII have codes of MySQL's own, and such tables are not found."""
    return re.sub(r"[^A-Za-z0-9_]", lambda found: f"@{ord(found[0]):04x}", name)
