"""
Who still writes the old side while both stand: sessions of V0, as `[fleet]` tells them, and statement digests between two looks.

Digests count from one look of the watch to the next, so they speak of hours, not of the seconds in which somebody looks. Only statements
that write count: our own looks read. A window in which a rollout worked on the table says nothing, since its canary and its passes write
as each generation does. It proves presence, never absence (:mod:`steps.usage`, :mod:`steps.fleet`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from steps import fleet, own_shadow_write, usage
from steps.mysql import quote
from steps.rollout import Rollout
from steps.usage import Seen

OLD = "v0"
CONNECTED = f"{OLD} is connected"
WRITES = ("insert ", "update ", "replace ")


@dataclass(frozen=True)
class Writers:
    """Who was seen, why more could not be seen, and the counters that the next look goes on from (None: could not be read)."""

    seen: tuple[str, ...]
    unseen: tuple[str, ...]
    counters: dict[str, Any] | None


def look(rollout: Rollout, before: dict[str, Any] | None) -> Writers:
    """
    Who writes the old side, now by session and since *before*, the counters of the last look, by digest; None where there is no window.

    Takes no lock; reads performance_schema alone.
    """
    seen, unseen = connected(rollout)
    now = usage.look(rollout.session, rollout.schema)
    writing = None if now is None else _writing(now, rollout.schema, rollout.table)
    if now is None or writing is None:
        return Writers(tuple(seen), (*unseen, *usage.between(None, None, rollout.table, ()).unseen), None)
    if before is None:
        unseen.append("statements are counted from this look on")
    elif own_shadow_write.recorded(rollout):
        unseen.append("the application's own shadow write names the old columns too, so statements cannot tell V0")
    else:
        then = Seen({digest: ("", int(count), 0) for digest, count in before["digests"].items()}, int(before["lost"]),
                    int(before["uptime_s"]), 0, now.longest_text)
        found = usage.between(then, writing, rollout.table, rollout.plan.removed_columns)
        seen, unseen = [*seen, *found.users], [*unseen, *found.unseen]
    return Writers(tuple(seen), tuple(unseen), {"digests": {digest: count for digest, (_text, count, _wrong) in writing.digests.items()},
                                                "lost": now.lost, "uptime_s": now.uptime_s})


def connected(rollout: Rollout) -> tuple[list[str], list[str]]:
    """Sessions of V0, and why more could not be seen; nothing without a rule for V0 in `[fleet]`. Takes no lock."""
    plan = rollout.plan.fleet
    if plan is None or plan.v0 is None:
        return [], []
    sight = fleet.look(rollout.session, rollout.schema, plan)
    unseen = list(sight.unseen)
    if sight.unknown:
        unseen.append(f"sessions of no generation that the plan tells: {fleet.told(sight.unknown)}")
    there = sight.alive.get(OLD, ())
    return [f"{CONNECTED}: {fleet.told(there)}"] if there else [], unseen


def _writing(seen: Seen, schema: str, table: str) -> Seen:
    """Of *seen* the statements that write *table*; one of another schema, such as a rehearsal's clone, is none of its."""
    elsewhere = re.compile(rf"`([^`]|``)+` \. {re.escape(quote(table))}", re.IGNORECASE)
    here = f"{quote(schema)} . {quote(table)}".lower()

    def writes(text: str) -> bool:
        folded = text.lower()
        qualified = elsewhere.search(folded)
        return folded.startswith(WRITES) and quote(table).lower() in folded and (qualified is None or here in folded)

    return replace(seen, digests={digest: facts for digest, facts in seen.digests.items() if writes(facts[0])})
