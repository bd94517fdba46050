"""What a rollout would do from where the table stands, as one document: statements with algorithm, lock and estimate, both ways."""

from __future__ import annotations

from typing import Any

from steps import catalogue, ddl, fixes, forecast, handover
from steps.agreement import Pair
from steps.ddl import Group
from steps.mysql import quote
from steps.rehearsal import DOWN, UP
from steps.rollout import Rollout

LOCKS = {"INSTANT": "metadata lock only", "INPLACE": "none while building; metadata lock at both ends", "COPY": "writes blocked",
         handover.ALGORITHM: handover.LOCK}
MEETS = forecast.LOCKS
REBUILDS = {True: "yes", False: "no", None: "unknown"}


def document(desk: Rollout) -> dict[str, Any]:
    """What `rollout plan` tells; field names are stable. Rehearses; nothing else runs. Raises what the rehearsal raises."""
    rehearsed = desk.rehearsed()
    ladder, position = desk.ladder(), desk.position()
    rows = catalogue.estimated_rows(desk.session, desk.schema, desk.table)
    before = ddl.grouped(ddl.moves(ladder, position, max(position, ladder.before_first_pass), rows, desk.slowness), desk, rows,
                         with_sync=desk.sync_state().value != "on" and bool(rehearsed.pairs))
    indexed = max(position, ladder.before_first_pass)
    after = ddl.grouped(ddl.moves(ladder, indexed, max(indexed, ladder.expanded), rows, desk.slowness), desk, rows, with_sync=False)
    cleanup = ddl.grouped(ddl.moves(ladder, max(position, ladder.expanded), ladder.top, rows, desk.slowness), desk, rows, with_sync=False)
    definer = "CURRENT_USER"
    first_pass = forecast.of_first_pass(rehearsed, rows)
    return {"table": f"{desk.schema}.{desk.table}", "stair": position, "stairs": ladder.top,
            "pre_deploy_stairs": ladder.expanded, "rows_estimated": rows,
            "slowness": round(desk.slowness, 2), "groups": [_group(desk, group, rows) for group in (*before, *after)],
            "cleanup": [_group(desk, group, rows) for group in cleanup],
            "triggers": [trigger.create(desk.table, definer, None) for trigger in rehearsed.triggers] if rehearsed.pairs else [],
            "first_pass": _pass_sql(desk, rehearsed.pairs),
            "first_pass_estimate": first_pass and {"estimate_ms": round(first_pass.ms, 1), "basis": first_pass.basis},
            "verify": dict(desk.plan.queries), "deploy": desk.plan.deploy.model_dump(mode="json"),
            "shadow_write": desk.plan.shadow_write.model_dump(mode="json")}


def every_statement(planned: dict[str, Any]) -> list[str]:
    """All SQL of a document, in the order in which it would run."""
    found = [*_statements(planned["groups"]), *planned["triggers"], planned["first_pass"] or "", *planned["verify"].values(),
             *_statements(planned["cleanup"])]
    return [statement.strip() for statement in found if statement]


def met(step: dict[str, Any]) -> str:
    """What others meet, in the words of `rollout rehearse`; what it did not learn is told by the algorithm."""
    return str(step["lock"] if step["locks"] is None or step["algorithm"] == handover.ALGORITHM else MEETS[step["locks"]])


def algorithm(way: dict[str, Any]) -> str:
    """The algorithm of one way, and that its keys are not checked where they are not."""
    return str(way["algorithm"]) + ("" if way["foreign_key_checks"] else ", foreign_key_checks=0")


def _group(desk: Rollout, group: Group, rows: int) -> dict[str, Any]:
    return {"name": group.name, "in_one_hold": group.in_hold, "sync": group.sync == "on",
            "steps": [{"step": move.stair.name, "lock": LOCKS[move.algorithm], **forecast.told(desk, move.way, rows, move.stair.name, UP),
                       "sql": [*move.way.before, move.statement], "way_back": move.stair.down.statement,
                       "back": forecast.told(desk, move.stair.down, rows, move.stair.name, DOWN)} for move in group.moves]}


def _pass_sql(desk: Rollout, pairs: tuple[Pair, ...]) -> str | None:
    if not pairs:
        return None
    keep = catalogue.self_updating_columns(desk.session, desk.schema, desk.table)
    sets = fixes.assignments(fixes.old_decides(pairs), keep)
    return f"UPDATE {quote(desk.table)} SET {sets} WHERE <primary keys of the chunk's rows that disagree>"


def _statements(groups: list[dict[str, Any]]) -> list[str]:
    return [line for group in groups for step in group["steps"] for line in step["sql"]]
