"""Every right that a later step needs, read from SHOW GRANTS with active roles and patterns, and case C69's 1419."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from steps.checks import words
from steps.checks.finding import NO_GAP, Finding, Look
from steps.mysql import Session, quote

NAME = "privileges"
ON_TABLE = ("SELECT", "INSERT", "UPDATE", "CREATE", "DROP", "REFERENCES", "INDEX", "ALTER", "TRIGGER")
ON_SCHEMA = ("LOCK TABLES",)
ON_LEDGER = ("SELECT", "INSERT", "UPDATE", "DELETE", "CREATE")
ON_REHEARSAL = ("SELECT", "INSERT", "UPDATE", "CREATE", "DROP", "REFERENCES", "INDEX", "ALTER", "TRIGGER")
LOCK_TABLES_SEEN = ("metadata_locks", "threads")
REHEARSAL_PATTERN = r"\_rollout\_rehearsal\_%"
ANY_REHEARSAL = "_rollout_rehearsal_0123456789abcdef"  # every real name has this form, and only a pattern can cover them
GRANT = re.compile(r"(GRANT|REVOKE) (.+?) ON (\*|`(?:[^`]|``)+`)\.(\*|`(?:[^`]|``)+`) (?:TO|FROM) ")
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


def run(look: Look) -> list[Finding]:
    grants = grants_of(look.session)
    account = "'{}'@'{}'".format(*str(look.session.value("SELECT CURRENT_USER()")).rsplit("@", 1))
    return [*_places(look, grants, account), *_performance_schema(grants, account), *_process(grants, account),
            *_triggers_and_binlog(look.session, grants, account)]


def grants_of(session: Session) -> Grants:
    """The rights of *session*, those of its active roles among them."""
    literal, fold = session.one("SELECT @@partial_revokes, @@lower_case_table_names")
    return parsed([str(row[0]) for row in session.query("SHOW GRANTS")], literal=bool(literal), fold=bool(fold))


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


def _places(look: Look, grants: Grants, account: str) -> list[Finding]:
    """The table, its schema, the parents of new foreign keys, the ledger's schema, the rehearsal's schema."""
    plan, schema = look.plan.plan, look.schema
    rehearsal = plan.rehearsal_schema
    parents = {key.parent for sql in words.steps_sql(look.plan).values() for key in words.keys(sql)
               if key.parent and key.parent != look.table}
    places: list[tuple[tuple[str, ...], str, str | None, str, str]] = [
        (ON_TABLE, schema, look.table, f"{quote(schema)}.{quote(look.table)}", "the steps of the plan"),
        (ON_SCHEMA, schema, None, f"{quote(schema)}.*", "the hold in which steps are done"),
        *((("REFERENCES",), schema, name, f"{quote(schema)}.{quote(name)}", "the new foreign key") for name in sorted(parents)),
        (ON_LEDGER, plan.ledger_schema or schema, None, f"{quote(plan.ledger_schema or schema)}.*", "the ledger"),
        (ON_REHEARSAL, rehearsal or ANY_REHEARSAL, None, f"`{rehearsal or REHEARSAL_PATTERN}`.*", "the rehearsal on a clone"),
    ]
    return [Finding(
        NAME, "refuse", f"account {account}",
        f"lacks {', '.join(missing)} on {shown}, for {purpose}",
        f"GRANT {', '.join(missing)} ON {shown} TO {account}")
        for wanted, where, table, shown, purpose in places if (missing := grants.lacks(wanted, where, table))]


def _performance_schema(grants: Grants, account: str) -> list[Finding]:
    hidden = [t for t in LOCK_TABLES_SEEN if grants.lacks(("SELECT",), "performance_schema", t)]
    if not hidden:
        return []
    return [Finding(
        NAME, "refuse", f"account {account}",
        f"could not look: lacks SELECT on performance_schema.{' and '.join(hidden)}, so it cannot see who holds the "
        "table and no gap in the traffic can be found",
        " and ".join(f"GRANT SELECT ON performance_schema.{t} TO {account}" for t in hidden)
        + f", or fire without a guard, at the cost of some transactions (1213), with --accept {NO_GAP}",
        NO_GAP, could_not_look=True)]


def _process(grants: Grants, account: str) -> list[Finding]:
    if not grants.lacks(("PROCESS",), "*"):
        return []
    return [Finding(
        NAME, "warn", f"account {account}",
        "lacks PROCESS, so the age of open transactions and the row versions left for instant changes are not seen",
        f"GRANT PROCESS ON *.* TO {account}")]


def _triggers_and_binlog(session: Session, grants: Grants, account: str) -> list[Finding]:
    """With the binary log on only SUPER itself lifts 1419; SET_ANY_DEFINER and the like do not (measured on 9.7.4)."""
    logged, trusted = session.one("SELECT @@log_bin, @@log_bin_trust_function_creators")
    if not logged or trusted or not grants.lacks(("SUPER",), "*"):
        return []
    return [Finding(
        NAME, "refuse", f"account {account}",
        "may not create triggers: the binary log is on, log_bin_trust_function_creators is 0 and the account has no "
        "SUPER (error 1419)",
        "SET GLOBAL log_bin_trust_function_creators = 1 (on a managed server: in its parameter group)")]
