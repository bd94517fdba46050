"""
Steps on other tables, beside the ladder: due once their table and column exist, on any later run as well (F9).

Each is a foreign key onto the plan's table. Both tables are held together, since the statement locks both.
"""

from __future__ import annotations

from steps import catalogue
from steps.errors import ConnectionLost, StatementFailed, Stopped
from steps.hold import hold
from steps.mysql import Session, quote
from steps.phase import Outcome, Phase
from steps.plan import Leaf
from steps.rollout import Rollout
from steps.unchecked import without_foreign_key_checks


def due(rollout: Rollout) -> list[Leaf]:
    """Leaves whose table and column exist and whose foreign key does not."""
    return [leaf for leaf in rollout.plan.pre_deploy.leaf if _ready(rollout, leaf) and not _stands(rollout, leaf)]


def _ready(rollout: Rollout, leaf: Leaf) -> bool:
    return catalogue.has_column(rollout.session, rollout.schema, leaf.table, leaf.column)


def _key(rollout: Rollout, leaf: Leaf) -> str | None:
    """The name of the foreign key from this leaf's column onto the plan's table, if it stands."""
    wanted = f"FOREIGN KEY ({quote(leaf.column)}) REFERENCES {quote(rollout.table)} "
    keys = catalogue.shape(rollout.session, rollout.schema, leaf.table).foreign_keys
    return next((name for name, definition in keys.items() if definition.startswith(wanted)), None)


def _stands(rollout: Rollout, leaf: Leaf) -> bool:
    return _key(rollout, leaf) is not None


def add(rollout: Rollout) -> Outcome:
    """Add every leaf that is due; the others are recorded as not yet due."""
    wanted = due(rollout)
    for leaf in wanted:
        _orphans_refused(rollout, leaf)
        _fire(rollout, leaf, rollout.plan.sql_text[f"{leaf.ddl}.up.sql"] + ", ALGORITHM=INPLACE, LOCK=NONE", "forward")
    waiting = [leaf.name for leaf in rollout.plan.pre_deploy.leaf if not _ready(rollout, leaf)]
    if waiting:
        rollout.say("leaves not yet due", leaves=waiting)
    return Outcome.DONE if wanted else Outcome.NOT_DUE if waiting else Outcome.ALREADY_DONE


def remove(rollout: Rollout) -> Outcome:
    """Take off every leaf that stands, with the index MySQL made for it."""
    standing = [leaf for leaf in rollout.plan.pre_deploy.leaf if _ready(rollout, leaf) and _stands(rollout, leaf)]
    for leaf in reversed(standing):
        name = _key(rollout, leaf) or ""
        _fire(rollout, leaf, rollout.plan.sql_text[f"{leaf.ddl}.down.sql"] + ", ALGORITHM=INPLACE, LOCK=NONE", "back")
        if name in catalogue.shape(rollout.session, rollout.schema, leaf.table).indexes:
            _fire(rollout, leaf, f"ALTER TABLE {quote(leaf.table)} DROP INDEX {quote(name)}, ALGORITHM=INPLACE, LOCK=NONE", "back")
    return Outcome.DONE if standing else Outcome.ALREADY_DONE


def _orphans_refused(rollout: Rollout, leaf: Leaf) -> None:
    parent = catalogue.primary_key(rollout.session, rollout.schema, rollout.table)[0][0]
    orphan = rollout.session.query(
        f"SELECT 1 FROM {quote(leaf.table)} AS child LEFT JOIN {quote(rollout.table)} AS parent ON parent.{quote(parent)} = "
        f"child.{quote(leaf.column)} WHERE child.{quote(leaf.column)} IS NOT NULL AND parent.{quote(parent)} IS NULL LIMIT 1")
    if orphan:
        raise Stopped(f"step {leaf.name}", f"{leaf.table}.{leaf.column} holds keys that {rollout.table} does not have",
                      "correct those rows, then run the same command again")


def _fire(rollout: Rollout, leaf: Leaf, statement: str, direction: str) -> None:
    tables = [(rollout.schema, leaf.table), (rollout.schema, rollout.table)]
    found = {other for table in tables for other in catalogue.related_tables(rollout.session, *table)}
    related = sorted(found.difference(tables))
    with hold(rollout.target, rollout.watchdog, rollout.limits, tables, related, rollout.check_owner) as (session, _waited_s), \
            rollout.timed(Phase.PRE_DEPLOY, leaf.name, direction=direction, statement=statement):
        _send(rollout, session, leaf, statement)


def _send(rollout: Rollout, session: Session, leaf: Leaf, statement: str) -> None:
    try:  # in place only so; no orphan can come in while both tables are held
        with without_foreign_key_checks(session), \
                rollout.watchdog.while_waiting(session.connection_id, rollout.limits.patience_in_hold_s):
            rollout.check_owner()
            session.verbatim(statement)
    except StatementFailed as error:
        if isinstance(error, ConnectionLost):
            raise  # what became of it, the next run sees
        raise Stopped(f"step {leaf.name}", error.reason, "nothing was changed by this step; remove the cause and run again") from None
