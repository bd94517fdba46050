"""
What the server says there is: the shape of a table, its triggers, its size. Truth about the schema is here, never in the ledger.

A shape maps each object's name to its whole definition as text, so that a definition can be compared, stored, printed and
used to make the object again.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field
from typing import Any

from steps.mysql import VALUE, Row, Session, quote

KINDS = ("columns", "indexes", "foreign_keys", "checks")


@dataclass(frozen=True)
class Shape:
    """Columns in their order, indexes, foreign keys and CHECKs of one table: name to definition."""

    columns: dict[str, str] = field(default_factory=dict)
    indexes: dict[str, str] = field(default_factory=dict)
    foreign_keys: dict[str, str] = field(default_factory=dict)
    checks: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        # Lists, because a JSON column sorts the keys of an object and the order of columns is part of the shape.
        return {kind: list(map(list, objects.items())) for kind, objects in asdict(self).items()}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Shape:
        return cls(**{kind: dict(data[kind]) for kind in KINDS})

    def changed_since(self, before: Shape) -> dict[str, set[str]]:
        """Names by kind whose definition differs from *before*."""
        return {kind: {name for name in {**getattr(self, kind), **getattr(before, kind)}
                       if getattr(self, kind).get(name) != getattr(before, kind).get(name)} for kind in KINDS}


def differences(have: Shape, want: Shape, judged: dict[str, set[str]]) -> list[str]:
    """
    What makes *have* another table than *want*, looking only at the *judged* names (the objects a plan touches).

    The order of columns is compared among those that both have.
    """
    found = []
    for kind in KINDS:
        label = kind.replace("_", " ").removesuffix("es" if kind == "indexes" else "s")
        for name in sorted(judged.get(kind, ())):
            got, expected = getattr(have, kind).get(name), getattr(want, kind).get(name)
            if got != expected:
                found.append(f"{label} {name}: has {got or 'nothing'}, expected {expected or 'nothing'}")
    common = [name for name in want.columns if name in have.columns]
    order = [name for name in have.columns if name in want.columns]
    if common != order:
        at = next(i for i, pair in enumerate(zip(common, order, strict=True)) if pair[0] != pair[1])
        found.append(f"column order: {order[at]} stands where {common[at]} is expected")
    return found


def unjudged(have: Shape, want: Shape, judged: dict[str, set[str]]) -> list[str]:
    """Objects on the table that the plan does not know: reported, not judged."""
    return [f"{kind.replace('_', ' ')}: {name}" for kind in KINDS
            for name in getattr(have, kind) if name not in getattr(want, kind) and name not in judged.get(kind, ())]


def exists(session: Session, schema: str, table: str) -> bool:
    return bool(session.value("SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = "
                              f"{VALUE} AND TABLE_NAME = {VALUE}", schema, table))


def has_column(session: Session, schema: str, table: str, column: str) -> bool:
    return bool(session.value("SELECT COUNT(*) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = "
                              f"{VALUE} AND TABLE_NAME = {VALUE} AND COLUMN_NAME = {VALUE}", schema, table, column))


def shape(session: Session, schema: str, table: str) -> Shape:
    """The table's shape now. Takes no lock that makes anybody wait; an absent table has an empty shape."""
    return Shape(_columns(session, schema, table), _indexes(session, schema, table),
                 _foreign_keys(session, schema, table), _checks(session, schema, table))


def create_statement(session: Session, schema: str, table: str) -> str:
    """SHOW CREATE TABLE, verbatim."""
    return str(session.one(f"SHOW CREATE TABLE {quote(schema)}.{quote(table)}")[1])


def table_collation(session: Session, schema: str, table: str) -> str:
    return str(session.value("SELECT TABLE_COLLATION FROM information_schema.TABLES WHERE TABLE_SCHEMA = "
                             f"{VALUE} AND TABLE_NAME = {VALUE}", schema, table))


def estimated_rows(session: Session, schema: str, table: str) -> int:
    """The server's estimate; never a COUNT(*) (case C107)."""
    return int(session.value("SELECT TABLE_ROWS FROM information_schema.TABLES WHERE TABLE_SCHEMA = "
                             f"{VALUE} AND TABLE_NAME = {VALUE}", schema, table) or 0)


def primary_key(session: Session, schema: str, table: str) -> list[tuple[str, str]]:
    """(column, data type) of the primary key, in key order; empty when there is none."""
    return [(str(name), str(kind)) for name, kind in session.query(
        "SELECT s.COLUMN_NAME, c.DATA_TYPE FROM information_schema.STATISTICS s JOIN information_schema.COLUMNS c "
        "USING (TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME) "
        f"WHERE s.TABLE_SCHEMA = {VALUE} AND s.TABLE_NAME = {VALUE} AND s.INDEX_NAME = 'PRIMARY' ORDER BY s.SEQ_IN_INDEX",
        schema, table)]


