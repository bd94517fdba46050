"""Flavour and version of the server, its read-only switches, and whether it shows who holds a table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from steps.checks import words
from steps.checks.finding import NO_GAP, Finding, Look, unavailable
from steps.checks.known_bad import known_bad
from steps.errors import StatementFailed
from steps.mysql import VALUE, Session

NAME = "server"
OLDEST = (8, 0, 29)
FLAVOURS = {"mariadb": "MariaDB", "tidb": "TiDB", "vitess": "Vitess", "planetscale": "PlanetScale"}
READ_ONLY = ("innodb_read_only", "read_only", "super_read_only", "transaction_read_only")
CLUSTER = ("pxc_strict_mode", "wsrep_on")


@dataclass(frozen=True)
class Facts:
    """What the server says of itself. *sees_locks* is None where the account may not look (the privileges check tells)."""

    version: str
    comment: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    sees_locks: bool | None = True

    @property
    def number(self) -> tuple[int, ...]:
        found = re.match(r"(\d+)\.(\d+)\.(\d+)", self.version)
        return tuple(map(int, found.groups())) if found else ()


def run(look: Look) -> list[Finding]:
    return judge(facts(look.session), moves=any(words.moves_existing(sql) for sql in words.steps_sql(look.plan).values()))


def facts(session: Session) -> Facts:
    version, comment = session.one("SELECT VERSION(), @@version_comment")
    wanted = (*READ_ONLY, *CLUSTER)
    rows = session.query(f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({', '.join([VALUE] * len(wanted))})", *wanted)
    return Facts(str(version), str(comment), {str(name): str(value) for name, value in rows}, _sees_locks_or_denied(session))


def sees_metadata_locks(session: Session) -> bool:
    """
    Whether metadata locks are recorded: this very look holds one, so an empty table means that nothing is recorded.

    Raises:
        StatementFailed: the account may not look.
    """
    return bool(session.query("SELECT 1 FROM performance_schema.metadata_locks LIMIT 1"))


def judge(facts: Facts, *, moves: bool = False) -> list[Finding]:
    """Every finding of *facts*; *moves* is whether the plan moves existing columns. A server that is not supported is told alone."""
    other = unsupported(facts)
    if other:
        return [other]
    return [*_cluster(facts), *_bad_version(facts, moves=moves), *_read_only(facts), *_blind(facts)]


def unsupported(facts: Facts) -> Finding | None:
    """MariaDB, TiDB, Vitess, PlanetScale or a MySQL too old (cases C14, C103, C104, C105)."""
    said = f"{facts.version} {facts.comment}".lower()
    for word, flavour in FLAVOURS.items():
        if word in said:
            return Finding(
                NAME, "refuse", f"server {flavour} {facts.version}",
                "is not supported: its DDL, triggers and catalogue are not MySQL's; nothing was done",
                "run against MySQL 8.0.32 or later")
    if facts.number < OLDEST:
        return Finding(
            NAME, "refuse", f"server {facts.version}",
            f"is too old: MySQL adds a column at any place at once (INSTANT with AFTER) from {_dotted(OLDEST)} on; "
            "nothing was done",
            "upgrade to 8.0.32 or later")
    return None


def _cluster(facts: Facts) -> list[Finding]:
    """Galera and PXC run a refused DDL on the other nodes all the same (case C106)."""
    if facts.variables.get("wsrep_on", "OFF").upper() not in ("ON", "1") and "pxc_strict_mode" not in facts.variables:
        return []
    named = next(name for name in reversed(CLUSTER) if name in facts.variables)
    return [Finding(
        NAME, "refuse", f"server {facts.version}",
        f"is a Galera or Percona XtraDB cluster ({named} is {facts.variables[named]}): DDL refused here still runs "
        "on the other nodes, as a copy",
        "roll out with the cluster's own means (RSU), not with this tool")]


def _bad_version(facts: Facts, *, moves: bool) -> list[Finding]:
    """Versions that damage what a rollout does; the table is in :mod:`steps.checks.known_bad`."""
    return [Finding(
        NAME, "refuse", f"server {facts.version}", bad.what,
        f"{bad.remedy}, or go on with --accept known-bad-version",
        "known-bad-version")
        for bad in known_bad(facts.number, moves=moves)]


def _read_only(facts: Facts) -> list[Finding]:
    """A replica or reader endpoint, also where this account could write (case C66)."""
    on = [name for name in READ_ONLY if facts.variables.get(name, "OFF").upper() in ("ON", "1")]
    if not on:
        return []
    return [Finding(
        NAME, "refuse", f"server {facts.version}",
        f"is read-only ({', '.join(on)} ON): this is a replica or a reader endpoint",
        "name the primary in the database URL")]


def _blind(facts: Facts) -> list[Finding]:
    if facts.sees_locks is not False:
        return []
    return [Finding(
        NAME, "refuse", "performance_schema.metadata_locks",
        "could not look: the server records no metadata locks (performance_schema is off, or the instrument "
        "wait/lock/metadata/sql/mdl is disabled), so no gap in the traffic can be found",
        f"switch both on, or fire without a guard, at the cost of some transactions (1213), with --accept {NO_GAP}",
        NO_GAP, could_not_look=True)]


def _sees_locks_or_denied(session: Session) -> bool | None:
    try:
        return sees_metadata_locks(session)
    except StatementFailed as error:
        if not unavailable(error):
            raise
        return None


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
