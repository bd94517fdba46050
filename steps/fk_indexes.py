"""
Indexes that MySQL made for a foreign key and silently took away when a step brought a better one (case C44).

A clone cannot show it, because SHOW CREATE TABLE does not tell such an index from one that somebody made. So before the way down
the live table is looked at, and what the baseline has and a foreign key will need is put back: alone, since it reads all rows.
"""

from __future__ import annotations

from steps.hold import alone
from steps.ladder import Ladder
from steps.ledger import Event
from steps.mysql import quote
from steps.phase import Phase
from steps.rollout import Rollout


def put_back(rollout: Rollout, ladder: Ladder) -> list[str]:
    """Put back each such index that is gone; return their names. Safe to repeat."""
    live, wanted = rollout.live(), ladder.baseline
    needed = {definition.split(" REFERENCES ")[0].replace("FOREIGN KEY", "INDEX", 1) for definition in live.foreign_keys.values()}
    gone = [name for name, definition in wanted.indexes.items() if name not in live.indexes and definition in needed]
    for name in gone:
        statement = (f"ALTER TABLE {quote(rollout.table)} ADD {wanted.indexes[name].replace('INDEX', f'INDEX {quote(name)}', 1)}, "
                     "ALGORITHM=INPLACE, LOCK=NONE")

        def lost(holder: str, name: str = name) -> None:
            rollout.record(Event(Phase.PRE_DEPLOY.value, f"index {name}", "lost, begun again", "back", detail={"held by": holder}))

        with alone(rollout.target, rollout.watchdog, rollout.limits, *rollout.tables_to_lock(), lost) as (_session, gap), \
                rollout.timed(Phase.PRE_DEPLOY, f"index {name}", direction="back", statement=statement):
            gap.fire(statement, is_long=True, before_try=rollout.check_owner)
    return gone
