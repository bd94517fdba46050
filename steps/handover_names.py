"""
What a handed-over copy is called while it is under way, and whether a table can be handed over at all (F5, case C09).

The names are ours, so that what a killed run left behind is known for ours, and nobody else's copy is ever touched.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from steps import catalogue, sync
from steps.catalogue import Shape, Trigger
from steps.mysql import LONGEST_NAME, VALUE, Session, quote
from steps.ownership import lock_name
from steps.plan import Plan

KEY_PREFIX = "_rollout_"
TOOLS_TRIGGERS = "pt_osc_"
PLAIN_NAME = re.compile(r"[A-Za-z0-9_$-]+")  # a DSN of the tool takes no other


@dataclass(frozen=True)
class Names:
    """The table, its copy, and the original once the copy has taken its place."""

    schema: str
    table: str

    @property
    def new(self) -> str:
        return f"_{self.table}_rollout_new"

    @property
    def old(self) -> str:
        return f"_{self.table}_rollout_old"

    @property
    def lock(self) -> str:
        """The named lock that the tool's own session holds as long as it lives."""
        return lock_name(self.schema, self.table).replace("rollout:", "rollout-copy:", 1)

    def full(self, table: str) -> str:
        return f"{quote(self.schema)}.{quote(table)}"


def is_ours(trigger: Trigger, names: Names) -> bool:
    """Whether *trigger* is the tool's and writes to our copy; one that writes to another copy is another person's run."""
    return trigger.name.startswith(TOOLS_TRIGGERS) and names.new in trigger.body


def standing(session: Session, names: Names) -> set[str]:
    """Which of the copy and the replaced original are there; both only while or after a hand-over was cut short."""
    return {str(name) for (name,) in session.query(
        f"SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = {VALUE} AND TABLE_NAME IN ({VALUE}, {VALUE})",
        names.schema, names.new, names.old)}


def left(session: Session, schema: str, table: str) -> list[str]:
    """Triggers and tables of a hand-over that was cut short or is under way, as a person would name them."""
    names = Names(schema, table)
    found = [f"trigger {t.name}" for t in catalogue.triggers(session, schema, table) if is_ours(t, names)]
    return found + [f"table {name}" for name in sorted(standing(session, names))]


def child_keys(session: Session, names: Names, parent: str) -> list[tuple[str, str, str, str]]:
    """(schema, table, name, definition) of each foreign key of another table that references *parent*."""
    found = []
    for schema, table in sorted({(str(s), str(t)) for s, t in session.query(
            "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.KEY_COLUMN_USAGE "
            f"WHERE REFERENCED_TABLE_SCHEMA = {VALUE} AND REFERENCED_TABLE_NAME = {VALUE}", names.schema, parent)}):
        if schema == names.schema and table in (names.table, names.new, names.old):
            continue
        for name, text in catalogue.shape(session, schema, table).foreign_keys.items():
            if f" REFERENCES {quote(parent) if schema == names.schema else names.full(parent)} (" in text:
                found.append((schema, table, name, text))
    return found


def obstacle(session: Session, plan: Plan, schema: str, below: Shape, *, sync_stands: bool) -> str | None:
    """
    Why *plan*'s table, in shape *below*, cannot be copied by the tool, or None.

    *sync_stands* is whether our own triggers stand when the step is due. The tool's limits as measured with 3.7.1: no other
    AFTER triggers beside its own are risked, no key on itself, no CHECK (its name would be another), plain names.
    """
    names = Names(schema, plan.table)
    own = sync.trigger_names(plan.id)
    others = [t.name for t in catalogue.triggers(session, schema, plan.table) if t.name not in own and not is_ours(t, names)]
    keys = [*below.foreign_keys, *(name for _, _, name, _ in child_keys(session, names, plan.table))]
    reasons = [
        (bool(others), f"the table has triggers ({', '.join(others)}), which the copy would not have"),
        (sync_stands, "the sync triggers stand by then; a step that copies has to come before them"),
        (any(f" REFERENCES {quote(plan.table)} (" in text for text in below.foreign_keys.values()),
         "the table has a foreign key on itself; a step that copies has to come before it"),
        (bool(below.checks), f"the table has CHECKs ({', '.join(below.checks)}), which the copy would have under other names"),
        (not PLAIN_NAME.fullmatch(schema) or not PLAIN_NAME.fullmatch(plan.table) or len(names.new) > LONGEST_NAME,
         "the tool cannot be told names that are longer than 51 characters or hold other than letters, digits, _, $ and -"),
        (any(len(KEY_PREFIX + name) > LONGEST_NAME for name in keys),
         f"a foreign key's name is longer than {LONGEST_NAME - len(KEY_PREFIX)} characters"),
    ]
    return next((reason for stands, reason in reasons if stands), None)
