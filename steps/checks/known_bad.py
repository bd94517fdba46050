"""Server versions that are known to damage what a rollout does, by flavour and version (cases C34, C35)."""

from __future__ import annotations

from dataclasses import dataclass

Version = tuple[int, ...]


@dataclass(frozen=True)
class KnownBad:
    """
    From *first* to *last*, both included; *source* is where it was told, for whoever looks after this table.

    *if_moved* counts only for plans that move an existing column.
    """

    first: Version
    last: Version
    what: str
    remedy: str
    source: str
    if_moved: bool = False


# Only versions that the oldest supported one lets in; 8.0.14 to 8.0.17 and the like are refused as too old.
KNOWN_BAD = (
    KnownBad((8, 0, 29), (8, 0, 31),
             "has known bugs with instant columns: recovery and dropping and adding one name again can corrupt a table, and XtraBackup "
             "refuses such tables",
             "upgrade to 8.0.32 or later", "case C35; percona/percona-server#4827, percona/percona-xtrabackup#1348"),
    KnownBad((8, 0, 32), (8, 0, 36),
             "writes a wrong redo log for columns that an instant change has moved (bug 35183686, fixed in 8.0.37): a crash soon after "
             "it can corrupt the table",
             "upgrade to 8.0.37 or later; or leave out the AFTER or FIRST of that MODIFY or CHANGE", "case C34; mysql/mysql-server#516",
             if_moved=True),
)


def known_bad(number: Version, *, moves: bool) -> list[KnownBad]:
    """The entries of *number*; *moves* is whether the plan moves an existing column."""
    return [bad for bad in KNOWN_BAD if bad.first <= number <= bad.last and (moves or not bad.if_moved)]
