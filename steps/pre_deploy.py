"""
Phase 1: the table grows so that both generations can live on it, and both sides are kept in step from the first second.

Ladder up to the first pass, sync triggers with their canary, first pass (the old side decides, only V0 is alive), then the
indexes on filled columns (F15), then the leaves that are due (F9). Its way back takes the triggers off, and with
`--drop-added` walks the ladder down to the baseline.
"""

from __future__ import annotations

from steps import catalogue, ddl, deploy, exact_look, fk_indexes, fleet, handover_swap, leaves, own_shadow_write, passes, sync_install
from steps.errors import Stopped
from steps.phase import Outcome, Phase
from steps.rollout import Rollout
from steps.step import Step
from steps.sync import SyncState

FIRST_PASS = "first"  # noqa: S105  # a pass over rows

PHASE = Phase.PRE_DEPLOY


def is_done(rollout: Rollout) -> bool:
    """Whether catalogue and ledger agree that nothing is left to do; sends no DDL and takes no lock."""
    known = rollout.ledger.plan()
    return bool(known and rollout.ledger.phase_state(PHASE) == "done" and rollout.position() >= rollout.ladder().expanded
                and not _needs_sync(rollout) and not leaves.due(rollout))


def _needs_sync(rollout: Rollout) -> bool:
    """Whether the triggers should stand and do not: never before phase 5 with `syncs_late`, nor once cleanup has begun."""
    if not rollout.plan.filled_columns or rollout.plan.plan.syncs_late or rollout.cleanup_began():
        return False
    return rollout.sync_state() is not SyncState.ON


def broken_sync(rollout: Rollout) -> str | None:
    """What is wrong with the triggers of a finished phase 1, or None."""
    if rollout.ledger.phase_state(PHASE) != "done" or not _needs_sync(rollout):
        return None
    return rollout.sync_state().value


def steps(rollout: Rollout) -> list[Step]:
    """The steps from where the table stands now."""
    return [Step("rehearse on a clone", lambda: _begin(rollout)),
            Step("expand", lambda: _expand(rollout)),
            Step("first pass", lambda: _first_pass(rollout)),
            Step("index filled columns", lambda: _index(rollout)),
            Step("leaves", lambda: leaves.add(rollout)),
            Step("settle", lambda: _settle(rollout))]


def back(rollout: Rollout, *, drop_added: bool) -> list[Step]:
    """The way back; see design section 2 for what it leaves."""
    found = [Step("sync triggers off", lambda: _sync_off(rollout))]
    if rollout.plan.plan.renames_in_place:
        found.append(Step("reverse the renames", lambda: _reverse_renames(rollout)))
    if drop_added:
        found += [Step("leaves off", lambda: leaves.remove(rollout)),
                  Step("descend to the baseline", lambda: _descend(rollout)),
                  Step("forget the plan", lambda: _forget(rollout))]
    return found


def _begin(rollout: Rollout) -> Outcome:
    """Prove the whole ladder up and down before the first statement, and freeze it in the ledger at the first start."""
    rehearsed = rollout.rehearsed()
    if rollout.ledger.plan() is None:
        baseline_sql = rehearsed.baseline_sql
        rollout.ledger.remember_plan(rollout.plan.identity_hash(), rollout.plan.identity(), rehearsed.ladder.to_json(), baseline_sql)
    rollout.ledger.set_phase(PHASE, "running")
    return Outcome.DONE


def _expand(rollout: Rollout) -> Outcome:
    handover_swap.finish(rollout)
    ladder, rows = rollout.ladder(), catalogue.estimated_rows(rollout.session, rollout.schema, rollout.table)
    here = rollout.position()
    needs_sync = _needs_sync(rollout)
    if needs_sync:
        # Without triggers somebody may have moved on (F14). Before the triggers, so that a kill in between leaves too
        # much to do rather than too little.
        _nothing_is_proven(rollout)
    wanted = ddl.moves(ladder, here, max(here, ladder.before_first_pass), rows, rollout.slowness)
    groups = ddl.grouped(wanted, rollout, rows, with_sync=needs_sync)
    for group in groups:
        ddl.carry_out(rollout, group, ladder, "forward")
    return Outcome.DONE if groups else Outcome.ALREADY_DONE


def _nothing_is_proven(rollout: Rollout) -> None:
    """The first pass counts as not made, and so does every later proof, when sync was off."""
    rollout.ledger.reset_pass(FIRST_PASS)
    for phase in (Phase.BACKFILL, Phase.VERIFY, Phase.SHADOW_WRITE):
        if rollout.ledger.phase_state(phase) != "-":
            own = own_shadow_write.recorded(rollout) if phase is Phase.SHADOW_WRITE else {}
            rollout.ledger.set_phase(phase, "running" if own else "undone", {"why": "sync triggers were missing", **own})


