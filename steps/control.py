"""
What a person wants of a pass at work: pause, resume, a limit, stop. One ledger row, so that another machine or the UI can say it too.

A pass looks every half second. A pause and a limit stay until they are taken back, also across runs; a stop is for the run at
work, obeyed once, by the pass at work or the next one of that run, and takes a pause with it.
"""

from __future__ import annotations

from dataclasses import dataclass

from steps.ledger import Ledger
from steps.masking import mask
from steps.mysql import VALUE

RUN, PAUSE, STOP = "run", "pause", "stop"
THIS_PLAN = f"WHERE table_schema = {VALUE} AND table_name = {VALUE} AND plan_id = {VALUE}"


@dataclass(frozen=True)
class Wish:
    """What is wanted, at most how many rows a second (None: as many as go), who said so and why."""

    wanted: str = RUN
    rows_per_s: int | None = None
    actor: str = ""
    reason: str = ""

    @property
    def said(self) -> str:
        """Who asked for it, for messages."""
        return f"{self.actor} asked for it: {self.reason}" if self.actor else ""


def wish(ledger: Ledger) -> Wish:
    """What is wanted now; a ledger that was never asked anything says run."""
    rows = ledger.read(f"SELECT wanted, rows_per_s, actor, reason FROM {ledger.table('control')} {THIS_PLAN}", *ledger.key)
    return Wish(*rows[0]) if rows else Wish()


def ask(ledger: Ledger, wanted: str, actor: str, reason: str) -> None:
    """Ask passes of this plan to run, pause or stop. Effective within a second; safe to repeat."""
    _write(ledger, "wanted", wanted, actor, reason)


def limit(ledger: Ledger, rows_per_s: int | None) -> None:
    """At most *rows_per_s* from now on, over all connections together; None takes the limit away. Who paused stays who paused."""
    _write(ledger, "rows_per_s", rows_per_s)


def obeyed(ledger: Ledger) -> None:
    """A stop has done its work; the next run begins without it."""
    ledger.session.run(f"UPDATE {ledger.table('control')} SET wanted = {VALUE} {THIS_PLAN} AND wanted = {VALUE}", RUN, *ledger.key, STOP)


def _write(ledger: Ledger, column: str, value: str | int | None, actor: str = "", reason: str = "") -> None:
    """In one statement, so that nobody reads an old wish with a new name under it. The name is of whoever said run, pause or stop."""
    first = {"wanted": RUN, "rows_per_s": None} | {column: value}
    changed = ("wanted", "actor", "reason", "at") if column == "wanted" else (column,)
    ledger.session.run(f"INSERT INTO {ledger.table('control')} (table_schema, table_name, plan_id, wanted, rows_per_s, actor, reason, at) "
                       f"VALUES ({', '.join([VALUE] * 7)}, UTC_TIMESTAMP(3)) ON DUPLICATE KEY UPDATE "
                       + ", ".join(f"{name} = VALUES({name})" for name in changed), *ledger.key, *first.values(), mask(actor), mask(reason))
