"""The plan's smoke queries on the clone with its sample: whether the server can answer them at all once the table has grown."""

from __future__ import annotations

from itertools import pairwise

import sqlglot

from steps import sql_text
from steps.clone import Clone
from steps.errors import Refused, StatementFailed
from steps.mysql import Session

NOT_HERE = {1146, 1305}
LIMIT_MS = 5000


def ask(clone: Clone) -> int:
    """
    Send each query of `verify.queries`; return how many were answered. Parents are empty here, so answers are not judged.

    One that names a schema is not sent, since it would read live tables; that, and a table or routine that is not on the clone,
    is told in the notes. Raises:
        Refused: the server cannot answer it; names the query and the reason.
    """
    answered = 0
    schemas = {str(name).lower() for (name,) in clone.session.query("SELECT SCHEMA_NAME FROM information_schema.SCHEMATA")}
    clone.session.run(f"SET SESSION max_execution_time = {LIMIT_MS}")
    try:
        for name, text in clone.plan.queries.items():
            query = sql_text.query_statement(clone.plan.folder / name, text)
            why = "it names a schema" if _qualified(query.sql, schemas) else _sent(clone.session, name, query.sql)
            if why:
                clone.notes.append(f"smoke query {name} was not run on the clone: {why}")
            answered += not why
    finally:
        clone.session.run("SET SESSION max_execution_time = 0")
    return answered


def _sent(session: Session, name: str, sql: str) -> str:
    try:
        session.read_verbatim(sql)
    except StatementFailed as error:
        if error.errno in NOT_HERE or error.retryable:
            return error.reason
        raise Refused(f"smoke query {name}", f"cannot be answered once the steps are done: {error.reason}",
                      "correct the query or the plan; nothing was touched") from None
    return ""


def _qualified(sql: str, schemas: set[str]) -> bool:
    tokens = list(sqlglot.tokenize(sql, read="mysql"))
    return any(following.text == "." and token.text.lower() in schemas for token, following in pairwise(tokens))
