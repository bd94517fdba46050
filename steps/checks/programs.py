"""Stored programs that mention a table: triggers, events and routines of every schema, as far as their text is shown."""

from __future__ import annotations

from dataclasses import dataclass

from steps.checks import words
from steps.mysql import VALUE, Row, Session

NOT_SYSTEM = "NOT IN ('information_schema', 'mysql', 'performance_schema', 'sys')"


@dataclass(frozen=True)
class Program:
    """*text* is None where the server does not show it to us; *own* marks a trigger of the table itself."""

    kind: str
    schema: str
    name: str
    text: str | None
    definer: str
    own: bool

    @property
    def subject(self) -> str:
        return f"{self.kind} {self.name}" if self.own else f"{self.kind} {self.schema}.{self.name}"


def mentioning(session: Session, schema: str, table: str) -> tuple[Program, ...]:
    """
    All that name the table, from another schema its schema too; of routines of the same schema also those whose text is hidden.

    Three looks at the catalogue; takes no lock that makes anybody wait.
    """
    mentions = f"LOCATE({VALUE}, {{}}) > 0"
    own = f"(EVENT_OBJECT_SCHEMA = {VALUE} AND EVENT_OBJECT_TABLE = {VALUE})"
    rows: list[Row] = session.query(
        f"SELECT 'trigger', TRIGGER_SCHEMA, TRIGGER_NAME, ACTION_STATEMENT, DEFINER, {own} FROM information_schema.TRIGGERS "
        f"WHERE {own} OR (TRIGGER_SCHEMA {NOT_SYSTEM} AND {mentions.format('ACTION_STATEMENT')}) ORDER BY 6 DESC, 2, 3",
        schema, table, schema, table, table)
    rows += session.query(
        "SELECT 'event', EVENT_SCHEMA, EVENT_NAME, EVENT_DEFINITION, DEFINER, 0 FROM information_schema.EVENTS "
        f"WHERE EVENT_SCHEMA {NOT_SYSTEM} AND {mentions.format('EVENT_DEFINITION')} ORDER BY 2, 3", table)
    rows += session.query(
        "SELECT LOWER(ROUTINE_TYPE), ROUTINE_SCHEMA, ROUTINE_NAME, ROUTINE_DEFINITION, DEFINER, 0 FROM information_schema.ROUTINES "
        f"WHERE ROUTINE_SCHEMA {NOT_SYSTEM} AND ((ROUTINE_DEFINITION IS NULL AND ROUTINE_SCHEMA = {VALUE} AND "
        f"ROUTINE_BODY = 'SQL') OR {mentions.format('ROUTINE_DEFINITION')}) ORDER BY 2, 3", schema, table)
    found = [Program(str(kind), str(where), str(name), None if text is None else str(text), str(definer), bool(ours))
             for kind, where, name, text, definer, ours in rows]
    return tuple(p for p in found if p.own or p.text is None or _needs(p, schema, table) <= words.names(p.text))


def _needs(program: Program, schema: str, table: str) -> frozenset[str]:
    return frozenset({table.lower()} if program.schema == schema else {table.lower(), schema.lower()})
