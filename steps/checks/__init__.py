"""
The pre-checks: one a file, listed here in the order in which they are read. They look, they never change anything.

All findings are reported at once. Three answers: an empty list is *clean*; a finding is *found*; a finding with
`could_not_look` is the third answer, which is never the first (design section 1, promise 5).
"""

from __future__ import annotations

from steps.checks import (
    blockers,
    claims,
    defaults,
    dependents,
    duplicates,
    privileges,
    renames,
    server,
    statuses,
    sync_leftovers,
    table_shape,
)
from steps.checks.finding import Check, Finding, Look, could_not_look, unavailable
from steps.errors import LockTimeout, StatementFailed

__all__ = ["CHECKS", "Check", "Finding", "Look", "findings"]

CHECKS = (
    Check(server.NAME, "flavour, version, read-only switches, whether metadata locks can be seen", server.run),
    Check(privileges.NAME, "every right that a later step needs, and the binary log's rule for triggers", privileges.run),
    Check(table_shape.NAME, "engine, primary key, partitions, columns, room for instant changes", table_shape.run),
    Check(defaults.NAME, "whether both defaults of a pair are constant and agree", defaults.run),
    Check(statuses.NAME, "values, byte by byte, that the plan's maps do not know", statuses.run),
    Check(claims.NAME, "values that one generation may claim and the other still sees as free", claims.run),
    Check(renames.NAME, "who still names a column that would be renamed in place", renames.run),
    Check(duplicates.NAME, "rows in the way of the plan's unique indexes and foreign keys", duplicates.run),
    Check(dependents.NAME, "generated columns, indexes, CHECKs, views, triggers, events and routines", dependents.run),
    Check(sync_leftovers.NAME, "triggers of our names with another body", sync_leftovers.run),
    Check(blockers.NAME, "who holds or awaits the table or its relatives; backups, DDL, prepared XA, old snapshots", blockers.run),
)


def findings(look: Look) -> list[Finding]:
    """
    What every check found, in the order of the tuple. Changes nothing, waits for no row lock, reads rows for 60 s at most.

    A check that was denied a look, or found nothing to look at, answers with one finding of the third kind. A server of
    another flavour or age is told alone: its catalogue would answer the other checks wrongly (cases C14, C103 to C105). So is who
    keeps the table locked so that no check can read it.

    Raises:
        StatementFailed: a check's statement failed for another reason than a missing right.
    """
    unsupported = server.unsupported(server.facts(look.session))
    if unsupported:
        return [unsupported]
    try:
        return [finding for check in CHECKS for finding in _answer(check, look)]
    except LockTimeout:
        return [blockers.locked_out(look)]


def _answer(check: Check, look: Look) -> list[Finding]:
    try:
        return check.run(look)
    except StatementFailed as error:
        if not unavailable(error):
            raise
        return [could_not_look(check.name, f"check {check.name}", error)]
