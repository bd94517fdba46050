"""
The table of rights: which right, on what, who needs it, and what is lost without it. Least privilege is exactly this list.

Measured on 9.7.4: with these and no others a whole life works (all phases, cleanup, and back to V0); ALTER alone carries the steps
of a plan on the table, so neither CREATE, DROP nor INDEX is asked for there. Ending our own statements needs no right.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from steps.checks.finding import NO_GAP
from steps.plan import Plan

ATTRIBUTES = "session_connect_attrs"
COMMITS = "events_statements_summary_by_user_by_event_name"


def _always(_: Plan) -> bool:
    return True


def _watches(limit: str) -> Callable[[Plan], bool]:
    """Whether the passes of a plan look at the server's health by *limit* (:mod:`steps.health`)."""
    return lambda plan: plan.backfill.mode == "gentle" and bool(plan.filled_columns and getattr(plan.backfill, limit))


def _removes(plan: Plan) -> bool:
    return bool(plan.removed_columns or plan.renames)


@dataclass(frozen=True)
class Need:
    """
    *rights* on a kind of place (a table of performance_schema by its name) for *by*.

    Without *lost* nothing else helps and the check refuses; with it the run goes on without: a warning, or, with *accept*, refused
    until acknowledged. *instead* is what helps beside the right. *probe* asks the server instead of reading grants. *when*
    says for which plans it counts, *only* the same in words. *section* is the first of :data:`SECTIONS` that needs it; those of *looks*
    are needed from the first one on.
    """

    rights: tuple[str, ...]
    on: str
    by: str
    lost: str = ""
    accept: str | None = None
    otherwise: str = ""
    instead: str = ""
    probe: str = ""
    when: Callable[[Plan], bool] = _always
    only: str = ""
    section: str = "rehearse"
    looks: tuple[str, ...] = ()

    def rights_of(self, section: str) -> tuple[str, ...]:
        """Those rights that *section* is the first to need."""
        looks = tuple(right for right in self.rights if right in self.looks)
        first = {"look": looks, self.section: tuple(right for right in self.rights if right not in looks)}
        return first.get(section, ())


SECTIONS = {
    "look": "rollout status and report. Enough for an account that only looks.",
    "rehearse": "rollout check, plan and rehearse: what the checks look at, and the clone in a schema of its own.",
    "pre_deploy": "rollout run and rollback, phases 1 to 5 and their ways back; those after pre_deploy need nothing more.",
    "cleanup": "Phase 6 and its way back, and rollout uninstall.",
}
"""What an account is for, each with all before it. A run asks for the rights of every section at once, so that none stops half-way."""


def _gap(table: str) -> Need:
    return Need(("SELECT",), table, "finding a gap in the traffic", "it cannot see who holds the table", NO_GAP,
                "fire without a guard, at the cost of some transactions (1213),",
                probe=f"SELECT 1 FROM performance_schema.{table} LIMIT 0")


def _evidence(table: str, section: str) -> Need:
    return Need(("SELECT",), table, "the evidence that nobody uses the old columns",
                "cleanup will need --accept cleanup-unseen, and its watch for errors sees none",
                probe=f"SELECT 1 FROM performance_schema.{table} LIMIT 0", when=lambda plan: bool(plan.removed_columns),
                section=section, only="only where columns are removed")


NEEDS = (
    Need(("SELECT", "INSERT", "UPDATE", "REFERENCES", "ALTER", "TRIGGER"), "table", "the steps of the plan, its passes and its triggers",
         section="pre_deploy", looks=("SELECT", "TRIGGER")),
    Need(("LOCK TABLES",), "schema", "the hold in which steps are done", section="pre_deploy"),
    Need(("REFERENCES",), "parents", "the new foreign key"),
    Need(("SELECT",), "relatives", "the rehearsal, whose clone gets its foreign keys"),  # only of those it sees nothing of
    Need(("SELECT", "ALTER"), "leaves", "the foreign key that is due there", section="pre_deploy"),
    Need(("SELECT", "INSERT", "UPDATE", "DELETE", "CREATE"), "ledger", "the ledger", section="pre_deploy", looks=("SELECT",)),
    Need(("DROP",), "ledger", "cleanup's archive", when=lambda plan: bool(plan.removed_columns), section="cleanup",
         only="only where columns are removed, and for rollout uninstall"),
    Need(("SELECT", "INSERT", "UPDATE", "CREATE", "DROP", "REFERENCES", "INDEX", "ALTER", "TRIGGER"), "rehearsal",
         "the rehearsal on a clone"),
    _gap("metadata_locks"),
    _gap("threads"),
    Need(("PROCESS",), "server", "looking at open transactions",
         "their age, old snapshots, and the row versions left for instant changes are not seen",
         probe="SELECT 1 FROM information_schema.INNODB_TRX LIMIT 1"),
    Need(("PROCESS",), "server", "the history list length, for which a gentle pass waits (without it until backfill.max_pause_s is over)",
         instead="set backfill.max_history_length = 0",
         probe="SELECT `COUNT` FROM information_schema.INNODB_METRICS WHERE NAME = 'trx_rseg_history_len'",
         when=_watches("max_history_length"), section="pre_deploy"),
    Need(("SELECT",), COMMITS, "sparing the application's commits", "passes do not see how long they take",
         probe=f"SELECT 1 FROM performance_schema.{COMMITS} LIMIT 0", when=_watches("max_commit_ms"), section="pre_deploy"),
    Need(("REPLICATION CLIENT",), "server", "looking at replication", "whether this server is itself a replica is not seen",
         probe="SHOW REPLICA STATUS"),
    Need(("SELECT", "SHOW VIEW", "TRIGGER", "EVENT", "EXECUTE"), "schema", "seeing what else names the table",
         "foreign keys, views, triggers, events and routines that this account may not see are not told or waited for", when=_removes,
         only="only where columns are removed"),
    Need(("SELECT",), "events_statements_current", "naming who holds the table", "the digest of a holder's last statement is not told",
         probe="SELECT 1 FROM performance_schema.events_statements_current LIMIT 0"),
    Need(("SELECT",), "events_transactions_current", "finding a gap in which no transaction has just begun",
         "now and then one of those is killed (1213) under heavy load",
         probe="SELECT 1 FROM performance_schema.events_transactions_current LIMIT 0"),
    _evidence("events_statements_summary_by_digest", "rehearse"),
    _evidence("events_errors_summary_global_by_error", "cleanup"),
    Need(("SELECT",), ATTRIBUTES, "telling the generations of the application apart ([fleet])", "cleanup will need --accept fleet-unseen",
         probe=f"SELECT 1 FROM performance_schema.{ATTRIBUTES} LIMIT 0", when=lambda plan: plan.fleet is not None, section="cleanup",
         only="only with [fleet] in the plan"),
)
