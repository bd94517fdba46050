"""
The table's clone in the scratch schema: its real name, its relatives' stand-ins, and words for both sides of the border.

Nothing sent here may reach a live table. A statement that names a parent with its schema would; so such names are replaced on
the way in and put back on the way out, and what is frozen in the ledger is in the live table's words.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field, replace

from steps import catalogue
from steps.catalogue import Shape
from steps.mysql import Session, quote
from steps.plan import Plan
from steps.quoted_names import lines
from steps.references import renamed

DEFAULT = re.compile(r"^  `((?:[^`]|``)+)` .*? DEFAULT ('(?:[^'\\]|''|\\.)*'|0x[0-9A-F]+)", re.DOTALL)


@dataclass
class Clone:
    """
    *session* stands in the scratch schema; *stand_ins* maps (schema, table) of a qualified parent to its name there.

    *foreign_triggers* are the table's own triggers that stand on it now; whether any stood while rows went up is kept beside them.
    """

    session: Session
    plan: Plan
    live_schema: str
    stand_ins: dict[tuple[str, str], str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    sample_rows: int = 0
    foreign_triggers: list[str] = field(default_factory=list)
    foreign_triggers_acted: bool = False

    @property
    def schema(self) -> str:
        return self.session.schema or ""

    @property
    def table(self) -> str:
        return self.plan.table

    def send(self, sql: str) -> None:
        """Send the plan's or the server's own DDL text, with stand-ins for parents that it names with their schema."""
        self.session.verbatim(renamed(sql, self.stand_ins))

    def shape(self) -> Shape:
        """The clone's shape in the live table's words."""
        found = catalogue.shape(self.session, self.schema, self.table)
        return replace(found, foreign_keys={name: self._back(text) for name, text in found.foreign_keys.items()})

    def create_statement(self) -> str:
        return self._back(catalogue.create_statement(self.session, self.schema, self.table))

    def _back(self, text: str) -> str:
        for (schema, table), name in self.stand_ins.items():
            if schema != self.live_schema:
                text = text.replace(f"REFERENCES {quote(name)} (", f"REFERENCES {quote(schema)}.{quote(table)} (")
        return text

    def defaults(self) -> dict[str, str]:
        """Constant defaults as SHOW CREATE writes them; information_schema loses characters outside the BMP and after a NUL."""
        found = (DEFAULT.match(line) for line in lines(self.create_statement()))
        return {match[1].replace("``", "`"): match[2] for match in found if match}


def stand_in(schema: str, table: str) -> str:
    """The scratch schema's name for a table of another schema."""
    return "_abroad_" + hashlib.sha256(f"{schema}.{table}".encode()).hexdigest()[:16]
