"""
What changed the schema, as migrations for the application's repository: one folder for each stretch of statements that went one way.

Told from the audit trail, and from the frozen ladder where a killed run could not write it. Prefect-free; reads only, and never writes
into `_prisma_migrations`: that is done by the people whose table it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from steps import handover
from steps.errors import StatementFailed
from steps.ladder import Ladder, Stair
from steps.ledger import DENIED, NO_SUCH_TABLE
from steps.mysql import quote
from steps.phase import Phase
from steps.rollout import Rollout

RECORD = "_prisma_migrations"
ALTER = re.compile(r"^(?:\s*--[^\n]*\n)*\s*ALTER TABLE\b", re.IGNORECASE)
CHECKS = "SET foreign_key_checks = {};"
ENDED_WELL = (0, 5)  # done; rolled back by itself
LABELS = {("pre_deploy", "forward"): "expand", ("pre_deploy", "back"): "expand_back",
          ("cleanup", "forward"): "cleanup", ("cleanup", "back"): "cleanup_back"}


@dataclass
class Migration:
    """
    Statements of one phase in one direction, or of leaves on other tables, in the order in which they were sent.

    *recorded* says whether Prisma has it on record as applied; None: could not look, or no such record is there.
    """

    phase: str
    direction: str
    leaves: bool
    began: datetime
    name: str = ""
    steps: list[str] = field(default_factory=list)
    statements: list[str] = field(default_factory=list)
    recorded: bool | None = None
    run_id: str = ""

    @property
    def sql(self) -> str:
        """The text of `migration.sql`. Brings a database that stands where this began to where it ended."""
        return "\n\n".join(self.statements) + "\n"


def migrations(rollout: Rollout) -> list[Migration]:
    """
    Every migration from the first run on this table until now, oldest first; names rise, and stay as they are on the next call.

    Raises:
        Drifted: the table stands on no stair of the frozen ladder.
    """
    known = rollout.ledger.plan()
    ladder = Ladder.from_json(known["ladder"]) if known else None
    over = {run["run_id"] for run in rollout.ledger.runs() if run["exit_code"] in ENDED_WELL}
    found: list[Migration] = []
    at = 0
    for event in rollout.ledger.events():
        if not _changed_schema(event):
            continue
        stair = ladder.stair_named(event["step"]) if ladder and known and event["at"] >= known["created_at"] else None
        if ladder and stair:
            to = stair if event["direction"] == "forward" else stair - 1
            _unwritten(found, ladder, at, stair - 1 if event["direction"] == "forward" else stair, event["at"])
            at = to
        leaf = event["step"] in {leaf.name for leaf in rollout.plan.pre_deploy.leaf}
        if found and found[-1].run_id != event["run_id"] and found[-1].run_id in over and not _goes_on(event):
            found.append(Migration(event["phase"], event["direction"], leaf, _time(event["at"])))
        migration = _open(found, event["phase"], event["direction"], event["at"], leaves=leaf)
        migration.run_id = event["run_id"]
        _add(migration, event["step"], _sql(rollout, event, ladder.stairs[stair - 1] if ladder and stair else None, leaf=leaf))
    if ladder and known:
        _unwritten(found, ladder, at, ladder.position(rollout.live(), rollout.table), known["created_at"])
    _named(found, rollout.plan.id)
    recorded = applied(rollout)
    for migration in found:
        migration.name = _of_another_database(migration, found, recorded or set())
        migration.recorded = None if recorded is None else migration.name in recorded
    return found


def needed(found: Iterable[Migration]) -> list[Migration]:
    """*found* without ways and ways back that no record of Prisma's knows: what the repository never saw, it need not undo."""
    left: list[Migration] = []
    for migration in found:
        left.append(migration)
        for start in range(len(left) - 1, -1, -1):
            if left[start].recorded is not False:
                break
            if _come_to_nothing(left[start:]):
                del left[start:]
                break
    return left


def _come_to_nothing(stretch: list[Migration]) -> bool:
    """Whether every step of *stretch* is undone in it; an index that only had to be put back for the way down is no step."""
    open_steps: list[tuple[str, str]] = []
    for migration in stretch:
        for step in migration.steps:
            if open_steps and open_steps[-1][0] == step and open_steps[-1][1] != migration.direction:
                open_steps.pop()
            elif not step.startswith("index "):
                open_steps.append((step, migration.direction))
    return not open_steps


