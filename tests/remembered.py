"""The rehearsal of a table that was rehearsed before, rows and neighbours alike, by the same plan on the same server: from memory."""

from __future__ import annotations

from steps import catalogue, rehearsal
from steps.mysql import VALUE, Session, quote
from steps.plan import Plan
from steps.rehearsal import Rehearsed
from steps.target import Target

BESIDE = {"deploy", "backfill", "verify", "queries", "shadow_write", "reconcile", "fleet", "folder", "given"}
"""What a rehearsal does not look at."""

rehearse = rehearsal.rehearse
_known: dict[tuple[object, ...], Rehearsed] = {}


def remembered(live: Session, target: Target, plan: Plan, baseline_sql: str | None = None) -> Rehearsed:
    """As the rehearsal itself, whose own tests are elsewhere; errors are not remembered."""
    key = (target.url.port, plan.model_dump_json(exclude=BESIDE, warnings=False), baseline_sql,
           *_neighbourhood(live, target.schema, plan.table, begun=baseline_sql is not None))
    if key not in _known:
        _known[key] = rehearse(live, target, plan, baseline_sql)
    return _known[key]


def _neighbourhood(live: Session, schema: str, own: str, *, begun: bool) -> tuple[object, ...]:
    """
    Everything that the rehearsal looks at: definitions, triggers, and the rows by their checksums.

    From a baseline it takes no sample of rows, and looks neither at the table as it is now nor at our own triggers.
    """
    tables = [str(name) for (name,) in live.query(
        f"SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = {VALUE} AND TABLE_TYPE = 'BASE TABLE' ORDER BY 1", schema)
        if not str(name).startswith("_rollout_")]
    checksums = () if begun else tuple(live.query(f"CHECKSUM TABLE {quote(schema)}.{quote(table)}")[0][1] for table in tables)
    definitions = tuple(catalogue.create_statement(live, schema, table).replace(schema, "") for table in tables
                        if not (begun and table == own))
    triggers = tuple((table, trigger.name, trigger.body) for table in tables for trigger in catalogue.triggers(live, schema, table)
                     if not (begun and trigger.name.startswith("rollout_")))
    return checksums, definitions, triggers
