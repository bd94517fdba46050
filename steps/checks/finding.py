"""
What a check is, what it may look at, what it finds, and when it *could not look*.

They stand apart from the tuple in `steps/checks/__init__.py`, which imports every check and so cannot be imported by one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property

from steps import catalogue
from steps.checks import programs
from steps.checks.programs import Program
from steps.errors import StatementFailed
from steps.mysql import VALUE, Session
from steps.plan import Plan
from steps.target import Target

BOUNDED = "/*+ MAX_EXECUTION_TIME(60000) */"
"""The hint that every look at rows carries; past it the server answers 3024, which is *could not look* (case C107)."""

NO_GAP = "no-gap"
"""The accept key for firing without a guard, because nobody can say who holds the table."""

TOOK_TOO_LONG = 3024
DENIED = {1044, 1142, 1143, 1227, 1345, 1370}
NO_SUCH_TABLE = {1109, 1146}


@dataclass(frozen=True)
class Finding:
    """
    What a check found: *severity* `refuse` stops the rollout until it is gone or accepted, `warn` is told and recorded.

    *accept* is the key for `--accept`, or None where nothing but a remedy helps.
    """

    check: str
    severity: str
    subject: str
    what: str
    remedy: str
    accept: str | None = None
    could_not_look: bool = False

    def stops(self, accepted: Collection[str]) -> bool:
        """Whether it stops a run that accepts the keys *accepted*."""
        return self.severity == "refuse" and self.accept not in accepted

    @property
    def advice(self) -> str:
        """The remedy, with the way to accept what was found unless the remedy tells that way itself."""
        told = self.accept is None or f"--accept {self.accept}" in self.remedy
        return self.remedy if told else f"{self.remedy}; or --accept {self.accept}"


@dataclass(frozen=True)
class Look:
    """
    What a check may look at: a session in the target's schema, the target, and the plan.

    *begun* says that the ledger knows this plan on this table: then the staircase judges which columns must stand. One look is one
    report: what several checks ask for is asked once.
    """

    session: Session
    target: Target
    plan: Plan
    begun: bool = False

    @property
    def schema(self) -> str:
        return self.target.schema

    @property
    def table(self) -> str:
        return self.plan.table

    @cached_property
    def shape(self) -> catalogue.Shape:
        """The live table's shape; empty where there is no such table."""
        return catalogue.shape(self.session, self.schema, self.table)

    @cached_property
    def kind(self) -> tuple[str, str]:
        """Kind of table and engine, such as ("BASE TABLE", "InnoDB"); empty texts where there is no such table."""
        rows = self.session.query("SELECT TABLE_TYPE, ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = "
                                  f"{VALUE} AND TABLE_NAME = {VALUE}", self.schema, self.table)
        return (str(rows[0][0]), str(rows[0][1])) if rows else ("", "")

    @cached_property
    def _others(self) -> dict[str, catalogue.Shape]:
        return {}

    def shape_of(self, table: str) -> catalogue.Shape:
        """The shape of any table of the schema, looked at once; empty where there is no such table."""
        if table == self.table:
            return self.shape
        if table not in self._others:
            there = catalogue.exists(self.session, self.schema, table)
            self._others[table] = catalogue.shape(self.session, self.schema, table) if there else catalogue.Shape()
        return self._others[table]

    @cached_property
    def collation(self) -> str:
        """The live table's own collation."""
        return catalogue.table_collation(self.session, self.schema, self.table)

    @cached_property
    def programs(self) -> tuple[Program, ...]:
        """Triggers, events and routines that mention the table."""
        return programs.mentioning(self.session, self.schema, self.table)

    def has(self, column: str) -> bool:
        """Whether the live table has *column*; names of columns have no case."""
        return column.lower() in {name.lower() for name in self.shape.columns}


@dataclass(frozen=True)
class Check:
    """
    One check as the README's table tells it.

    *phase* is the first phase that its findings protect, *severity* the highest it gives, *accepts* its `--accept` keys;
    `could-not-look:<name>` goes without saying.
    """

    name: str
    looks_at: str
    run: Callable[[Look], list[Finding]]
    phase: str = "pre_deploy"
    severity: str = "refuse"
    accepts: tuple[str, ...] = ()

    def may_say(self, finding: Finding) -> bool:
        """Whether *finding* is one that this description promises."""
        keys = (None, f"could-not-look:{self.name}", *self.accepts)
        return finding.check == self.name and finding.accept in keys and (finding.severity == "warn" or self.severity == "refuse")


def unavailable(error: StatementFailed) -> bool:
    """Whether *error* says that the account may not look, or that the server has nothing to look at, or not in time."""
    if error.errno in NO_SUCH_TABLE:
        return any(name in error.reason.lower() for name in ("performance_schema", "information_schema", "sys."))
    return error.errno in DENIED or error.errno == TOOK_TOO_LONG


def could_not_look(check: str, subject: str, error: StatementFailed, severity: str = "refuse") -> Finding:
    """The third answer of *check*; when it refuses, `could-not-look:<check>` accepts it."""
    remedy = {TOOK_TOO_LONG: "run again at a quieter time"} | dict.fromkeys(NO_SUCH_TABLE, "switch performance_schema on")
    key = f"could-not-look:{check}" if severity == "refuse" else None
    return Finding(
        check, severity, subject,
        f"could not look: {error.reason}",
        remedy.get(error.errno, "grant what the server asks for") + (f", or go on unseen with --accept {key}" if key else ""),
        key, could_not_look=True)
