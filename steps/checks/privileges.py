"""Whether the account has every right that a step or a check needs, so that nothing fails half-way (cases C69, C85, C87)."""

from __future__ import annotations

from dataclasses import replace

from steps import catalogue
from steps.checks import words
from steps.checks.finding import Finding, Look, unavailable
from steps.checks.grants import Grants, granted_roles, grants_of, on_schema
from steps.checks.rights import NEEDS, Need
from steps.errors import StatementFailed
from steps.mysql import Session, quote

NAME = "privileges"
REHEARSAL_PATTERN = r"\_rollout\_rehearsal\_%"
ANY_REHEARSAL = "_rollout_rehearsal_0123456789abcdef"  # every real name has this form, and only a pattern can cover them
Place = tuple[str, str | None, str]
"""A schema, a table of it or None, and both as GRANT takes them."""


def run(look: Look) -> list[Finding]:
    """Grants decide, and where they are unreliable a probe of no row does; says so where a granted role is merely not active."""
    account = "'{}'@'{}'".format(*str(look.session.value("SELECT CURRENT_USER()")).rsplit("@", 1))
    grants = grants_of(look.session)
    found = [(_finding(need, place, missing, account), missing, place)
             for need in NEEDS if need.when(look.plan) for place in _places(look, need)
             if (missing := _missing(look.session, grants, need, place))]
    found += [(finding, ["SUPER"], ("*", None, "*.*")) for finding in _triggers_and_binlog(look.session, grants, account)]
    roles = _inactive_roles(look.session) if found else ""
    if not roles:
        return [finding for finding, _missing_rights, _place in found]
    every = grants_of(look.session, with_roles=True)
    return [finding if every.lacks(missing, schema, table) else _activate(finding, roles, account)
            for finding, missing, (schema, table, _shown) in found]


def _places(look: Look, need: Need) -> list[Place]:
    plan, schema = look.plan.plan, look.schema
    if need.on == "parents":
        found = {(key.parent_schema or schema, key.parent) for _step, table, key in words.plan_keys(look.plan)
                 if table == look.table and key.parent and (key.refers_abroad(schema) or key.parent.lower() != table.lower())}
        return [(where, table, f"{quote(where)}.{quote(table)}") for where, table in sorted(found)]
    if need.on in ("table", "relatives", "leaves"):
        return [(schema, table, f"{quote(schema)}.{quote(table)}") for table in _tables(look, need.on)]
    rehearsal = plan.rehearsal_schema
    whole = {"schema": schema, "ledger": plan.ledger_schema or schema, "rehearsal": rehearsal or ANY_REHEARSAL}
    if need.on in whole:
        any_one = need.on == "rehearsal" and not rehearsal
        return [(whole[need.on], None, f"`{REHEARSAL_PATTERN}`.*" if any_one else on_schema(look.session, whole[need.on]))]
    if need.on == "server":
        return [("*", None, "*.*")]
    return [("performance_schema", need.on, f"performance_schema.{need.on}")]


def _tables(look: Look, which: str) -> list[str]:
    if which == "table":
        return [look.table]
    if which == "relatives":
        related = catalogue.related_tables(look.session, look.schema, look.table)
        return [table for schema, table in related if schema == look.schema and not catalogue.exists(look.session, schema, table)]
    return [leaf.table for leaf in look.plan.pre_deploy.leaf if catalogue.has_column(look.session, look.schema, leaf.table, leaf.column)]


def _missing(session: Session, grants: Grants, need: Need, place: Place) -> list[str]:
    if not need.probe:
        return grants.lacks(need.rights, *place[:2])
    try:
        session.query(need.probe)
    except StatementFailed as error:
        if not unavailable(error):
            raise
        return list(need.rights)
    return []


def _finding(need: Need, place: Place, missing: list[str], account: str) -> Finding:
    rights = ", ".join(missing)
    return Finding(
        NAME, "warn" if need.lost and not need.accept else "refuse", f"account {account}",
        f"could not look: lacks {rights} on {place[2]}, for {need.by}: {need.lost}" if need.lost else
        f"lacks {rights} on {place[2]}, for {need.by}",
        f"GRANT {rights} ON {place[2]} TO {account}" + (f", or {need.instead}" if need.instead else "")
        + (f", or {need.otherwise} with --accept {need.accept}" if need.accept else ""),
        need.accept, could_not_look=bool(need.lost))


def _inactive_roles(session: Session) -> str:
    """Granted roles, if any of them is not active in this session, as SET DEFAULT ROLE takes them."""
    granted = granted_roles(str(row[0]) for row in session.query("SHOW GRANTS"))
    active = str(session.value("SELECT CURRENT_ROLE()")).split(",")
    return "" if set(granted) <= set(active) else ", ".join(granted)


def _activate(finding: Finding, roles: str, account: str) -> Finding:
    return replace(finding, remedy=f"SET DEFAULT ROLE {roles} TO {account}: a role that it was granted has this right and is not active "
                                   "(activate_all_roles_on_login is off)")


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
