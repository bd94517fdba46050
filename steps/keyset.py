"""
Walking a table along its primary key, chunk by chunk, with boundaries decided and compared by the server (cases C56 to C59).

A cursor is the key of the last row seen, kept with its types so that it survives JSON: whole numbers of any size, text,
bytes, dates. Nothing is sorted or compared in Python, and no arithmetic is done on keys.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from steps import catalogue
from steps.errors import Refused
from steps.mysql import VALUE, Session, quote

WALKABLE = {"tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "char", "varchar", "binary", "varbinary", "date",
            "datetime", "timestamp"}
Key = tuple[Any, ...]


@dataclass(frozen=True)
class Keyset:
    """The primary key of one table as a way through it."""

    schema: str
    table: str
    columns: tuple[str, ...]

    @classmethod
    def of(cls, session: Session, schema: str, table: str) -> Keyset:
        """
        Raises:
            Refused: no primary key, or one of a type whose values do not survive the way to the client and back.
        """
        key = catalogue.primary_key(session, schema, table)
        if not key:
            raise Refused(f"table {table}", "has no primary key, so no pass can go through it chunk by chunk", "add one first")
        for column, kind in key:
            if kind.lower() not in WALKABLE:
                raise Refused(f"table {table}", f"key column {column} is {kind}, which a cursor cannot carry exactly",
                              "use a key of whole numbers, text, bytes or dates")
        return cls(schema, table, tuple(column for column, _ in key))

    @property
    def name(self) -> str:
        return f"{quote(self.schema)}.{quote(self.table)}"

    @property
    def select(self) -> str:
        return ", ".join(map(quote, self.columns))

    def after(self, cursor: Key | None) -> tuple[str, Key]:
        """A condition for the rows behind *cursor*, expanded because row values do not use the index (case C59)."""
        return ("TRUE", ()) if cursor is None else self._beyond(cursor, ">")

    def up_to(self, last: Key) -> tuple[str, Key]:
        """A condition for the rows up to and including *last*."""
        condition, values = self._beyond(last, "<")
        equal, same = self.equals(last)
        return f"({condition} OR {equal})", (*values, *same)

    def equals(self, key: Key) -> tuple[str, Key]:
        return "(" + " AND ".join(f"{quote(c)} = {VALUE}" for c in self.columns) + ")", key

    def among(self, keys: list[Key], alias: str = "") -> tuple[str, Key]:
        """A condition for exactly *keys*; *alias* is a table alias with its dot."""
        if len(self.columns) == 1:
            return f"{alias}{self.select} IN ({', '.join([VALUE] * len(keys))})", tuple(key[0] for key in keys)
        each = "(" + " AND ".join(f"{alias}{quote(c)} = {VALUE}" for c in self.columns) + ")"
        return "(" + " OR ".join([each] * len(keys)) + ")", tuple(value for key in keys for value in key)

    @property
    def among_elided(self) -> str:
        """:meth:`among` as the audit trail has it: keys are the rows' contents."""
        return f"({self.select}) IN (/* the keys of a chunk */)"

    def _beyond(self, key: Key, sign: str) -> tuple[str, Key]:
        arms, values = [], []
        for depth, column in enumerate(self.columns):
            equals = [f"{quote(earlier)} = {VALUE}" for earlier in self.columns[:depth]]
            arms.append("(" + " AND ".join([*equals, f"{quote(column)} {sign} {VALUE}"]) + ")")
            values += [*key[:depth], key[depth]]
        return "(" + " OR ".join(arms) + ")", tuple(values)

    def next_keys(self, session: Session, cursor: Key | None, rows: int, end: Key | None = None) -> list[Key]:
        """The next *rows* keys behind *cursor*, up to and including *end*, in the server's own order."""
        condition, values = self.between(cursor, end)
        return session.query(f"SELECT {self.select} FROM {self.name} FORCE INDEX (PRIMARY) WHERE {condition} "
                             f"ORDER BY {self.select} LIMIT {int(rows)}", *values)

    def next_stretch(self, session: Session, cursor: Key | None, rows: int, end: Key | None = None) -> Stretch | None:
        """The next *rows* rows behind *cursor*, up to and including *end*; the server decides where they end and sends one key."""
        condition, values = self.between(cursor, end)
        last = session.query(f"SELECT {self.select} FROM {self.name} FORCE INDEX (PRIMARY) WHERE {condition} "
                             f"ORDER BY {self.select} LIMIT 1 OFFSET {int(rows) - 1}", *values)
        if last:
            return Stretch(cursor, last[0], rows)
        keys = self.next_keys(session, cursor, rows, end)
        return Stretch(cursor, keys[-1], len(keys)) if keys else None

    def between(self, start: Key | None, end: Key | None) -> tuple[str, Key]:
        """A condition for the rows behind *start* up to and including *end*; None is the table's own end on that side."""
        after, values = self.after(start)
        if end is None:
            return after, values
        up_to, more = self.up_to(end)
        return f"{after} AND {up_to}", (*values, *more)


@dataclass(frozen=True)
class Stretch:
    """The rows behind *start* up to and including *end*, and how many there were when the server was asked."""

    start: Key | None
    end: Key
    rows: int


def encode(key: Key | None) -> str | None:
    """*key* as JSON that :func:`decode` gives back unchanged."""
    if key is None:
        return None
    return json.dumps([{"b": value.hex()} if isinstance(value, bytes) else {"t": value.isoformat()} if isinstance(value, datetime)
                       else {"d": value.isoformat()} if isinstance(value, date) else {"n": str(value)}
                       if isinstance(value, int | Decimal) else {"s": str(value)} for value in key])


def decode(data: list[dict[str, str]] | None) -> Key | None:
    """The key that :func:`encode` wrote."""
    if data is None:
        return None
    return tuple(_decoded(*next(iter(part.items()))) for part in data)


def _decoded(kind: str, text: str) -> Any:
    if kind == "b":
        return bytes.fromhex(text)
    if kind == "t":
        return datetime.fromisoformat(text)
    if kind == "d":
        return date.fromisoformat(text)
    if kind == "n":
        return Decimal(text) if set(text) & set(".E") else int(text)
    return text


def shown_key(key: Key) -> str:
    """A key for messages: bytes as hex (case C58)."""
    return "/".join(value.hex() if isinstance(value, bytes) else str(value) for value in key)