def self_updating_columns(session: Session, schema: str, table: str) -> list[str]:
    """Columns with ON UPDATE CURRENT_TIMESTAMP, which a pass must leave as they are (case C63)."""
    return [str(name) for (name,) in session.query(
        "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = "
        f"{VALUE} AND TABLE_NAME = {VALUE} AND LOWER(EXTRA) LIKE {VALUE} ORDER BY ORDINAL_POSITION",
        schema, table, "%on update%")]


@dataclass(frozen=True)
class Trigger:
    """A trigger as the catalogue shows it; *order* is its place among those of the same timing and event."""

    name: str
    timing: str
    event: str
    body: str
    sql_mode: str
    definer: str
    order: int


def triggers(session: Session, schema: str, table: str) -> list[Trigger]:
    """All triggers of the table, in the order in which they act."""
    return [Trigger(str(name), str(timing), str(event), str(body), str(mode), str(definer), int(order))
            for name, timing, event, body, mode, definer, order in session.query(
        "SELECT TRIGGER_NAME, ACTION_TIMING, EVENT_MANIPULATION, ACTION_STATEMENT, SQL_MODE, DEFINER, ACTION_ORDER "
        f"FROM information_schema.TRIGGERS WHERE EVENT_OBJECT_SCHEMA = {VALUE} AND EVENT_OBJECT_TABLE = {VALUE} "
        "ORDER BY EVENT_MANIPULATION, ACTION_TIMING, ACTION_ORDER", schema, table)]


def related_tables(session: Session, schema: str, table: str) -> list[tuple[str, str]]:
    """(schema, table) of every foreign-key parent and child; for metadata locks they count as the table."""
    rows = session.query(
        "SELECT DISTINCT REFERENCED_TABLE_SCHEMA, REFERENCED_TABLE_NAME FROM information_schema.KEY_COLUMN_USAGE "
        f"WHERE TABLE_SCHEMA = {VALUE} AND TABLE_NAME = {VALUE} AND REFERENCED_TABLE_NAME IS NOT NULL "
        "UNION SELECT DISTINCT TABLE_SCHEMA, TABLE_NAME FROM information_schema.KEY_COLUMN_USAGE "
        f"WHERE REFERENCED_TABLE_SCHEMA = {VALUE} AND REFERENCED_TABLE_NAME = {VALUE}", schema, table, schema, table)
    return sorted({(str(s), str(t)) for s, t in rows} - {(schema, table)})


def _columns(session: Session, schema: str, table: str) -> dict[str, str]:
    collation = table_collation(session, schema, table)
    rows = session.query(
        "SELECT COLUMN_NAME, COLUMN_TYPE, COLLATION_NAME, IS_NULLABLE, COLUMN_DEFAULT, EXTRA, GENERATION_EXPRESSION, "
        f"COLUMN_COMMENT, SRS_ID FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = {VALUE} AND TABLE_NAME = {VALUE} "
        "ORDER BY ORDINAL_POSITION", schema, table)
    return {str(row[0]): _column_definition(row, collation) for row in rows}


def _column_definition(row: Row, table_collation_name: str) -> str:
    _name, kind, collation, nullable, default, extra, expression, comment, srs_id = row
    extra = str(extra)
    parts = [str(kind)]
    if collation and collation != table_collation_name:
        parts.append(f"CHARACTER SET {str(collation).partition('_')[0]} COLLATE {collation}")
    if expression:
        parts.append(f"GENERATED ALWAYS AS ({_expression(expression)}) {'STORED' if 'STORED' in extra else 'VIRTUAL'}")
    parts.append("NULL" if nullable == "YES" else "NOT NULL")
    if srs_id is not None:
        parts.append(f"SRID {srs_id}")
    if default is not None and not expression:
        parts.append("DEFAULT " + _default(str(default), str(kind), extra))
    if "auto_increment" in extra:
        parts.append("AUTO_INCREMENT")
    if "on update" in extra.lower():
        parts.append("ON UPDATE " + extra[extra.lower().index("on update") + len("on update "):].split(" INVISIBLE")[0])
    if "INVISIBLE" in extra:
        parts.append("INVISIBLE")
    if comment:
        parts.append("COMMENT '" + str(comment).replace("\\", "\\\\").replace("'", "''") + "'")
    return " ".join(parts)


