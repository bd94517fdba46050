"""
What an engineer must do in the application's repository now, so that its migrations and its schema say what the table is (case C90).

Prisma applies every folder of migrations that it has no record of, and offers to repair what its history does not explain. So what the
rollout did goes into that history as it was done, and is marked as applied where it already is.
"""

from __future__ import annotations

import html
from typing import Any

from flows import migrations as history
from flows import prisma
from flows.migrations import Migration
from flows.prisma_before import before, changes
from steps import catalogue, fixes
from steps import contract as contracts
from steps.contract import Stage
from steps.errors import RolloutError
from steps.ladder import Ladder
from steps.mysql import quote
from steps.phase import Phase
from steps.rollout import Rollout

TITLE = "In the application's repository"
FOLDER = "prisma/migrations"
OWN_TABLES = "_rollout_"


def repository(rollout: Rollout) -> dict[str, Any]:
    """
    One document: what to `do`, what to `know`, the `migrations` that the repository needs, `schema` and `schema_diff` for its model,
    and in `schema_next` the model with which V2 has to be built before cleanup begins.

    Looks only; takes no lock. Where the table stands on no stair it says so and advises nothing else.
    """
    try:
        found = history.migrations(rollout)
    except RolloutError as error:
        return {"do": [f"nothing yet: {error.subject} {error.reason}; {error.remedy}"], "know": [], "migrations": [], "schema": None,
                "schema_next": None, "schema_diff": None}
    phases = {phase: str(row["state"]) for phase, row in rollout.ledger.phases().items()}
    needed = history.needed(found)
    dropped = [migration.name for migration in found if migration not in needed]
    schema = _schema(rollout, phases)
    do = [line for migration in needed for line in _of_migration(migration, ended=_ended(migration, needed, phases))]
    do += [f"{' and '.join(dropped)} undo each other and Prisma has neither on record: delete such folders, if a branch has them"] \
        if dropped else []
    do += _of_schema(rollout, phases, schema, needed)
    return {"do": do, "know": _known(rollout, needed, schema),
            "migrations": [_document(migration, ended=_ended(migration, needed, phases)) for migration in needed],
            "schema": schema, "schema_next": _next(rollout, phases, schema), "schema_diff": _diff(rollout, phases, schema)}


def text(found: dict[str, Any]) -> str:
    """The section for a terminal."""
    lines = ["", TITLE, *(f"  do    {line}" for line in found["do"]), *(f"  know  {line}" for line in found["know"])]
    for migration in found["migrations"]:
        if migration["ended"]:
            lines += ["", f"  {migration['file']}", *(f"      {line}" for line in migration["sql"].splitlines())]
    if found["schema_diff"]:
        lines += ["", "  schema.prisma", *(f"      {line}" for line in found["schema_diff"].splitlines())]
    return "\n".join(lines)


def section(found: dict[str, Any]) -> str:
    """The section of the HTML report."""
    parts = [f"<h2>{TITLE}</h2>", "<ol>", *(f"<li>{html.escape(line)}</li>" for line in found["do"]), "</ol>",
             "<ul>", *(f"<li>{html.escape(line)}</li>" for line in found["know"]), "</ul>"]
    blocks = [(migration["file"], migration["sql"]) for migration in found["migrations"] if migration["ended"]]
    blocks += [("schema.prisma, what changes", found["schema_diff"])] if found["schema_diff"] else []
    blocks += [(f"schema.prisma, {what}", found[key]) for key, what in (("schema", "the model"), ("schema_next", "V2's model for cleanup"))
               if found[key]]
    parts += [f"<details><summary>{html.escape(head)}</summary><pre>{html.escape(body)}</pre></details>" for head, body in blocks]
    return "\n".join(parts)


def _document(migration: Migration, *, ended: bool) -> dict[str, Any]:
    return {"name": migration.name, "phase": migration.phase, "direction": migration.direction, "ended": ended,
            "recorded": migration.recorded, "file": f"{FOLDER}/{migration.name}/migration.sql", "sql": migration.sql}


def _ended(migration: Migration, found: list[Migration], phases: dict[Phase, str]) -> bool:
    """Whether nothing more can come to *migration*: its phase has ended, or gone on with something else."""
    state = phases.get(Phase(migration.phase), "undone")
    return migration is not found[-1] or state == "undone" or (state == "done" and migration.direction == "forward")


def _of_migration(migration: Migration, *, ended: bool) -> list[str]:
    name = migration.name
    if migration.recorded:
        return [f"keep {FOLDER}/{name} as it is: Prisma has it on record as applied"]
    if not ended:
        return [f"nothing for {migration.phase} yet: it has not ended, and its migration is made when it has"]
    create = (f"create {FOLDER}/{name}/migration.sql with exactly the text below and commit it; where a rollout of another database "
              f"(staging) has brought a folder …_{name.partition('_')[2]} already, keep that one and mark its name instead")
    mark = (f"before `prisma migrate deploy` runs on this database again, mark it: `npx prisma migrate resolve --applied {name}`; it ran "
            "already, and would run again without holds and limits and fail (P3018), and every later deploy with it (P3009). Where that "
            "has happened, the same command settles it. Do not mark it on other databases: they have not seen it")
    return [create, mark]


