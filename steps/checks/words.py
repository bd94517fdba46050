"""
What SQL text names, found with a MySQL tokenizer: no parser, no regular expression, strings and comments do not count.

Good for looking, not for proving: what a step really does is learned from the server in the rehearsal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import sqlglot
from sqlglot import Token, TokenType
from sqlglot.dialects.mysql import MySQL

from steps.plan import Plan


class _Plain(MySQL.Tokenizer):
    """As it comes, the tokenizer swallows what follows REPLACE, CALL and the like as one string, and names in it would not be seen."""

    COMMANDS: ClassVar[set[TokenType]] = set()


@lru_cache(maxsize=256)
def tokens(text: str) -> tuple[Token, ...]:
    """
    *text* as tokens; checks of one report ask for the same few texts again and again.

    Raises:
        Unreadable: it cannot be read as tokens.
    """
    return tuple(_Plain(dialect="mysql").tokenize(text))


STRINGS = {kind for kind in TokenType if kind.name.endswith("STRING")}
NOT_NAMES = {*STRINGS, TokenType.NUMBER}
NOT_COLUMNS = {"INDEX", "KEY", "PRIMARY", "FOREIGN", "CONSTRAINT", "CHECK", "UNIQUE", "FULLTEXT", "SPATIAL", "PARTITION"}
HEAD = 3  # ALTER TABLE name
Unreadable = sqlglot.errors.TokenError
"""Text that the tokenizer cannot take, such as a digest cut in the middle."""


@dataclass(frozen=True)
class Key:
    """
    A UNIQUE index (no *parent*) or a foreign key; *columns* as (name, prefix length or None).

    *parent_schema* is what stands before the parent's name, or nothing.
    """

    name: str
    columns: tuple[tuple[str, int | None], ...]
    parent: str = ""
    parent_columns: tuple[str, ...] = ()
    parent_schema: str = ""

    def refers_abroad(self, schema: str) -> bool:
        """Whether the parent stands in another schema than *schema*, where only the rehearsal looks."""
        return self.parent_schema not in ("", schema)


def names(text: str) -> frozenset[str]:
    """
    Every word of *text* that may be a name, in lower case.

    The catalogue writes quotes inside expressions as backslash and quote; where that cannot be undone every word counts.
    """
    for candidate in (text, text.replace("\\'", "'")):
        try:
            found = tokens(candidate)
        except sqlglot.errors.TokenError:
            continue
        return frozenset(token.text.lower() for token in found if token.token_type not in NOT_NAMES)
    return frozenset(re.findall(r"[\w$]+", text.lower()))


def steps_sql(plan: Plan) -> dict[str, str]:
    """The up text of every step of the plan's own table that has one, by the step's name."""
    return {step.name: plan.sql_text[f"{step.name}.up.sql"] for step in plan.pre_deploy.step if step.ddl}


def keys(alter: str) -> list[Key]:
    """The UNIQUE indexes and foreign keys that *alter* adds; those over expressions are left out."""
    found = []
    for clause in clauses(alter):
        words = [word.upper() for word in clause]
        if words[:1] != ["ADD"]:
            continue
        start = 2 if words[1:2] == ["CONSTRAINT"] else 1
        named = clause[2] if start == 2 and words[2:3] not in (["UNIQUE"], ["FOREIGN"]) else ""  # noqa: PLR2004
        start += bool(named)
        if words[start:start + 1] == ["UNIQUE"] or words[start:start + 2] == ["FOREIGN", "KEY"]:
            key = _key(clause[start:], named)
            found += [key] if key else []
    return found


def added_columns(alter: str) -> list[str]:
    """The columns that *alter* adds, as it writes them."""
    found: list[str] = []
    for clause in clauses(alter):
        rest = clause[2:] if [w.upper() for w in clause[:2]] == ["ADD", "COLUMN"] else clause[1:]
        if clause[0].upper() != "ADD" or not rest or rest[0].upper() in NOT_COLUMNS:
            continue
        found += [part[0] for part in parts(rest[1:-1])] if rest[0] == "(" else [rest[0]]
    return [bare(name) for name in found]


def removed_columns(alter: str) -> list[str]:
    """The columns that are no longer there under their name after *alter*: dropped, changed or renamed."""
    found = []
    for clause in clauses(alter):
        verb = clause[0].upper()
        rest = clause[2:] if [w.upper() for w in clause[1:2]] == ["COLUMN"] else clause[1:]
        if not rest or rest[0].upper() in NOT_COLUMNS:
            continue
        other = verb == "CHANGE" and len(rest) > 1 and bare(rest[0]).lower() != bare(rest[1]).lower()
        if verb == "DROP" or other or (verb == "RENAME" and clause[1].upper() == "COLUMN"):
            found.append(bare(rest[0]))
    return found


def moves_existing(alter: str) -> bool:
    """Whether *alter* puts a column that is there already into another place."""
    return any(clause[0].upper() in ("MODIFY", "CHANGE") and {"AFTER", "FIRST"} & {word.upper() for word in clause}
               for clause in clauses(alter))


def plan_keys(plan: Plan) -> Iterator[tuple[str, str, Key]]:
    """Every UNIQUE index and foreign key that the plan adds, with its step and its table; those of leaves last."""
    sql = [(step, plan.table, text) for step, text in steps_sql(plan).items()]
    sql += [(leaf.name, leaf.table, plan.sql_text[f"{leaf.name}.up.sql"]) for leaf in plan.pre_deploy.leaf]
    yield from ((step, table, key) for step, table, text in sql for key in keys(text))


def places_between(alter: str) -> bool:
    """Whether *alter* puts any column before another one."""
    return any({"AFTER", "FIRST"} & {word.upper() for word in clause} for clause in clauses(alter))


def _key(clause: list[str], named: str) -> Key | None:
    opening = clause.index("(")
    lists = list(_lists(clause))
    columns = [_part(part) for part in parts(lists[0])]
    if any(name in ("", "(") for name, _length in columns):
        return None
    own = [word for word in clause[1:opening] if word.upper() not in ("INDEX", "KEY", "USING", "BTREE", "HASH")]
    name = bare((own or [named])[0])
    if clause[0].upper() == "UNIQUE":
        return Key(name, tuple(columns))
    at = [word.upper() for word in clause].index("REFERENCES") + 1
    schema, parent = (clause[at], clause[at + 2]) if clause[at + 1] == "." else ("", clause[at])
    return Key(bare(named) or name, tuple(columns), bare(parent), tuple(bare(part[0]) for part in parts(lists[1])), bare(schema))


def _part(part: list[str]) -> tuple[str, int | None]:
    length = int(part[2]) if part[1:2] == ["("] and part[2].isdigit() else None
    return bare(part[0]), length


def bare(word: str) -> str:
    """A name without its mark."""
    return word.removeprefix("`")


def _words(token: Token) -> list[str]:
    """A quoted name keeps one leading backtick, a string one quote, so that neither is taken for a word or a parenthesis."""
    if token.token_type is TokenType.IDENTIFIER:
        return ["`" + token.text]
    return token.text.split() if token.token_type not in STRINGS else ["'" + token.text]  # FOREIGN KEY is two words


def clauses(alter: str) -> list[list[str]]:
    """The clauses of *alter*, each as words: a quoted name begins with a backtick, a string with a quote."""
    read = [t for t in tokens(alter) if t.token_type is not TokenType.SEMICOLON]
    return parts([word for token in read[HEAD:] for word in _words(token)])


def spelled(text: str) -> list[str]:
    """The words of *text*, spelled as those of :func:`clauses`."""
    return [word for token in tokens(text) for word in _words(token)]


def parts(words: list[str]) -> list[list[str]]:
    """*words* split at the commas outside parentheses."""
    parts: list[list[str]] = [[]]
    depth = 0
    for word in words:
        depth += (word == "(") - (word == ")")
        if word == "," and depth == 0:
            parts.append([])
        else:
            parts[-1].append(word)
    return [part for part in parts if part]


def _lists(words: list[str]) -> Iterator[list[str]]:
    """What stands inside each outermost pair of parentheses."""
    depth, inside = 0, list[str]()
    for word in words:
        depth -= word == ")"
        if depth:
            inside.append(word)
        if word == ")" and depth == 0:
            yield inside
            inside = []
        depth += word == "("
