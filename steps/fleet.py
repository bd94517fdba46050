"""
Which generations of the application are connected now, by account or by connection attribute, as `[fleet]` of the plan tells them apart.

It proves presence, never absence: a session that the plan cannot tell, attributes that the server does not keep, or a look that
is denied is *could not look*, an answer of its own. What this sees stands beside the evidence of :mod:`steps.usage`, never in its place.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from steps import waits
from steps.errors import StatementFailed, Stopped
from steps.mysql import VALUE, Row, Session
from steps.phase import Phase
from steps.plan_deploy import Alive, Fleet
from steps.rollout import Rollout

ACCEPT = "fleet-unseen"
EVERY_S = 2
THREADS = ("SELECT PROCESSLIST_ID, PROCESSLIST_USER, PROCESSLIST_HOST, PROCESSLIST_TIME, PROCESSLIST_DB IS NOT NULL "
           "FROM performance_schema.threads WHERE TYPE = 'FOREGROUND' AND PROCESSLIST_ID IS NOT NULL "
           f"AND PROCESSLIST_USER IS NOT NULL AND (PROCESSLIST_DB = {VALUE} OR PROCESSLIST_DB IS NULL)")
OURS = ("program_name", "mysql-rollout")


@dataclass(frozen=True)
class Connected:
    """One client session, *here* in the schema or in none; *quiet_s* is how long it has been in its present state."""

    user: str
    host: str
    quiet_s: int
    here: bool
    attributes: frozenset[tuple[str, str]]

    def is_of(self, rule: Alive) -> bool:
        by_user = rule.user is None or rule.user == self.user
        return by_user and (rule.attribute is None or (rule.attribute, rule.value) in self.attributes)


@dataclass(frozen=True)
class Sight:
    """What one look saw: the sessions of each generation, those of nobody, and why more could not be seen."""

    alive: dict[str, tuple[Connected, ...]]
    unknown: tuple[Connected, ...] = ()
    unseen: tuple[str, ...] = ()


def look(session: Session, schema: str, plan: Fleet) -> Sight:
    """Who is connected now. Takes no lock; reads performance_schema alone, once for each of two tables."""
    rules = plan.generations()
    try:
        enabled, kept = session.one("SELECT @@performance_schema, @@performance_schema_session_connect_attrs_size")
        threads = session.query(THREADS, schema)
        attributes = session.query("SELECT PROCESSLIST_ID, ATTR_NAME, ATTR_VALUE FROM performance_schema.session_connect_attrs")
        ours = str(session.value("SELECT USER()")).rsplit("@", 1)[0]
    except StatementFailed as error:
        return Sight({}, unseen=(f"sessions cannot be read ({error.reason})",))
    if not enabled:
        return Sight({}, unseen=("sessions cannot be read (performance_schema is off)",))
    unseen = []
    if not kept and any(rule.attribute for rule in (*rules.values(), *plan.others)):
        unseen.append("the server keeps no connection attributes (performance_schema_session_connect_attrs_size = 0)")
    there = [one for one in _sessions(threads, attributes) if not (one.user == ours and OURS in one.attributes)]
    alive = {name: tuple(one for one in there if one.is_of(rule)) for name, rule in rules.items()}
    known = (*rules.values(), *plan.others)
    return Sight(alive, tuple(one for one in there if one.here and not any(one.is_of(rule) for rule in known)), tuple(unseen))


def _sessions(threads: list[Row], attributes: list[Row]) -> list[Connected]:
    by_session: dict[int, set[tuple[str, str]]] = {}
    for number, name, value in attributes:
        by_session.setdefault(int(number), set()).add((str(name), str(value)))
    return [Connected(str(user), str(host or ""), int(quiet_s or 0), bool(here), frozenset(by_session.get(int(number), ())))
            for number, user, host, quiet_s, here in threads]


def told(sessions: Iterable[Connected]) -> str:
    """Account, host, how many, and when they were last active, as far as MySQL knows (it keeps no time of connecting)."""
    groups: dict[tuple[str, str], list[int]] = {}
    for one in sessions:
        groups.setdefault((one.user, one.host), []).append(one.quiet_s)
    return ", ".join(f"{len(quiet)} of {user}@{host}, last active {min(quiet)} s ago" for (user, host), quiet in sorted(groups.items()))


def refuse_alive(rollout: Rollout, phase: Phase, gone: tuple[str, ...], why: str) -> None:
    """
    Nobody of the generations *gone* may be connected any more; their last sessions have `fleet.wait_s` to end. Nothing without `[fleet]`.

    Raises:
        Stopped: somebody is connected still; or it could not be seen well enough and `fleet-unseen` is not accepted.
    """
    plan = rollout.plan.fleet
    if plan is None:
        return
    with rollout.timed(phase, f"fleet: {' and '.join(gone)} gone") as facts:
        sight = _until_gone(rollout, plan, gone)
        facts |= _facts(sight)
    left = {name: sight.alive[name] for name in gone if sight.alive.get(name)}
    if left:
        raise Stopped(f"fleet of {rollout.table}", "; ".join(f"{name} is connected still: {told(found)}" for name, found in left.items()),
                      f"{why}; end those instances, then run the same command again")
    unseen = [*sight.unseen, *(f"the plan does not say how {name} is known" for name in gone if name not in plan.generations())]
    if sight.unknown:
        unseen.append(f"sessions of no generation that the plan tells: {told(sight.unknown)}")
    if unseen and ACCEPT not in rollout.accepted:
        raise Stopped(f"fleet of {rollout.table}", f"could not look: {'; '.join(unseen)}",
                      f"complete [fleet] or the account's rights, or say that you know from elsewhere with --accept {ACCEPT}")


def _until_gone(rollout: Rollout, plan: Fleet, gone: tuple[str, ...]) -> Sight:
    sight = look(rollout.session, rollout.schema, plan)
    for _ in range(math.ceil(plan.wait_s / EVERY_S)):
        if not any(sight.alive.get(name) for name in gone):
            break
        waits.sleep_s(EVERY_S)
        sight = look(rollout.session, rollout.schema, plan)
    return sight


def _facts(sight: Sight) -> dict[str, Any]:
    return {"connected": {name: told(found) for name, found in sight.alive.items() if found}, "of nobody": told(sight.unknown),
            "could not look": list(sight.unseen)}
