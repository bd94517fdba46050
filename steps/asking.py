"""
Asking the server, on the clone, how it takes a statement: INSTANT, else in place, else by a copy (cases C09, C10, C13).

The answers are the server's own: what it accepted, why it refused what would be better, whether the table was built anew.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace

from steps import server_trouble, waits
from steps.clone import Clone
from steps.errors import Refused, StatementFailed
from steps.ladder import Way
from steps.mysql import VALUE
from steps.unchecked import without_foreign_key_checks

NOT_SUPPORTED = {1221, 1845, 1846, 1847, 1848, 4092, 4093, 4157,
                 3507}  # INSTANT keeps a dropped column under a longer name of its own, which one of 20 letters of 3 bytes outgrows (9.7.4)
NO_PARENT_ROW = 1452
LOCKS = {"INSTANT": "metadata", "INPLACE": "none", "COPY": "shared"}


@dataclass(frozen=True)
class Learned:
    """
    What the server said to one way, and did.

    *rebuilds* is None where nobody may see it (PROCESS). *lock* is what others meet while it works: `metadata` (an instant),
    `none` (reads and writes go on), `shared` (writes wait). *refused* has the server's reason against each better algorithm.
    """

    rebuilds: bool | None
    lock: str
    clone_ms: float
    refused: dict[str, str]

    @property
    def in_place_lock(self) -> str | None:
        """The lock under which the server offers to do in place what it does not do with LOCK=NONE."""
        return "shared" if "LOCK=SHARED" in self.refused.get("INPLACE", "") else None


def best_way(clone: Clone, name: str, sql: str, *, adds_fk: bool) -> tuple[Way, Learned]:
    """
    Send *sql* with the best algorithm the server takes; INSTANT, INPLACE, then COPY.

    Raises:
        Refused: none works; names the step and the server's reason.
    """
    ways = [Way(sql, "INSTANT"), Way(sql, "INPLACE"), *([Way(sql, "INPLACE", fk_checks_off=True)] if adds_fk else []), Way(sql, "COPY")]
    refused: dict[str, str] = {}
    reason = ""
    for way in ways:
        before = _built(clone) if way.algorithm == "INPLACE" else None
        began = waits.now_s()
        try:
            _send(clone, way)
        except StatementFailed as error:
            if server_trouble.interrupted(error):
                raise  # no answer about this way: another one must not be tried for it (case C06)
            reason = error.reason
            if error.errno not in NOT_SUPPORTED:
                break
            refused.setdefault(way.algorithm, reason)
        else:
            took_ms = (waits.now_s() - began) * 1000
            after = _built(clone) if before is not None else None
            rebuilds = None if before is None or after is None else before != after
            way = replace(way, rebuilds=rebuilds if way.algorithm == "INPLACE" else way.algorithm == "COPY")
            return way, Learned(way.rebuilds, LOCKS[way.algorithm], round(took_ms, 1), refused)
    sample = f" that holds {clone.sample_rows} rows of it" if clone.sample_rows else ""
    raise Refused(f"step {name}", f"does not work on a clone of the table{sample}: {reason}", "correct the plan; nothing was touched")


def _send(clone: Clone, way: Way) -> None:
    """A sample has no parent rows beside it, so a copy that misses them is sent again without the look for orphans (case C22)."""
    with without_foreign_key_checks(clone.session) if way.fk_checks_off else nullcontext():
        try:
            clone.send(way.statement)
        except StatementFailed as error:
            if error.errno != NO_PARENT_ROW or not clone.sample_rows:
                raise
            with without_foreign_key_checks(clone.session):
                clone.send(way.statement)


def _built(clone: Clone) -> frozenset[int] | None:
    """InnoDB's numbers of the tables in the scratch schema: a table that is built anew gets another. None: may not be seen."""
    try:
        return frozenset(int(number) for (number,) in clone.session.query(
            "SELECT TABLE_ID FROM information_schema.INNODB_TABLES "
            f"WHERE LEFT(NAME, {VALUE}) = {VALUE} AND NAME NOT LIKE {VALUE}",
            len(clone.schema) + 1, clone.schema + "/", "%/fts\\_%")) or None
    except StatementFailed:
        return None
