"""
Stand-ins for the tables around the clone: foreign-key parents and children, and what triggers write to. Structure only.

Of a live relative one SHOW CREATE TABLE is asked, which waits for nobody but a statement that just changes it; no row is read.
A parent's keys, types and collations are the real ones, so that a key that the live server would refuse is refused here
(cases C18, C44).
"""

from __future__ import annotations

import re

from steps import catalogue, own_names
from steps.clone import Clone, stand_in
from steps.errors import ConnectionLost, Refused, StatementFailed
from steps.mysql import VALUE, Session, quote
from steps.quoted_names import lines
from steps.references import Reference, references, renamed
from steps.unchecked import without_foreign_key_checks

FOREIGN_KEY = re.compile(r"^  CONSTRAINT `(?:[^`]|``)+` FOREIGN KEY ")
LEFT_OUT = ("  FULLTEXT KEY", "  SPATIAL KEY")
DENIED, NO_SUCH = {1142, 1143, 1044}, {1146, 1049}


def parents(live: Session, clone: Clone, create_sql: str) -> None:
    """
    Make a stand-in of every table that the table's own text or a step of the plan references.

    Raises:
        Refused: a parent, or a column of it, is not there; or may not be looked at.
    """
    texts = {f"table {clone.table}": create_sql} | {f"step {name.removesuffix('.sql')}": clone.plan.sql_text[name]
                                                     for step in clone.plan.pre_deploy.step if step.ddl
                                                     for name in (f"{step.ddl}.up.sql", f"{step.ddl}.down.sql")}
    for subject, sql in texts.items():
        for found in references(sql):
            _parent(live, clone, subject, found)


def _parent(live: Session, clone: Clone, subject: str, found: Reference) -> None:
    schema = found.schema or clone.live_schema
    own = schema == clone.live_schema
    name = found.table if own else stand_in(schema, found.table)
    if found.schema is not None:
        clone.stand_ins[schema, found.table] = name
    if own and (found.table == clone.table or (own_names.folds(live) and found.table.lower() == clone.table.lower())):
        return
    if not catalogue.exists(clone.session, clone.schema, name):
        build(live, clone, schema, found.table, name, subject)
    there = {column.lower() for column in catalogue.shape(clone.session, clone.schema, name).columns}
    for column in found.columns:
        if column.lower() not in there:
            raise Refused(subject, f"references {found.table} ({column}), which has no such column",
                          "correct the plan; nothing was touched")


def build(live: Session, clone: Clone, schema: str, table: str, name: str, subject: str) -> None:
    """
    The structure of *table* as *name*, without its foreign keys, triggers and rows.

    Raises:
        Refused: it is not there, is no base table, or may not be looked at.
    """
    try:
        text = catalogue.create_statement(live, schema, table)
    except StatementFailed as error:
        if error.errno in NO_SUCH:
            raise Refused(subject, f"references table {table}, which does not exist in {schema}",
                          "create it first, or correct the plan; nothing was touched") from None
        if error.errno in DENIED:
            raise Refused(subject, f"could not look: {error.reason}", f"grant SELECT or REFERENCES on {schema}.{table}") from None
        raise
    if not text.startswith("CREATE TABLE "):
        raise Refused(subject, f"references {table}, which is no base table", "correct the plan; nothing was touched")
    clone.session.verbatim(_plain(text, table, name))


def _plain(text: str, table: str, name: str) -> str:
    """SHOW CREATE TABLE under another name and without the clauses that bind it to other tables; one clause stands on each line."""
    head, *clauses = lines(text)
    last = next(at for at, line in enumerate(clauses) if line.startswith(")"))
    kept = [line.rstrip(",") for line in clauses[:last] if not FOREIGN_KEY.match(line) and not line.startswith(LEFT_OUT)]
    return "\n".join([head.replace(quote(table), quote(name), 1), ",\n".join(kept), *clauses[last:]])


def children(live: Session, clone: Clone) -> None:
    """
    Make a stand-in of every table whose foreign key references the live table, with that key, once the clone stands.

    So a step that drops, renames or changes a referenced key fails here as it would live (cases C38, C44).
    """
    rows = live.query(
        "SELECT DISTINCT TABLE_SCHEMA, TABLE_NAME FROM information_schema.KEY_COLUMN_USAGE "
        f"WHERE REFERENCED_TABLE_SCHEMA = {VALUE} AND REFERENCED_TABLE_NAME = {VALUE}", clone.live_schema, clone.table)
    for schema, table in sorted((str(s), str(t)) for s, t in rows):
        if (schema, table) != (clone.live_schema, clone.table):
            _child(live, clone, schema, table)


def _child(live: Session, clone: Clone, schema: str, table: str) -> None:
    own = schema == clone.live_schema
    name = table if own else stand_in(schema, table)
    try:
        text = catalogue.create_statement(live, schema, table)
        if not catalogue.exists(clone.session, clone.schema, name):
            clone.session.verbatim(_plain(text, table, name))
        for line in lines(text):
            if FOREIGN_KEY.match(line) and _is_ours(clone, line, own=own):
                _add_key(clone, name, line.strip().rstrip(","), own=own)
    except (StatementFailed, Refused) as error:
        if isinstance(error, ConnectionLost):
            raise
        clone.notes.append(f"could not look: a foreign key of {schema}.{table} could not be made on the clone ({error.reason})")


def _is_ours(clone: Clone, line: str, *, own: bool) -> bool:
    return any(found.table == clone.table and (own if found.schema is None else found.schema == clone.live_schema)
               for found in references(line))


def _add_key(clone: Clone, name: str, clause: str, *, own: bool) -> None:
    """Names of foreign keys are unique in a schema (case C20), so one from another schema goes without its name."""
    if not own:
        clause = clause[clause.index("FOREIGN KEY "):]
    clause = renamed(clause, {(clone.live_schema, clone.table): clone.table})
    with without_foreign_key_checks(clone.session):
        clone.session.verbatim(f"ALTER TABLE {quote(name)} ADD {clause}")
