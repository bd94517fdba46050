"""The grants a DBA runs, made from the one table of rights: `python -m flows.grants_sql` writes deploy/grants.sql anew."""

from __future__ import annotations

import textwrap
from pathlib import Path

from steps import end_blockers, handover
from steps.checks.privileges import REHEARSAL_PATTERN
from steps.checks.rights import ATTRIBUTES, NEEDS, SECTIONS, Need

FILE = Path(__file__).resolve().parents[1] / "deploy" / "grants.sql"
ACCOUNT = "'YOUR_TOOL'@'YOUR_HOST'"
PLACES = {"table": "`YOUR_DATABASE`.`YOUR_TABLE`", "schema": "`YOUR_DATABASE`.*", "ledger": "`YOUR_LEDGER_DATABASE`.*", "server": "*.*",
          "parents": "`YOUR_DATABASE`.`YOUR_PARENT`", "relatives": "`YOUR_DATABASE`.`YOUR_RELATIVE`",
          "leaves": "`YOUR_DATABASE`.`YOUR_LEAF`", "rehearsal": f"`{REHEARSAL_PATTERN}`.*"}
EACH = {"parents": "one line for each table that a step of the plan refers to",
        "leaves": "one line for each table of a [[pre_deploy.leaf]], once it is there",
        "relatives": "one line for each other table at the end of a foreign key of this one, either way"}
HEAD = """\
The rights that `rollout` needs, by what it is used for. Made from steps/checks/rights.py: `python -m flows.grants_sql`.

Put your names in place of those in capitals, leave out what says "only" and is not so with your plan, and run it as an account
that may grant. `rollout check` names each right that is missing, with the GRANT. Behind each heading stands what has to be added for it
to all before it; a run asks for all of them at once, so that it does not stop half-way.

YOUR_TOOL, YOUR_HOST, YOUR_PASSWORD: the account. YOUR_DATABASE, YOUR_TABLE: plan.table and its database. YOUR_LEDGER_DATABASE:
plan.ledger_schema, else YOUR_DATABASE. Behind the last dot of a line that ends in .* every _ of a database's name is a wildcard: write
\\_ for it, but not with partial_revokes = ON, where names are plain; there the clone needs a schema of its own, plan.rehearsal_schema.

Nothing of the application's other tables, no right to create users, no SUPER. With the binary log on, creating triggers needs
log_bin_trust_function_creators = 1, or SUPER, which is not in here.
"""
OPTIONAL = """\
[optional] Only for what is named; nothing else is lost without.
"""


def render() -> str:
    """The whole file. Safe to repeat."""
    parts = [_comment(HEAD), f"CREATE USER {ACCOUNT} IDENTIFIED BY 'YOUR_PASSWORD' REQUIRE SSL;"]
    for section, what in SECTIONS.items():
        lines = [_comment(f"[{section}] {what}")]
        lines += [_grant(need, rights) for need in NEEDS if (rights := need.rights_of(section))]
        parts.append("\n\n".join(lines))
    parts.append("\n\n".join([_comment(OPTIONAL), *_optional()]))
    return "\n\n".join(parts) + "\n"


def _grant(need: Need, rights: tuple[str, ...]) -> str:
    lost = f"without it: {need.lost}" + (f", and it is refused but for --accept {need.accept}" if need.accept else "") if need.lost else ""
    said = (need.by, need.only, EACH.get(need.on, ""), lost, f"or {need.instead}" if need.instead else "")
    return _granted(". ".join(part[0].upper() + part[1:] for part in said if part), rights, need.on)


def _optional() -> list[str]:
    replica = "On a replica that backfill.replicas names, for the account in its URL: "
    return [_granted("The hand-over of copies to pt-online-schema-change, on the database", handover.ON_SCHEMA, "schema"),
            _granted("The hand-over of copies to pt-online-schema-change, on the server", handover.ON_SERVER, "server"),
            _granted("--end-blockers, to end sessions of other accounts (without SYSTEM_USER)", end_blockers.ANY_SESSION[:1], "server"),
            _granted("--end-blockers, to know sessions of its own", ("SELECT",), ATTRIBUTES),
            _granted(f"{replica}its state", ("REPLICATION CLIENT",), "server"),
            _granted(f"{replica}our heartbeat", ("SELECT",), "ledger")]


def _granted(why: str, rights: tuple[str, ...], on: str) -> str:
    return f"{_comment(why)}\n{_statement(rights, PLACES.get(on, f'performance_schema.{on}'))}"


def _statement(rights: tuple[str, ...], place: str) -> str:
    return f"GRANT {', '.join(rights)} ON {place} TO {ACCOUNT};"


def _comment(text: str) -> str:
    lines = [line for part in text.strip().split("\n\n") for line in [*textwrap.wrap(part, 130, break_on_hyphens=False), ""]]
    return "\n".join(f"-- {line}".rstrip() for line in lines[:-1])


if __name__ == "__main__":
    FILE.write_text(render())
