"""
A quick look at a rollout, again and again: the ledger alone, a handful of small reads by key, no lock. For whoever watches it work.

What costs more (the table's shape, the triggers, what comes next: :func:`flows.standing.standing`) is looked at when something has
changed, and otherwise now and then.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from flows.standing import owner, standing
from steps import passing, waits
from steps.mysql import VALUE
from steps.phase import FORWARD
from steps.rollout import Rollout

LATEST = 8
STANDING_EVERY_S = 30.0


@dataclass(frozen=True)
class Glance:
    """What was seen, and the server's time then. `sync`, `next` and `drift` may be older, by at most :data:`STANDING_EVERY_S`."""

    at: datetime
    table: str
    plan: str
    phases: list[dict[str, Any]]
    working: dict[str, Any] | None
    passes: list[dict[str, Any]]
    events: list[dict[str, Any]]
    sync: str
    next: str
    drift: str
    left: list[str] = field(default_factory=list)

    @property
    def at_work(self) -> bool:
        return bool(self.working and self.working["alive"])


class Watched:
    """Looks at *rollout*; not shared between threads."""

    def __init__(self, rollout: Rollout) -> None:
        self.rollout = rollout
        self._standing: dict[str, Any] = {}
        self._stood_s = float("-inf")
        self._seen: object = None

    def look(self) -> Glance:
        """
        Now. Reads only.

        Raises:
            ConnectionLost, Unreachable: the server went away; a new one of these has to be made.
        """
        rollout, ledger = self.rollout, self.rollout.ledger
        recorded, working = ledger.phases(), owner(rollout)
        alive = bool(working and working["alive"])
        passes = [row for row in passing.passes(ledger, at_work=alive, planned_limit=rollout.plan.backfill.rows_per_s)
                  if not row["finished_at"]]
        events, at = self._latest()
        phases = [{"phase": phase.value, "state": "not begun", "at": None} | recorded.get(phase, {}) for phase in FORWARD]
        self._stand(([(row["phase"], row["state"]) for row in phases], alive))
        now = self._standing
        left = [f"left by a killed rehearsal: schema {now['rehearsal_left']}"] if now["rehearsal_left"] else []
        return Glance(at, f"{rollout.schema}.{rollout.table}", rollout.plan.id, phases, working, passes, events, now["sync"], now["next"],
                      str(now.get("drift") or ""), left)

    def _latest(self) -> tuple[list[dict[str, Any]], datetime]:
        """The last events, oldest first, and the server's time."""
        names = ("id", "at", "phase", "direction", "step", "outcome", "duration_ms", "row_count", "by", "why")
        ledger = self.rollout.ledger
        rows = ledger.read(f"SELECT {', '.join(names[:-2])}, detail->>'$.by', detail->>'$.why' "
                           f"FROM {ledger.table('event')} WHERE table_schema = {VALUE} AND table_name = {VALUE} "
                           f"AND plan_id = {VALUE} ORDER BY id DESC LIMIT {LATEST}", *ledger.key)
        return [dict(zip(names, row, strict=True)) for row in reversed(rows)], ledger.session.value("SELECT UTC_TIMESTAMP(3)")

    def _stand(self, seen: object) -> None:
        if seen != self._seen or waits.now_s() - self._stood_s >= STANDING_EVERY_S:
            self._standing, self._seen, self._stood_s = standing(self.rollout), seen, waits.now_s()