def _of_schema(rollout: Rollout, phases: dict[Phase, str], schema: str | None, needed: list[Migration]) -> list[str]:
    expand, cleanup = phases.get(Phase.PRE_DEPLOY, "-"), phases.get(Phase.CLEANUP, "-")
    if cleanup == "done" and rollout.plan.removed_columns:
        line = (f"drop {', '.join(rollout.plan.removed_columns)} from schema.prisma, where V2's model had them with @ignore, in the commit "
                "of that migration")
    elif cleanup not in ("-", "undone"):
        line = ("keep the columns that cleanup takes away in V2's model, with @ignore, until cleanup has dropped them: without those lines "
                "`prisma migrate dev` writes a migration that drops them, and V2's own deploy would run it")
    elif schema:
        line = "make V1's model of the lines below, in the commit of that migration and before V1 is built"
        if rollout.plan.removed_columns:
            line += (f"; V2, which goes out when cleanup begins, keeps {', '.join(rollout.plan.removed_columns)} with @ignore, without "
                     "a migration (`schema_next`)")
    elif expand == "undone":
        line = ("keep V0's model in schema.prisma, or take V1's lines out of it again, and let nobody make a migration meanwhile: the "
                "added columns are kept for the next start, V0's model does not name them, and `prisma migrate dev` would write a "
                "migration that drops them")
    elif needed and rollout.ledger.plan() is None:
        line = "take V1's lines out of schema.prisma again: the table is as it was before the rollout"
    else:
        line = "" if needed else "nothing: the repository's migrations say what the table is"
    return [line] if line else []


def _known(rollout: Rollout, needed: list[Migration], schema: str | None) -> list[str]:
    found = []
    if any(migration.recorded is None for migration in needed):
        found.append(f"{history.RECORD} is not there or may not be read: `npx prisma migrate status` tells what is on record; a migration "
                     "and the one that undoes it need no folder if neither was ever marked or applied")
    if any(migration.direction == "back" for migration in needed):
        found.append("`prisma migrate resolve --rolled-back` takes failed migrations only; one that was marked as applied is undone by a "
                     "migration after it, never by deleting or changing its folder")
    if needed and rollout.plan.filled_columns:
        found.append("the sync triggers are in no migration: Prisma does not know triggers, so it neither drops nor misses them. Shadow "
                     f"and development databases have none, and {_pairs(rollout)} are not kept in step there")
    if needed:
        found.append("never point `prisma migrate dev`, `prisma db push` or TypeORM's `synchronize` at this database: they would drop "
                     f"{OWN_TABLES}* tables and columns that their models do not name; ledger_schema puts those tables elsewhere")
        found.append("the server prepares statements anew after every change of the table; where clients report 1615, raise "
                     "table_definition_cache, and restart pools that remember columns after pre_deploy and after cleanup (case C89)")
    contract = contracts.load(rollout.plan)
    if schema and needed and rollout.plan.filled_columns and not rollout.cleanup_began():
        found.append("where `prisma migrate deploy` applies it (staging, development), history is not filled: run there, once, "
                     + _fill(rollout))
    if schema and contract:
        stage = Stage.CLEANED if rollout.cleanup_began() else Stage.EXPANDED
        found += [f"field {field.name} is {field.prisma_type} in the model and its column is {'NULL' if field.nullable else 'NOT NULL'}: "
                  f"take the statement on {field.column} out of whatever `prisma migrate dev --create-only` proposes (F10)"
                  for field in prisma.told_otherwise(contract, stage)]
    return found


def _fill(rollout: Rollout) -> str:
    """The first pass as one statement, for a database without traffic."""
    decided = fixes.old_decides(rollout.pairs())
    keep = catalogue.self_updating_columns(rollout.session, rollout.schema, rollout.table)
    return f"UPDATE {quote(rollout.table)} SET {fixes.assignments(decided, keep)} WHERE {fixes.any_of(decided)};"


def _pairs(rollout: Rollout) -> str:
    pairs = [(pair.old, pair.new) for pair in rollout.plan.sync] + [(rename.old, rename.new) for rename in rollout.plan.dual_renames]
    return ", ".join(f"{old}/{new}" for old, new in pairs)


def _schema(rollout: Rollout, phases: dict[Phase, str]) -> str | None:
    """The model that goes with the table as it stands, or None: no contract, nothing done, or V0's own."""
    contract, in_place = contracts.load(rollout.plan), rollout.plan.plan.renames_in_place
    if contract is None or phases.get(Phase.PRE_DEPLOY) != "done":
        return None
    cleanup = phases.get(Phase.CLEANUP, "-")
    if cleanup in ("-", "undone"):
        return prisma.models(contract, in_place=in_place)["v1"]
    return prisma.models(contract)["v2"] if cleanup == "done" else prisma.between(contract, in_place=in_place)


def _next(rollout: Rollout, phases: dict[Phase, str], schema: str | None) -> str | None:
    contract = contracts.load(rollout.plan)
    if not schema or contract is None or phases.get(Phase.CLEANUP, "-") not in ("-", "undone"):
        return None
    return prisma.between(contract, in_place=rollout.plan.plan.renames_in_place)


def _diff(rollout: Rollout, phases: dict[Phase, str], schema: str | None) -> str | None:
    """V0 to V1, then V1 to V2 with what cleanup will drop, then what it has dropped; after cleanup's way back V2 to V1."""
    known, contract, in_place = rollout.ledger.plan(), contracts.load(rollout.plan), rollout.plan.plan.renames_in_place
    if not (schema and known and contract):
        return None
    cleanup = phases.get(Phase.CLEANUP, "-")
    if cleanup == "-":
        return changes(schema, before(contract, Ladder.from_json(known["ladder"]).baseline))
    if cleanup == "undone":
        return changes(schema, prisma.between(contract, in_place=in_place))  # V2 was built with that
    done = cleanup == "done"
    return changes(schema, prisma.between(contract, in_place=in_place) if done else prisma.models(contract, in_place=in_place)["v1"])