def _expression(shown: object) -> str:
    """An expression as it can be written again: the catalogue shows its quotes and backslashes escaped."""
    return re.sub(r"\\(.)", r"\1", str(shown), flags=re.DOTALL)


def _default(default: str, kind: str, extra: str) -> str:
    if "DEFAULT_GENERATED" in extra:
        return default if default.upper().startswith("CURRENT_TIMESTAMP") else f"({_expression(default)})"
    if (kind.startswith("bit") and default.startswith("b'")) or (kind.startswith(("binary", "varbinary")) and default.startswith("0x")):
        return default
    return "'" + default.replace("\\", "\\\\").replace("'", "''") + "'"


def _indexes(session: Session, schema: str, table: str) -> dict[str, str]:
    parts: dict[str, list[str]] = {}
    heads: dict[str, str] = {}
    tails: dict[str, str] = {}
    for name, non_unique, column, sub_part, direction, kind, visible, expression in session.query(
            "SELECT INDEX_NAME, NON_UNIQUE, COLUMN_NAME, SUB_PART, COLLATION, INDEX_TYPE, IS_VISIBLE, EXPRESSION "
            f"FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = {VALUE} AND TABLE_NAME = {VALUE} "
            "ORDER BY INDEX_NAME, SEQ_IN_INDEX", schema, table):
        prefix = f"({sub_part})" if sub_part and kind != "SPATIAL" else ""
        part = f"({_expression(expression)})" if expression else quote(str(column)) + prefix
        parts.setdefault(str(name), []).append(part + (" DESC" if direction == "D" else ""))
        heads[str(name)] = "PRIMARY KEY" if name == "PRIMARY" else "INDEX" if non_unique else "UNIQUE INDEX"
        if kind in ("FULLTEXT", "SPATIAL"):
            heads[str(name)] = f"{kind} INDEX"
        tails[str(name)] = "" if visible == "YES" else " INVISIBLE"
    return {name: f"{heads[name]} ({', '.join(columns)}){tails[name]}" for name, columns in parts.items()}


def _foreign_keys(session: Session, schema: str, table: str) -> dict[str, str]:
    columns: dict[str, list[Row]] = {}
    for row in session.query(
            "SELECT k.CONSTRAINT_NAME, k.COLUMN_NAME, k.REFERENCED_TABLE_SCHEMA, k.REFERENCED_TABLE_NAME, "
            "k.REFERENCED_COLUMN_NAME, r.DELETE_RULE, r.UPDATE_RULE FROM information_schema.KEY_COLUMN_USAGE k "
            "JOIN information_schema.REFERENTIAL_CONSTRAINTS r ON r.CONSTRAINT_SCHEMA = k.CONSTRAINT_SCHEMA AND "
            "r.CONSTRAINT_NAME = k.CONSTRAINT_NAME AND r.TABLE_NAME = k.TABLE_NAME "
            f"WHERE k.TABLE_SCHEMA = {VALUE} AND k.TABLE_NAME = {VALUE} ORDER BY k.CONSTRAINT_NAME, k.ORDINAL_POSITION",
            schema, table):
        columns.setdefault(str(row[0]), []).append(row)
    found = {}
    for name, rows in columns.items():
        _, _, parent_schema, parent, _, on_delete, on_update = rows[0]
        where = quote(str(parent)) if parent_schema == schema else f"{quote(str(parent_schema))}.{quote(str(parent))}"
        found[name] = (f"FOREIGN KEY ({', '.join(quote(str(r[1])) for r in rows)}) REFERENCES {where} "
                       f"({', '.join(quote(str(r[4])) for r in rows)}) ON DELETE {on_delete} ON UPDATE {on_update}")
    return found


def _checks(session: Session, schema: str, table: str) -> dict[str, str]:
    return {str(name): f"CHECK ({_expression(clause)}){'' if enforced == 'YES' else ' NOT ENFORCED'}" for name, clause, enforced in
            session.query(
                "SELECT c.CONSTRAINT_NAME, c.CHECK_CLAUSE, t.ENFORCED FROM information_schema.CHECK_CONSTRAINTS c "
                "JOIN information_schema.TABLE_CONSTRAINTS t ON t.CONSTRAINT_SCHEMA = c.CONSTRAINT_SCHEMA AND "
                "t.CONSTRAINT_NAME = c.CONSTRAINT_NAME "
                f"WHERE t.CONSTRAINT_TYPE = 'CHECK' AND t.TABLE_SCHEMA = {VALUE} AND t.TABLE_NAME = {VALUE}",
                schema, table)}