def _first_pass(rollout: Rollout) -> Outcome:
    """The old side decides, everywhere: only V0 is alive. With V1 alive nobody may decide, and differences stop the run."""
    standing = rollout.ledger.passes().get(FIRST_PASS)
    late = rollout.plan.plan.fills_late and standing is None  # one that was begun on a way back is due all the same (F14)
    if not rollout.plan.filled_columns or late or rollout.cleanup_began() or (standing and standing["finished_at"]):
        return Outcome.ALREADY_DONE
    walk = rollout.walk()
    if deploy.v1_may_live(rollout):
        left = exact_look.looked(walk, rollout.ledger, "first look", rollout.told)
        if left.count:
            raise Stopped(f"table {rollout.table}", f"was without sync triggers while both generations were alive, and {left.count} "
                          f"rows differ (keys: {', '.join(left.keys)})", "which side is right cannot be known; correct those rows, or "
                          f"`rollout rollback {rollout.plan.called} --to v0` and run again to let the old side decide")
        rollout.ledger.start_pass(FIRST_PASS)
        rollout.ledger.end_sweep(FIRST_PASS, finished=True)
        return Outcome.DONE
    with rollout.timed(PHASE, "first pass") as facts:
        left = passes.fill(walk, rollout.ledger, FIRST_PASS, rollout.told)
        standing = rollout.ledger.passes()[FIRST_PASS]
        facts |= {"rows": standing["rows_changed"], "examined": standing["rows_examined"], "left": left.count}
    if left.count:
        raise Stopped(f"table {rollout.table}", f"{left.count} rows hold values that the plan's maps do not know "
                      f"({', '.join(left.by_pair)}; keys: {', '.join(left.keys)})", "map the values or correct the rows, then run again")
    return Outcome.DONE


def _index(rollout: Rollout) -> Outcome:
    ladder, rows = rollout.ladder(), catalogue.estimated_rows(rollout.session, rollout.schema, rollout.table)
    here = rollout.position()
    groups = ddl.grouped(ddl.moves(ladder, here, max(here, ladder.expanded), rows, rollout.slowness), rollout, rows, with_sync=False)
    for group in groups:
        ddl.carry_out(rollout, group, ladder, "forward")
    return Outcome.DONE if groups else Outcome.ALREADY_DONE


def _settle(rollout: Rollout) -> Outcome:
    rollout.ledger.set_phase(PHASE, "done", {"stairs": rollout.ladder().expanded})
    return Outcome.DONE


def _sync_off(rollout: Rollout) -> Outcome:
    newer = ("v1", "v2") if rollout.plan.fleet and rollout.plan.fleet.v2 else ("v1",)
    fleet.refuse_alive(rollout, PHASE, newer, "the sync triggers stand")
    rollout.ledger.set_phase(PHASE, "going back")
    rollout.ledger.reset_pass(FIRST_PASS)
    if rollout.plan.filled_columns:
        rollout.ledger.start_pass(FIRST_PASS)  # V0 moves on alone from here: the old side decides everywhere next time (F14)
    sync_install.take_off(rollout)
    handover_swap.finish(rollout)
    if not rollout.plan.plan.renames_in_place:
        _undone(rollout)
    return Outcome.DONE


def _undone(rollout: Rollout) -> None:
    """Only once nothing that V0 needs is missing any more: what is recorded as undone, no later rollback looks at."""
    rollout.ledger.set_phase(PHASE, "undone", {"added columns": "kept"})


def _reverse_renames(rollout: Rollout) -> Outcome:
    """
    Both renames back, completedAt and errorMessage alike (F3): V0 names the old columns and cannot live without them.

    Indexes on filled columns, which stand above them where the first pass came in phase 1, go along; the next run builds them anew.
    """
    ladder, rows = rollout.ladder(), catalogue.estimated_rows(rollout.session, rollout.schema, rollout.table)
    names = {step.name for step in rollout.plan.pre_deploy.step if step.rename}
    here, to = rollout.position(), min((at for at, stair in enumerate(ladder.stairs) if stair.name in names), default=ladder.expanded)
    for group in ddl.grouped(ddl.moves(ladder, here, min(here, to), rows, rollout.slowness), rollout, rows, with_sync=False):
        ddl.carry_out(rollout, group, ladder, "back")
    _undone(rollout)
    return Outcome.DONE if here > to else Outcome.ALREADY_DONE


def _descend(rollout: Rollout) -> Outcome:
    handover_swap.finish(rollout)
    ladder, rows = rollout.ladder(), catalogue.estimated_rows(rollout.session, rollout.schema, rollout.table)
    fk_indexes.put_back(rollout, ladder)
    for group in ddl.grouped(ddl.moves(ladder, rollout.position(), 0, rows, rollout.slowness), rollout, rows, with_sync=False):
        ddl.carry_out(rollout, group, ladder, "back")
    return Outcome.DONE


def _forget(rollout: Rollout) -> Outcome:
    """Back at the baseline nothing of the plan is left, so its text may change before the next start. The audit trail stays."""
    rollout.ledger.forget_plan()
    return Outcome.DONE
