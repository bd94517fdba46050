"""
The way back of cleanup, from every one of its points, while V2 is running (F13).

Columns back with their recorded definitions and indexes; archived values where no mapping decides; triggers with their canary;
a pass in which the new side decides, everywhere; parity; and only then V1 again.
"""

from __future__ import annotations

from dataclasses import replace

from steps import archive, catalogue, ddl, deploy, exact_look, fixes, passes
from steps.cleanup import PHASE, stage_of, tombstones
from steps.errors import Refused, RollbackFailed, WaitingForPerson
from steps.phase import Outcome
from steps.rollout import Rollout
from steps.step import Step
from steps.sync import SyncState

NEW_SIDE_PASS = "new side"  # noqa: S105  # a pass over rows


def back(rollout: Rollout) -> list[Step]:
    return [Step("columns back", lambda: _unbury(rollout)),
            Step("archived values where no mapping decides", lambda: _restore(rollout)),
            Step("sync triggers on", lambda: _sync_on(rollout)),
            Step("the new side decides", lambda: _new_side_decides(rollout)),
            Step("verify", lambda: _parity(rollout)),
            Step("put V1 out again", lambda: _v1_out(rollout))]


def prepared_to_go_back(rollout: Rollout) -> None:
    """
    Raises:
        WaitingForPerson: nobody can put V1 out again.
        Refused: the columns were dropped and the archive is gone.
    """
    by_itself = deploy.comes_back_by_itself(rollout, PHASE, rollout.plan.cleanup.rollback_deploy, "v1")
    if not by_itself and not rollout.person.deployed_by and not rollout.person.confirm:
        raise WaitingForPerson("cleanup", "a person has to put V1 out again at the end of the way back",
                               f"add --deployed-by NAME once that is arranged, or --set cleanup.rollback_deploy='…' ({rollout.plan.id})")
    dropped = rollout.position() > tombstones(rollout)
    if dropped and not archive.is_complete(rollout):
        raise Refused("rollback of cleanup", "the columns were dropped and their archive is gone",
                      "restore the archive from a backup first; nothing was undone")


def _unbury(rollout: Rollout) -> Outcome:
    ladder, here = rollout.ladder(), rollout.position()
    rollout.ledger.set_phase(PHASE, "going back", stage_of(rollout))
    rollout.ledger.reset_pass(NEW_SIDE_PASS)
    rollout.ledger.end_plan(ended=False)
    if here <= ladder.expanded:
        return Outcome.ALREADY_DONE
    rows = catalogue.estimated_rows(rollout.session, rollout.schema, rollout.table)
    for group in ddl.grouped(ddl.moves(ladder, here, ladder.expanded, rows, rollout.slowness), rollout, rows, with_sync=False):
        ddl.carry_out(rollout, replace(group, phase=PHASE), ladder, "back")
    return Outcome.DONE


def _restore(rollout: Rollout) -> Outcome:
    if not archive.is_complete(rollout) or rollout.sync_state() is SyncState.ON:
        return Outcome.ALREADY_DONE
    archive.restore(rollout)
    return Outcome.DONE


def _sync_on(rollout: Rollout) -> Outcome:
    if not rollout.plan.filled_columns or rollout.sync_state() is SyncState.ON:
        return Outcome.ALREADY_DONE
    ddl.carry_out(rollout, ddl.Group((), in_hold=True, sync="on", phase=PHASE), rollout.ladder(), "back")
    return Outcome.DONE


def _new_side_decides(rollout: Rollout) -> Outcome:
    if not rollout.plan.filled_columns or (rollout.ledger.passes().get(NEW_SIDE_PASS) or {}).get("finished_at"):
        return Outcome.ALREADY_DONE
    walk = rollout.walk()
    walk = replace(walk, decided_by=fixes.new_decides(walk.pairs))
    with rollout.timed(PHASE, "the new side decides", direction="back") as facts:
        left = passes.fill(walk, rollout.ledger, NEW_SIDE_PASS, rollout.told)
        facts |= {"rows": rollout.ledger.passes()[NEW_SIDE_PASS]["rows_changed"], "left": left.count, "keys": list(left.keys)}
    return Outcome.DONE


def _parity(rollout: Rollout) -> Outcome:
    if not rollout.plan.filled_columns:
        return Outcome.ALREADY_DONE
    with rollout.timed(PHASE, "parity", direction="back") as facts:
        left = exact_look.looked(rollout.walk(), rollout.ledger, "parity after cleanup", rollout.told)
        facts |= {"rows": left.rows_examined, "differ": left.count, "keys": list(left.keys)}
    if left.count:
        raise RollbackFailed(f"table {rollout.table}", f"{left.count} rows hold values that the old application does not know "
                             f"(keys: {', '.join(left.keys)})", "columns and triggers are back and V2 goes on; correct these rows, then "
                             "run the same command again before any V1 or V0 starts")
    return Outcome.DONE


def _v1_out(rollout: Rollout) -> Outcome:
    deploy.take_back(rollout, PHASE, rollout.plan.cleanup.rollback_deploy, "v1", "V1 is out again, beside V2 or instead of it",
                     f"rollout rollback {rollout.plan.called} cleanup --deployed-by NAME")
    rollout.ledger.reset_pass(archive.PASS)  # the archive stays, but the next cleanup makes its own
    rollout.ledger.set_phase(PHASE, "undone")
    return Outcome.DONE
