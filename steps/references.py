"""
Which tables SQL text names as parents of foreign keys, and the same text with other names in their place.

Found with a MySQL tokenizer by position, so strings, comments and spelling stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sqlglot
from sqlglot import Token, TokenType

from steps.mysql import quote
from steps.plan import Plan

NOT_NAMES = {kind for kind in TokenType if kind.name.endswith("STRING")} | {TokenType.NUMBER}


@dataclass(frozen=True)
class Reference:
    """One `REFERENCES [schema.]table (columns)`; *start* and *end* are where the parent's name stands in the text."""

    schema: str | None
    table: str
    columns: tuple[str, ...]
    start: int
    end: int


def references(sql: str) -> list[Reference]:
    """Every parent that *sql* names, in its order; text that cannot be read as tokens names none."""
    try:
        tokens = list(sqlglot.tokenize(sql, read="mysql"))
    except sqlglot.errors.TokenError:
        return []
    return [_reference(tokens, at + 1) for at, token in enumerate(tokens[:-1])
            if token.text.upper() == "REFERENCES" and token.token_type not in {*NOT_NAMES, TokenType.IDENTIFIER}]


def named_parents(plan: Plan, schema: str, *, fold: bool = False) -> set[tuple[str, str]]:
    """(schema, table) of every other table that a step of the plan references; *schema* is the plan's table's (case C81: *fold*)."""
    found = {(reference.schema or schema, reference.table) for step in plan.pre_deploy.step if step.ddl
             for reference in references(plan.sql_text[f"{step.ddl}.up.sql"])}
    if not fold:
        return found - {(schema, plan.table)}
    return {(where.lower(), table.lower()) for where, table in found} - {(schema.lower(), plan.table.lower())}


def _reference(tokens: list[Token], at: int) -> Reference:
    qualified = at + 2 < len(tokens) and tokens[at + 1].text == "."
    name = tokens[at + 2] if qualified else tokens[at]
    columns, rest = list[str](), tokens[at + (3 if qualified else 1):]
    for token in rest[1:] if rest and rest[0].text == "(" else []:
        if token.text == ")" and token.token_type is not TokenType.IDENTIFIER:
            break
        columns += [token.text] if token.text != "," else []
    return Reference(tokens[at].text if qualified else None, name.text, tuple(columns), tokens[at].start, name.end + 1)


def renamed(sql: str, names: Mapping[tuple[str, str], str]) -> str:
    """*sql* with each parent (schema, table) of *names* under its other name, without a schema."""
    for found in reversed(references(sql)):
        other = names.get((found.schema, found.table)) if found.schema is not None else None
        if other is not None:
            sql = sql[:found.start] + quote(other) + sql[found.end:]
    return sql
