"""The table as it was before any step of the plan, found on the clone when no ledger tells it."""

from __future__ import annotations

from steps import rungs
from steps.asking import best_way
from steps.clone import Clone
from steps.errors import Refused
from steps.mysql import quote
from steps.phase import Phase


def baseline_of(clone: Clone, create_sql: str) -> str:
    """
    The table before any step: *create_sql* itself, or, for a table found half-way, what the downs leave of it. It stands on the clone.

    Each stair is tried from the top: downs from there, then ups again, must give the same table.
    """
    clone.send(create_sql)
    expand = [rung for rung in rungs.rungs(clone.plan) if rung.phase is Phase.PRE_DEPLOY]
    found = clone.shape()
    for position in range(len(expand), 0, -1):
        went_down = 0
        try:
            for rung in reversed(expand[:position]):
                best_way(clone, rung.name, rung.down(found), adds_fk=False)
                went_down += 1
            candidate = clone.create_statement()
            for rung in expand[:position]:
                sql = rung.up(clone.shape())
                best_way(clone, rung.name, sql, adds_fk="FOREIGN KEY" in sql.upper())
            if clone.shape() == found:
                return _anew(clone, candidate)
        except Refused:
            if not went_down:
                continue  # an ALTER that is refused has changed nothing
        _anew(clone, create_sql)
    return create_sql


def _anew(clone: Clone, create_sql: str) -> str:
    clone.session.verbatim(f"DROP TABLE {quote(clone.table)}")
    clone.send(create_sql)
    return create_sql
