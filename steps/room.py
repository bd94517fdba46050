"""
What steps that copy the table or build indexes on a large one need of the server: disk, and room for writes meanwhile (C24, C26).

Free space cannot be read over SQL, so a copy of a large table has to be acknowledged; nothing is said of small ones.
"""

from __future__ import annotations

from steps import catalogue
from steps.checks import Finding
from steps.ddl import moves
from steps.estimates import works_through
from steps.ladder import Ladder
from steps.mysql import VALUE
from steps.rollout import Rollout

SPACE = "space"
DEFAULT_LOG_BYTES = 128 << 20


def findings(rollout: Rollout, ladder: Ladder, start: int, end: int) -> list[Finding]:
    """What the moves from *start* to *end* need on a table over `large_rows`; reads the catalogue only."""
    rows = catalogue.estimated_rows(rollout.session, rollout.schema, rollout.table)
    if rows < rollout.plan.plan.large_rows:
        return []
    coming = moves(ladder, start, end, rows)
    copies = [move.stair.name for move in coming if move.way.algorithm == "COPY" or move.way.rebuilds]
    builds = [move.stair.name for move in coming if move.way.algorithm == "INPLACE" and works_through(move.way)]
    return [*_disk(rollout, copies), *_log(rollout, builds)]


def _disk(rollout: Rollout, copies: list[str]) -> list[Finding]:
    if not copies:
        return []
    data, index = rollout.session.one("SELECT DATA_LENGTH, INDEX_LENGTH FROM information_schema.TABLES WHERE TABLE_SCHEMA = "
                                      f"{VALUE} AND TABLE_NAME = {VALUE}", rollout.schema, rollout.table)
    needed = (int(data) + int(index)) >> 20
    return [Finding(
        "room", "refuse", f"table {rollout.table}",
        f"is built anew by step {', '.join(copies)}: {needed} MiB (data {int(data) >> 20}, indexes {int(index) >> 20}) have to be free on "
        "the data disk, and could not look: free space cannot be read over SQL",
        f"look at the disk, then go on with --accept {SPACE}",
        SPACE, could_not_look=True)]


def _log(rollout: Rollout, builds: list[str]) -> list[Finding]:
    kept = int(rollout.session.value("SELECT @@global.innodb_online_alter_log_max_size"))
    if not builds or kept >= DEFAULT_LOG_BYTES:
        return []
    return [Finding(
        "room", "warn", f"table {rollout.table}",
        f"is worked through by step {', '.join(builds)} while clients write, and innodb_online_alter_log_max_size keeps {kept >> 20} MiB "
        "of their writes only; beyond it the build is lost (error 1799)",
        "have it raised to the default of 128 MiB or more for as long as this takes")]
