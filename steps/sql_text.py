"""
Reading the plan's SQL files with a MySQL tokenizer, never with `split(';')` (case C75).

A schema file holds one ALTER TABLE of the plan's table without ALGORITHM and LOCK, which the tool adds itself (cases C10,
C11); a verify file one SELECT with its expectation. The text is otherwise sent verbatim.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Literal

import sqlglot
from sqlglot.tokenizer_core import Token, TokenType

from steps.errors import PlanInvalid

Expectation = Literal["no rows", "some rows", "one value"]
WRITING = ("INTO", "UPDATE", "DELETE", "LOCK")  # reserved words, so no unquoted name is called so
NEEDS_SYNC = re.compile(r"^--\s*needs:\s*sync\s*$", re.MULTILINE)
SHORTEST_ALTER = 4
SEEN = re.compile(r"""--(?=[\s\x00-\x1f]|$)[^\n]*|\#[^\n]*|/\*!|/\*.*?\*/
                  |`(?:[^`]|``)*`|'(?:[^'\\]|''|\\.)*'|"(?:[^"\\]|""|\\.)*\"""", re.DOTALL | re.VERBOSE)
"""Comments, names and texts, each whole; of a version comment only its beginning, so that it is one and not a part of a text."""
EXPECT = re.compile(r"^--\s*expect:\s*(.+?)\s*$", re.MULTILINE)


@dataclass(frozen=True)
class Query:
    """
    A smoke query and what it must answer: no rows, some rows, one value (any), or one given value.

    *needs_sync* (`-- needs: sync`) is for queries that can only hold while the triggers are on; until then they are not due.
    """

    name: str
    sql: str
    expect: str
    needs_sync: bool = False


def _tokens(file: Path, text: str) -> list[Token]:
    if "/*!" in SEEN.findall(text):
        raise PlanInvalid(f"{file}:1", "has a version comment /*! … */, which the server executes", "write it plainly")
    try:
        tokens = list(sqlglot.tokenize(text, read="mysql"))
    except sqlglot.errors.TokenError as error:
        raise PlanInvalid(f"{file}:{text.count(chr(10)) + 1}", f"ends inside a quote or comment ({error})", "close it") from None
    if any(token.text.upper() == "DELIMITER" for token in tokens[:1]):
        raise PlanInvalid(f"{file}:{tokens[0].line}", "DELIMITER is a word of the mysql client", "write one statement")
    return tokens


def _single(file: Path, text: str) -> tuple[str, list[Token]]:
    tokens = _tokens(file, text)
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        text = text[: tokens[-1].start]
        tokens = tokens[:-1]
    if not tokens:
        raise PlanInvalid(f"{file}:1", "holds no statement", "write one")
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            raise PlanInvalid(f"{file}:{token.line}", "holds a second statement", "one statement a file")
    start, end = tokens[0].start, tokens[-1].end + 1
    return text[start:end], tokens


def _is_word(token: Token, *words: str) -> bool:
    """Whether *token* is one of *words*, and neither a quoted name nor a text."""
    return token.text.upper() in words and token.token_type not in (TokenType.STRING, TokenType.IDENTIFIER)


def alter_statement(file: Path, text: str, table: str) -> str:
    """
    The one ALTER TABLE of *file*, without comments around it and without a closing semicolon.

    Raises:
        PlanInvalid: another statement, another table, two statements, ALGORITHM or LOCK named, a rename of the table, an unclosed quote.
    """
    statement, tokens = _single(file, text)
    if len(tokens) < SHORTEST_ALTER or tokens[0].text.upper() != "ALTER" or tokens[1].text.upper() != "TABLE":
        raise PlanInvalid(f"{file}:{tokens[0].line}", "is not an ALTER TABLE", "a schema step alters the plan's table")
    if tokens[2].text != table or tokens[3].text == ".":
        raise PlanInvalid(f"{file}:{tokens[2].line}", f"alters {tokens[2].text}, not {table}", "name the table, without a schema")
    for token, following in pairwise([*tokens, tokens[0]]):
        if _is_word(token, "ALGORITHM", "LOCK"):
            raise PlanInvalid(f"{file}:{token.line}", f"names {token.text.upper()}", "the tool finds the best one itself; remove it")
        if _is_word(token, "RENAME") and not _is_word(following, "COLUMN", "INDEX", "KEY"):
            raise PlanInvalid(f"{file}:{token.line}", "renames the table", "a rollout keeps the table's name")
    return statement


def query_statement(file: Path, text: str) -> Query:
    """
    The smoke query of *file* with its `-- expect:` line.

    Raises:
        PlanInvalid: no SELECT, one that writes or locks, two statements, or no known expectation.
    """
    statement, tokens = _single(file, text)
    if tokens[0].text.upper() not in ("SELECT", "WITH"):
        raise PlanInvalid(f"{file}:{tokens[0].line}", "is not a SELECT", "a verify query only reads")
    for token, following in pairwise([*tokens, tokens[0]]):
        if _is_word(token, *WRITING) or (_is_word(token, "FOR") and _is_word(following, "SHARE")):
            raise PlanInvalid(f"{file}:{token.line}", f"names {token.text.upper()}, so it is not a SELECT that only reads",
                              "a verify query neither writes nor locks")
    expect = EXPECT.search(text)
    if not expect or not (expect[1] in ("no rows", "some rows", "one value") or expect[1].startswith("value ")):
        raise PlanInvalid(f"{file}:1", "has no known expectation",
                          "begin with `-- expect: no rows`, `some rows`, `one value` or `value X`")
    return Query(file.name, statement, expect[1], needs_sync=bool(NEEDS_SYNC.search(text)))
