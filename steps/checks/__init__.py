"""
The pre-checks: one a file, listed here in the order in which they are read. They look, they never change anything.

All findings are reported at once. Three answers: an empty list is *clean*; a finding is *found*; a finding with
`could_not_look` is the third answer, which is never the first (design section 1, promise 5).
"""

from __future__ import annotations

from steps.checks import (
    auto_increment,
    blockers,
    claims,
    connections,
    defaults,
    definers,
    dependents,
    deploying,
    duplicates,
    foreign_keys,
    instant,
    leftovers,
    map_values,
    positional,
    privileges,
    proxy,
    renames,
    replicas,
    replication,
    row_size,
    server,
    statements,
    statuses,
    sync_leftovers,
    table_shape,
    transport,
    unenforced,
    way_back,
    zero_dates,
)
from steps.checks.finding import NO_GAP, Check, Finding, Look, could_not_look, unavailable
from steps.errors import LockTimeout, StatementFailed

__all__ = ["CHECKS", "Check", "Finding", "Look", "findings"]

CHECKS = (
    Check(server.NAME, "flavour, version, read-only switches, whether metadata locks can be seen", server.run,
          accepts=("known-bad-version", NO_GAP)),
    Check(proxy.NAME, "whether the address is the server itself", proxy.run),
    Check(transport.NAME, "whether what is said to a server elsewhere can be read on the way", transport.run, severity="warn"),
    Check(connections.NAME, "room for a run's connections, the account's limits among them", connections.run),
    Check(replication.NAME, "whether this is a replica, who reads the binary log, and in which format it is", replication.run,
          accepts=(replication.CDC, replication.REPLICA)),
    Check(replicas.NAME, "replicas that a pass is to spare: named, reachable, at work, near", replicas.run),
    Check(privileges.NAME, "every right that a later step needs, and the binary log's rule for triggers", privileges.run,
          accepts=(NO_GAP,)),
    Check(table_shape.NAME, "engine, primary key, partitioning, columns that the plan takes for given", table_shape.run),
    Check(instant.NAME, "row versions left for the plan and its way back, hidden columns of a former FULLTEXT index", instant.run,
          accepts=(instant.ACCEPT,)),
    Check(row_size.NAME, "declared bytes of a row with what the plan adds", row_size.run),
    Check(auto_increment.NAME, "values left in an AUTO_INCREMENT column", auto_increment.run, severity="warn"),
    Check(statements.NAME, "columns renamed, dropped, narrowed, stripped of attributes or added NOT NULL without a default; keys; "
          "clauses that drag each other down", statements.run, accepts=(statements.NARROWING, statements.LOST)),
    Check(foreign_keys.NAME, "definitions on both sides of new foreign keys, names used already, cascades into a pair", foreign_keys.run),
    Check(unenforced.NAME, "foreign keys that the server would enforce no longer beside a new unique index", unenforced.run,
          severity="warn"),
    Check(defaults.NAME, "whether both defaults of a pair are constant and agree", defaults.run),
    Check(map_values.NAME, "room for every value of the plan's maps in both columns of a pair", map_values.run),
    Check(statuses.NAME, "values, byte by byte, that the plan's maps do not know", statuses.run,
          accepts=("null-statuses",)),
    Check(claims.NAME, "values that one generation may claim and the other still sees as free", claims.run,
          phase="deploy", severity="warn"),
    Check(deploying.NAME, "what the way of deploying needs on this machine", deploying.run, phase="deploy", accepts=(deploying.ACCEPT,)),
    Check(renames.NAME, "who still names a column that would be renamed in place", renames.run,
          accepts=(renames.ACCEPT,)),
    Check(duplicates.NAME, "rows in the way of the plan's unique indexes and foreign keys", duplicates.run),
    Check(zero_dates.NAME, "dates with a zero month or day, where a step may copy the table", zero_dates.run),
    Check(way_back.NAME, "values longer than the way back of a widened column allows", way_back.run, severity="warn"),
    Check(dependents.NAME, "generated columns, indexes, foreign keys, CHECKs, views, triggers, events and routines that name columns "
          "to be removed", dependents.run),
    Check(positional.NAME, "statements that write by position, copy with SELECT * or REPLACE, in programs and digests", positional.run,
          severity="warn"),
    Check(definers.NAME, "accounts of the table's triggers", definers.run),
    Check(leftovers.NAME, "triggers and tables of other schema-change tools", leftovers.run),
    Check(sync_leftovers.NAME, "triggers of our names with another body", sync_leftovers.run,
          accepts=(sync_leftovers.ACCEPT,)),
    Check(blockers.NAME, "who holds or awaits the table or its relatives; backups, DDL, prepared XA, old snapshots", blockers.run,
          accepts=("blockers",)),
)


def findings(look: Look) -> list[Finding]:
    """
    What every check found, in the order of the tuple. Changes nothing, waits for no row lock, each read of rows takes 60 s at most.

    A check that was denied a look, or found nothing to look at, answers with one finding of the third kind. A server of
    another flavour or age is told alone: its catalogue would answer the other checks wrongly (cases C14, C103 to C105). So is
    a view in the table's place, and who keeps the table locked so that no check can read it.

    Raises:
        StatementFailed: a check's statement failed for another reason than a missing right.
    """
    unsupported = server.unsupported(server.facts(look.session))
    if unsupported:
        return [unsupported]
    if table_shape.is_no_base_table(look):
        return table_shape.run(look)
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
