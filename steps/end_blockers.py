"""
`--end-blockers`: ends sessions that keep the table from a gap for too long. Off unless asked for, and guarded.

Never a session with a heavy transaction (its rollback would take as long again), with LOCK TABLES or a backup, with DDL of its own, nor a
replication or system thread, nor ours. Looked at again just before: the same connection, still in the same transaction. Who is spared
is on record with the reason, and named where no gap came.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from steps import holders
from steps.checks import Finding
from steps.checks.grants import grants_of
from steps.errors import StatementFailed
from steps.holders import Holder, Table
from steps.ledger import Event
from steps.mysql import VALUE, Session
from steps.rollout import Rollout

HEAVIEST = 100_000
LOOK_EVERY_S = 1.0
MARK = "mysql-rollout"
ON_RECORD = "end-blockers"
ANY_SESSION = ("CONNECTION_ADMIN", "SUPER")
OURS = ("SELECT COUNT(*) FROM performance_schema.session_connect_attrs WHERE PROCESSLIST_ID = " + VALUE
            + f" AND ATTR_NAME = 'program_name' AND ATTR_VALUE = '{MARK}'")


def spared(holder: Holder) -> str | None:
    """Why *holder* is never ended, or None."""
    reasons = (
        (holder.number is None, "a prepared XA transaction has no session"),
        (holder.stops_all_ddl, "a backup"),
        (not holder.is_user, "a replication or system thread"),
        (holder.is_explicit, "LOCK TABLES"),
        (holder.is_ddl, "DDL"),
        (holder.waits, "it only waits"),
        (holder.started is None, "no transaction of its can be seen"),
        ((holder.weight or 0) > HEAVIEST, f"more than {HEAVIEST} rows changed or locked"))
    return next((reason for applies, reason in reasons if applies), None)


@dataclass
class Ender:
    """
    Ends what blocks *tables* once a gap has been waited for *after_s*; *told* gets each one's user, host, age and digest.

    *session* is not the one that waits. Who is spared is told once for each reason.
    """

    session: Session
    after_s: float
    told: Callable[[str, dict[str, Any]], None]
    _looked_s: float = field(default=0, init=False)
    _spared: list[str] = field(default_factory=list, init=False)
    _told: set[tuple[int | None, str]] = field(default_factory=set, init=False)

    def __call__(self, tables: list[Table], waited_s: float) -> list[str]:
        """
        End every holder older than *after_s* that may be ended; return whom the latest look spared and why.

        Safe to repeat; costs nothing before *after_s*.
        """
        if waited_s < self._looked_s:
            self._looked_s = 0  # another statement waits now
        if waited_s < self.after_s:
            return [f"all: no gap was waited for longer than {self.after_s:g} s (end_blockers_after_s)"]
        if waited_s - self._looked_s < LOOK_EVERY_S:
            return self._spared
        self._looked_s, self._spared = waited_s, []
        for holder in self._look(tables):
            if holder.waits:
                continue
            why = spared(holder) or self._too_young(holder) or self._is_ours(holder) or self._end(holder, tables)
            if why:
                self._spare(holder, why)
        return self._spared

    def _too_young(self, holder: Holder) -> str | None:
        return f"younger than {self.after_s:g} s (end_blockers_after_s)" if holder.age_s < self.after_s else None

    def _spare(self, holder: Holder, why: str) -> None:
        self._spared.append(f"{holder.named}: {why}")
        if (holder.number, why) not in self._told:
            self._told.add((holder.number, why))
            self.told("spared", {**_facts(holder), "why": why})

    def _look(self, tables: list[Table]) -> list[Holder]:
        try:
            return holders.look(self.session, tables)
        except StatementFailed:
            return []

    def _is_ours(self, holder: Holder) -> str | None:
        try:
            return "a session of this tool" if self.session.value(OURS, holder.number) else None
        except StatementFailed:
            return "whose it is could not be seen"

    def _end(self, holder: Holder, tables: list[Table]) -> str | None:
        """Why it was not ended after all; None when it was, or is gone by now."""
        again = [now for now in self._look(tables) if (now.number, now.started, now.table) == (holder.number, holder.started, holder.table)]
        if not again or spared(again[0]):
            return spared(again[0]) if again else None
        try:
            self.session.run(f"KILL {int(holder.number or 0)}")
        except StatementFailed as error:
            return f"the server did not end it: {error.reason}"
        self.told("ended", _facts(again[0]))
        return None


def _facts(holder: Holder) -> dict[str, Any]:
    return {"connection": holder.number, "who": holder.who, "transaction since": holder.started, "age_s": holder.age_s,
            "weight": holder.weight, "digest": holder.digest, "table": holder.table}


def may_kill(session: Session) -> bool:
    """Whether this account may end other accounts' sessions, by its grants and those of its active roles."""
    grants = grants_of(session)
    return any(not grants.lacks((right,), "*") for right in ANY_SESSION)


def findings(session: Session) -> list[Finding]:
    """Told beforehand, only where `--end-blockers` is given."""
    if may_kill(session):
        return []
    return [Finding(
        "end-blockers", "warn", f"account {session.value('SELECT CURRENT_USER()')}",
        "may end sessions of its own account only (no CONNECTION_ADMIN), so --end-blockers will leave all others",
        "GRANT CONNECTION_ADMIN ON *.* to it, or end blockers by hand")]


def ender(rollout: Rollout) -> Ender:
    """What *rollout* does with blockers; each one ended or spared is on record, with user, host, age and digest."""

    def told(outcome: str, facts: dict[str, Any]) -> None:
        rollout.record_now(Event(ON_RECORD, f"connection {facts['connection'] or '-'}", outcome, detail=facts))

    return Ender(rollout.watchdog.session, rollout.plan.plan.end_blockers_after_s, told)
