"""Names as the server spells them, where it folds their case (`lower_case_table_names` 1 or 2; case C81)."""

from __future__ import annotations

from steps.mysql import VALUE, Session
from steps.plan import Plan
from steps.target import Target


def folds(session: Session) -> bool:
    """Whether the server takes table names that differ only in case for one."""
    return bool(session.value("SELECT @@lower_case_table_names"))


def spelled(session: Session, target: Target, plan: Plan) -> tuple[Target, Plan]:
    """
    *target* and *plan* with the spelling of schema and table that the catalogue shows; one or two reads.

    Names are compared with catalogue values in many places, and the ledger and the named lock are found by them. Where the server
    tells names apart by case, or knows no such table, both come back as they were, and `table-shape` names the nearest.
    """
    if not folds(session):
        return target, plan
    rows = session.query("SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = "
                         f"{VALUE} AND TABLE_NAME = {VALUE}", target.schema, plan.table)
    if not rows:
        return target, plan
    schema, table = map(str, rows[0])
    here = {"plan": plan.plan.model_copy(update={"table": table}), "table_as_written": plan.table}
    return Target(target.url.set(database=schema)), plan.model_copy(update=here)
