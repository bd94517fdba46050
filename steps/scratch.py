"""
A scratch schema of our own for rehearsals: empty, removed whatever happens (design section 2).

A schema left by a killed run is removed by the next one, and by `rollout uninstall`; `rollout status` tells of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from steps import answers, holders
from steps.errors import ConnectionLost, LockTimeout, Refused, RolloutError, StatementFailed
from steps.mysql import VALUE, Session, Waits, quote
from steps.plan import Plan
from steps.target import Target
from steps.unchecked import without_foreign_key_checks

CANNOT_CREATE_SCHEMA = {1044, 1045, 1142, 1227}
LOCK_S = 30
VANISHED = Waits(silence_s=60)
"""It is never idle for long; a machine that vanished must not keep its lock for a day."""


def scratch_name(target: Target, table: str) -> str:
    """The scratch schema for this table: stable, so that a killed run's leftover is found."""
    return "_rollout_rehearsal_" + hashlib.sha256(f"{target.schema}.{table}".encode()).hexdigest()[:16]


@contextmanager
def scratch(target: Target, plan: Plan) -> Iterator[Session]:
    """
    A session in an empty scratch schema that is removed at the end.

    Raises:
        Refused: no right to create the schema, another rehearsal of this table is under way, or the plan names a schema that holds
            what must not be emptied.
    """
    own = plan.plan.rehearsal_schema
    if own and own.lower() in (target.schema.lower(), (plan.plan.ledger_schema or target.schema).lower()):
        raise Refused(f"plan.rehearsal_schema {own}", "is the schema of the table or of the ledger, and a rehearsal empties its schema",
                      "name a schema of its own")
    name = own or scratch_name(target, plan.table)
    with Session(target, waits=VANISHED) as session, _let_go(session):
        if not session.value(f"SELECT GET_LOCK({VALUE}, {VALUE})", name[:64], LOCK_S):
            raise Refused(f"rehearsal of {plan.table}", "another rehearsal of this table is under way", "try again when it ended")
        try:
            if own:
                _empty(session, own)
            else:
                session.run(f"DROP DATABASE IF EXISTS {quote(name)}")
                session.run(f"CREATE DATABASE {quote(name)}")
        except LockTimeout as error:
            held = "; ".join(holders.named(session, [])) or "by whom could not be seen"
            raise Refused(f"rehearsal of {plan.table}", f"could not look: the scratch schema cannot be made now ({error.errno}): {held}",
                          "run again once that lock is gone; nothing was touched") from None
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
            with suppress(LockTimeout):  # a backup began meanwhile; the next rehearsal removes it
                if own:
                    _empty(session, own)
                else:
                    session.run(f"DROP DATABASE IF EXISTS {quote(name)}")


@contextmanager
def _let_go(session: Session) -> Iterator[None]:
    """A server that keeps *session* though it is lost to us is told to end it, or no other rehearsal could begin."""
    try:
        yield
    except ConnectionLost:
        with suppress(RolloutError), session.beside() as beside:
            answers.ended(session, beside)
        raise


def _empty(session: Session, schema: str) -> None:
    """Remove every table of the plan's own rehearsal schema."""
    with without_foreign_key_checks(session):
        for (table,) in session.query(f"SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = {VALUE}", schema):
            session.run(f"DROP TABLE {quote(schema)}.{quote(str(table))}")


def leftover(session: Session, target: Target, plan: Plan) -> str | None:
    """The scratch schema that a killed rehearsal of this table left, or None; one that is in use is none."""
    name = scratch_name(target, plan.table)
    there = session.value(f"SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = {VALUE} "
                          f"AND IS_USED_LOCK({VALUE}) IS NULL", name, name[:64])
    return name if there else None


def remove_leftover(session: Session, target: Target, plan: Plan) -> str | None:
    """Drop what a killed rehearsal left and return its name. Safe to repeat; a rehearsal under way keeps its schema."""
    name = leftover(session, target, plan)
    if name is None or not session.value(f"SELECT GET_LOCK({VALUE}, 0)", name[:64]):
        return None
    try:
        session.run(f"DROP DATABASE IF EXISTS {quote(name)}")
    finally:
        session.value(f"SELECT RELEASE_LOCK({VALUE})", name[:64])
    return name