def applied(rollout: Rollout) -> set[str] | None:
    """Names that Prisma has on record as applied here; None where it has no record or may not be looked at. One look."""
    try:
        rows = rollout.session.query(f"SELECT migration_name FROM {quote(rollout.schema)}.{quote(RECORD)} WHERE finished_at IS NOT NULL "
                                     "AND rolled_back_at IS NULL")
    except StatementFailed as error:
        if error.errno not in {NO_SUCH_TABLE, *DENIED}:
            raise
        return None
    return {str(name) for (name,) in rows}


def _changed_schema(event: dict[str, Any]) -> bool:
    """An ALTER TABLE of a step that was carried out, by us or by a copying tool; not the hold around it, not a trigger."""
    if not event["outcome"].startswith("done") or event["phase"] not in (Phase.PRE_DEPLOY.value, Phase.CLEANUP.value):
        return False
    handed_over = (event["detail"] or {}).get("algorithm") == handover.ALGORITHM
    return bool(event["statement"]) and (handed_over or bool(ALTER.match(event["statement"])))


def _sql(rollout: Rollout, event: dict[str, Any], stair: Stair | None, *, leaf: bool) -> str:
    """The statement as any server takes it: in place as it was sent, but with the ALTER where a tool copied the table."""
    algorithm = str((event["detail"] or {}).get("algorithm", ""))
    way = stair and (stair.up if event["direction"] == "forward" else stair.down)
    if algorithm == handover.ALGORITHM:
        end = "up" if event["direction"] == "forward" else "down"
        return way.sql if way else rollout.plan.sql_text.get(f"{event['step']}.{end}.sql", f"-- {event['statement']}")
    return _unchecked(str(event["statement"]), unchecked=leaf or "foreign_key_checks=0" in algorithm)


def _unchecked(sql: str, *, unchecked: bool) -> str:
    """A foreign key is added in place only while the checks are off (case C16)."""
    return f"{CHECKS.format(0)}\n{sql};\n{CHECKS.format(1)}" if unchecked else sql


def _add(migration: Migration, step: str, sql: str) -> None:
    if not migration.steps or migration.steps[-1] != step:  # a leaf goes with its index, in two statements
        migration.steps.append(step)
    migration.statements.append(sql.strip() if sql.strip().endswith(";") else sql.strip() + ";")


def _unwritten(found: list[Migration], ladder: Ladder, at: int, to: int, when: str) -> None:
    """Stairs between *at* and *to* that the catalogue shows and the audit trail lacks: a run was killed inside a hold."""
    down = to < at
    for stair in reversed(ladder.stairs[to:at]) if down else ladder.stairs[at:to]:
        way = stair.down if down else stair.up
        migration = _open(found, stair.phase, "back" if down else "forward", when, leaves=False)
        _add(migration, stair.name, _unchecked(way.sent, unchecked=way.fk_checks_off))


def _goes_on(event: dict[str, Any]) -> bool:
    """Whether a run that ended well may have left the phase half-way: cleanup cools between its tombstones and its drop."""
    return bool(event["phase"] == Phase.CLEANUP.value and event["direction"] == "forward")


def _open(found: list[Migration], phase: str, direction: str, when: str, *, leaves: bool) -> Migration:
    last = found[-1] if found else None
    if last is None or (last.phase, last.direction, last.leaves) != (phase, direction, leaves):
        found.append(Migration(phase, direction, leaves, _time(when)))
    return found[-1]


def _named(found: list[Migration], plan_id: str) -> None:
    """Prisma applies folders in the order of their names, so each is at least a second after the one before it."""
    last: datetime | None = None
    for migration in found:
        at = migration.began if last is None else max(migration.began, last + timedelta(seconds=1))
        last = at.replace(microsecond=0)
        label = LABELS[migration.phase, migration.direction]
        if migration.leaves:
            label = "leaves" if migration.direction == "forward" else "leaves_back"
        migration.name = f"{last:%Y%m%d%H%M%S}_{plan_id}_{label}"


def _of_another_database(migration: Migration, found: list[Migration], recorded: set[str]) -> str:
    """Names begin with the time of this database; where the repository had the same migration from another one, that one is on record."""
    taken, suffix = {other.name for other in found}, migration.name.partition("_")[2]
    others = sorted(name for name in recorded - taken if name.partition("_")[2] == suffix)
    return others[0] if others and migration.name not in recorded else migration.name


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
