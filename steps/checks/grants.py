"""What SHOW GRANTS says: rights at every level, patterns, partial revokes, roles (no right is guessed; case C69's neighbours)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from steps.mysql import Session, quote

GRANT = re.compile(r"(GRANT|REVOKE) (.+?) ON (\*|`(?:[^`]|``)+`)\.(\*|`(?:[^`]|``)+`) (?:TO|FROM) ")
ROLES = re.compile(r"GRANT (`(?:[^`]|``)+`@`(?:[^`]|``)*`(?:,`(?:[^`]|``)+`@`(?:[^`]|``)*`)*) TO ")
Rights = set[str]


@dataclass
class Grants:
    """
    What one session may do: rights on `*.*`, on schemas by pattern, on tables, and rights partly revoked by schema.

    *literal* (partial_revokes) makes patterns plain names; *fold* (lower_case_table_names) makes names caseless.
    """

    everywhere: Rights = field(default_factory=set)
    schemas: dict[str, Rights] = field(default_factory=dict)
    tables: dict[tuple[str, str], Rights] = field(default_factory=dict)
    revoked: dict[str, Rights] = field(default_factory=dict)
    literal: bool = False
    fold: bool = False

    def lacks(self, wanted: Iterable[str], schema: str, table: str | None = None) -> list[str]:
        """Those of *wanted* that no grant gives on the schema, or on its *table*."""
        schema, table = self._name(schema), self._name(table) if table else None
        has = (self.everywhere - self.revoked.get(schema, set())) | self._by_schema(schema)
        has |= self.tables.get((schema, table), set()) if table else set()
        return [] if "ALL PRIVILEGES" in has else [right for right in wanted if right not in has]

    def _by_schema(self, schema: str) -> Rights:
        """
        The server takes an exact name before any pattern, and then looks no further (measured on 9.7.4 without roles).

        Which of several overlapping patterns it takes under active roles it does not say; here they add up.
        """
        exact = [rights for pattern, rights in self.schemas.items() if schema in (pattern, re.sub(r"\\([_%])", r"\1", pattern))]
        like = [] if self.literal else [rights for pattern, rights in self.schemas.items() if _like(pattern).fullmatch(schema)]
        return set().union(*(exact or like))

    def _name(self, name: str) -> str:
        return name.lower() if self.fold else name


def grants_of(session: Session, *, with_roles: bool = False) -> Grants:
    """The rights of *session*, those of its active roles among them; *with_roles* as if every granted role were active."""
    literal, fold = session.one("SELECT @@partial_revokes, @@lower_case_table_names")
    lines = [str(row[0]) for row in session.query("SHOW GRANTS")]
    roles = granted_roles(lines) if with_roles else []
    if roles:
        lines = [str(row[0]) for row in session.query(f"SHOW GRANTS FOR CURRENT_USER() USING {', '.join(roles)}")]
    return parsed(lines, literal=bool(literal), fold=bool(fold))


def on_schema(session: Session, schema: str) -> str:
    """All of *schema* as GRANT takes it: there _ and % in a name are wildcards, so that one right would be given on others too."""
    if not {"_", "%"} & set(schema) or session.value("SELECT @@partial_revokes"):
        return f"{quote(schema)}.*"
    return re.sub(r"([_%])", r"\\\1", quote(schema)) + ".*"


def granted_roles(lines: Iterable[str]) -> list[str]:
    """The roles that *lines* of SHOW GRANTS name, quoted as they are there."""
    return [role for line in lines if (found := ROLES.match(line)) for role in found[1].split(",")]


def parsed(lines: Iterable[str], *, literal: bool = False, fold: bool = False) -> Grants:
    """
    What *lines* of SHOW GRANTS say. Rights on single columns do not count: every step works on whole rows.

    Lines on routines and roles are passed over.
    """
    found = Grants(literal=literal, fold=fold)
    for line in lines:
        match = GRANT.match(line)
        if not match:
            continue
        verb, what, schema, table = match.groups()
        rights = {right.strip() for right in re.sub(r"`(?:[^`]|``)*`", "", what).split(",") if "(" not in right}
        schema, table = (name[1:-1].replace("``", "`") if name != "*" else name for name in (schema, table))
        schema, table = found._name(schema), found._name(table)  # noqa: SLF001  # the same class, being built
        if verb == "REVOKE":
            found.revoked.setdefault(schema, set()).update(rights)
        elif schema == "*":
            found.everywhere |= rights
        elif table == "*":
            found.schemas.setdefault(schema, set()).update(rights)
        else:
            found.tables.setdefault((schema, table), set()).update(rights)
    return found


def _like(pattern: str) -> re.Pattern[str]:
    pieces = re.findall(r"\\[_%]|.", pattern, re.DOTALL)
    return re.compile("".join({"%": ".*", "_": "."}.get(piece, re.escape(piece[-1])) for piece in pieces), re.DOTALL)
