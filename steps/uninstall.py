"""
Taking the tool's own traces away: ledger rows, archive, empty ledger tables. Refuses while any of it is needed.

Needed is: everything while a phase stands (but a finished cleanup), the record of the baseline while added columns stay on the
table, and the archive until `cleanup.archive_keep_s` after the drop, since a way back needs it.
"""

from __future__ import annotations

from steps import archive, catalogue, clocks, scratch, sync
from steps.checks.grants import grants_of, on_schema
from steps.errors import Refused
from steps.ledger import TABLES
from steps.mysql import VALUE, quote
from steps.phase import STANDS, Phase
from steps.rollout import Rollout
from steps.sync import SyncState

RUN_TABLE = "_rollout_run"


def refuse_what_is_needed(rollout: Rollout) -> None:
    """
    Raises:
        Refused: names what still needs the ledger, triggers, tombstones or archive, or the right that is missing.
    """
    _refuse_without_rights(rollout)
    phases = rollout.ledger.phases()
    ended = phases.get(Phase.CLEANUP, {}).get("state") == "done"
    standing = [phase.value for phase, row in phases.items() if row["state"] in STANDS]
    if standing and not ended:
        raise Refused(f"plan {rollout.plan.id}", f"still stands: {', '.join(standing)}",
                      "finish it with `rollout run --through cleanup` (its archive is then kept for cleanup.archive_keep_s, or until "
                      "--accept purge-archive), or take it back with `rollout rollback --to v0 --drop-added`")
    there = {trigger.name for trigger in catalogue.triggers(rollout.session, rollout.schema, rollout.table)}
    ours = sync.trigger_names(rollout.plan.id)
    if there & ours:
        raise Refused(f"table {rollout.table}", f"has our triggers ({SyncState.ON.value}): {', '.join(sorted(there & ours))}",
                      "`rollout rollback --to v0` takes them off")
    if not ended and rollout.ledger.plan() and rollout.position() > 0 and "forget-added" not in rollout.accepted:
        raise Refused(f"table {rollout.table}", "still has added columns, and the ledger alone knows what it was before",
                      "`rollout rollback --to v0 --drop-added`, or --accept forget-added to keep them for good")
    if archive.stands(rollout) and "purge-archive" not in rollout.accepted and not _archive_is_old(rollout):
        raise Refused(f"archive {archive.plain_name(rollout)}", "is what a way back from cleanup needs, and it is younger than "
                      f"cleanup.archive_keep_s = {rollout.plan.cleanup.archive_keep_s} s", "wait, or --accept purge-archive")


def _refuse_without_rights(rollout: Rollout) -> None:
    """
    Rows first and tables last would end half-way where the second right is missing.

    Raises:
        Refused: names the right.
    """
    home = rollout.ledger.home
    if not catalogue.exists(rollout.session, home, RUN_TABLE):
        return
    lacking = grants_of(rollout.session).lacks(("DELETE", "DROP"), home, RUN_TABLE)
    if lacking:
        raise Refused("uninstall", f"the account lacks {', '.join(lacking)} on ledger {home}",
                      f"GRANT {', '.join(lacking)} ON {on_schema(rollout.session, home)} to it; nothing was removed")


def _archive_is_old(rollout: Rollout) -> bool:
    """By both clocks, since the drop."""
    ended = rollout.session.value(f"SELECT ended_at FROM {rollout.ledger.table('plan')} WHERE table_schema = {VALUE} AND table_name = "
                                  f"{VALUE} AND plan_id = {VALUE}", *rollout.ledger.key)
    if ended is None:
        return False
    cleanup = rollout.ledger.phases().get(Phase.CLEANUP, {}).get("detail") or {}
    due = clocks.recorded(f"{ended.isoformat()}Z", cleanup.get("by_tool_clock")).plus(rollout.plan.cleanup.archive_keep_s)
    return due.has_come(clocks.now(rollout.session))


def uninstall(rollout: Rollout) -> list[str]:
    """
    Take the traces away and say what went. Safe to repeat. Nothing on the plan's table is touched.

    Ledger tables go with the last plan; while other plans are on record only this plan's rows go.
    """
    gone = []
    left = scratch.remove_leftover(rollout.session, rollout.target, rollout.plan)
    if left:
        gone.append(f"schema {left}, left by a killed rehearsal")
    if archive.stands(rollout):
        archive.remove(rollout)
        gone.append(f"archive {archive.plain_name(rollout)}")
    if not catalogue.exists(rollout.session, rollout.ledger.home, RUN_TABLE):
        return gone
    rollout.ledger.create()  # an older tool's ledger has fewer tables
    rollout.ledger.forget_plan()
    for table in ("event", "run"):
        rollout.session.run(f"DELETE FROM {rollout.ledger.table(table)} WHERE table_schema = {VALUE} AND table_name = {VALUE} "
                            f"AND plan_id = {VALUE}", *rollout.ledger.key)
    gone.append(f"ledger rows of plan {rollout.plan.id}")
    if not rollout.session.value(f"SELECT COUNT(*) FROM {rollout.ledger.table('run')}") and not _owned_by_anybody(rollout):
        for table in TABLES:
            rollout.session.run(f"DROP TABLE IF EXISTS {quote(rollout.ledger.home)}.{quote('_rollout_' + table)}")
        gone.append("ledger tables")
    return gone


def _owned_by_anybody(rollout: Rollout) -> bool:
    return bool(rollout.session.value(f"SELECT COUNT(*) FROM {rollout.ledger.table('owner')}"))
