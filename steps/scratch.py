"""
A scratch schema of our own for rehearsals: empty, with stub parents, removed whatever happens (design section 2).

No lock falls on the live table or its parents beyond one SHOW CREATE TABLE. A schema left by a killed run is removed by the next.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

from steps import catalogue
from steps.errors import Refused, StatementFailed
from steps.mysql import VALUE, Session, quote
from steps.plan import Plan
from steps.target import Target

CANNOT_CREATE_SCHEMA = {1044, 1045, 1142, 1227}
LOCK_S = 30


def scratch_name(target: Target, table: str) -> str:
    """The scratch schema for this table: stable, so that a killed run's leftover is found."""
    return "_rollout_rehearsal_" + hashlib.sha256(f"{target.schema}.{table}".encode()).hexdigest()[:16]


@contextmanager
def scratch(target: Target, plan: Plan) -> Iterator[Session]:
    """
    A session in an empty scratch schema that is removed at the end.

    Raises:
        Refused: no right to create the schema, or another rehearsal of this table is under way.
    """
    own = plan.plan.rehearsal_schema
    name = own or scratch_name(target, plan.table)
    with Session(target) as session:
        if not session.value(f"SELECT GET_LOCK({VALUE}, {VALUE})", name[:64], LOCK_S):
            raise Refused(f"rehearsal of {plan.table}", "another rehearsal of this table is under way", "try again when it ended")
        try:
            if own:
                _empty(session, own)
            else:
                session.run(f"DROP DATABASE IF EXISTS {quote(name)}")
                session.run(f"CREATE DATABASE {quote(name)}")
        except StatementFailed as error:
            if error.errno in CANNOT_CREATE_SCHEMA:
                raise Refused("rehearsal", f"could not look: {error.reason}",
                              "grant CREATE and DROP on a schema of its own and name it as plan.rehearsal_schema") from None
            raise
        try:
            session.run(f"USE {quote(name)}")
            session.schema = str(session.value("SELECT DATABASE()"))  # as the server spells it (case C81)
            yield session
        finally:
            if own:
                _empty(session, own)
            else:
                session.run(f"DROP DATABASE IF EXISTS {quote(name)}")


def _empty(session: Session, schema: str) -> None:
    """Remove every table of the plan's own rehearsal schema."""
    session.run("SET SESSION foreign_key_checks = 0")
    for (table,) in session.query(f"SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = {VALUE}", schema):
        session.run(f"DROP TABLE {quote(schema)}.{quote(str(table))}")
    session.run("SET SESSION foreign_key_checks = 1")


def stub_parents(live: Session, session: Session, schema: str, table: str) -> None:
    """Empty parents with just the referenced columns, so that foreign keys are real and live parents stay untouched."""
    parents: dict[str, list[str]] = {}
    for parent_schema, parent, column in live.query(
            "SELECT DISTINCT REFERENCED_TABLE_SCHEMA, REFERENCED_TABLE_NAME, REFERENCED_COLUMN_NAME "
            f"FROM information_schema.KEY_COLUMN_USAGE WHERE TABLE_SCHEMA = {VALUE} AND TABLE_NAME = {VALUE} "
            "AND REFERENCED_TABLE_NAME IS NOT NULL", schema, table):
        if parent_schema != schema:
            raise Refused(f"table {table}", f"has a foreign key into another schema, {parent_schema}.{parent}",
                          "could not look: such a table cannot be cloned")
        if parent != table:
            parents.setdefault(str(parent), []).append(str(column))
    for parent, columns in parents.items():
        shape = catalogue.shape(live, schema, parent)
        collation = catalogue.table_collation(live, schema, parent)
        keys = ", ".join(f"INDEX ({quote(column)})" for column in columns)
        body = ", ".join(f"{quote(column)} {shape.columns[column].replace(' AUTO_INCREMENT', '')}" for column in columns)
        # A key of its own, for servers with sql_require_primary_key (case C87): the referenced columns may hold NULL.
        session.verbatim(f"CREATE TABLE {quote(parent)} (`_rollout_stub` INT NOT NULL PRIMARY KEY, {body}, "
                         f"UNIQUE INDEX ({', '.join(map(quote, columns))}), {keys}) ENGINE=InnoDB "
                         f"DEFAULT CHARSET={collation.partition('_')[0]} COLLATE={collation}")
