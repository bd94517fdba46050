"""
Phase 5: both sides are written, whoever writes (ADR section 4). On the default path this is proof and the start of the soak.

With `sync_from = "shadow_write"` (the ADR's order) the triggers come here, and the rows that each generation wrote alone until
now are reconciled: the side that moved wins, and where both moved `reconcile.conflict` decides or refuses (F4). Where the plan
says how, the application then begins to write both sides itself, beside the triggers (:mod:`steps.own_shadow_write`). Then the
canary writes as each generation on the live table, in a transaction that is rolled back, and every row is held against its other side.
"""

from __future__ import annotations

from dataclasses import replace

from steps import canary, ddl, exact_look, fixes, own_shadow_write, passes, sync_install, verify
from steps.errors import Refused, Stopped, VerifyFailed
from steps.phase import Outcome, Phase
from steps.rollout import Rollout
from steps.step import Step
from steps.sync import SyncState

PHASE = Phase.SHADOW_WRITE
RECONCILE, PARITY = "reconcile", "parity"


def is_done(rollout: Rollout) -> bool:
    if rollout.ledger.phase_state(PHASE) != "done" or own_shadow_write.is_due(rollout):
        return False
    late = rollout.plan.plan.syncs_late and bool(rollout.plan.filled_columns) and not rollout.cleanup_began()
    return not late or rollout.sync_state() is SyncState.ON


def steps(rollout: Rollout) -> list[Step]:
    coming = [Step("sync triggers on", lambda: _sync_on(rollout)), Step(RECONCILE, lambda: _reconcile(rollout))]
    own = [Step("the application's own shadow write on", lambda: own_shadow_write.enable(rollout))]
    return [*(coming if rollout.plan.plan.syncs_late else []), *(own if own_shadow_write.concerns(rollout) else []),
            Step("canary on the live table", lambda: _canary(rollout)), Step("parity", lambda: _parity(rollout))]


def back(rollout: Rollout) -> list[Step]:
    """
    Ends the soak. The application's own shadow write stops first, while the triggers still stand.

    Triggers that came in this phase go, after a last reconcile; else they belong to pre_deploy and stay.
    """
    own = [Step("the application's own shadow write off", lambda: own_shadow_write.disable(rollout))]
    going = [Step(f"last {RECONCILE}", lambda: _reconcile(rollout)), Step("sync triggers off", lambda: _sync_off(rollout))]
    return [*(own if own_shadow_write.recorded(rollout) else []), *(going if rollout.plan.plan.syncs_late else []),
            Step("end the soak", lambda: _end_soak(rollout))]


def _sync_on(rollout: Rollout) -> Outcome:
    if not rollout.plan.filled_columns or rollout.sync_state() is SyncState.ON:
        return Outcome.ALREADY_DONE
    own_shadow_write.mark(rollout, "running")
    rollout.ledger.reset_pass(RECONCILE)
    ddl.carry_out(rollout, ddl.Group((), in_hold=True, sync="on", phase=PHASE), rollout.ladder(), "forward")
    return Outcome.DONE


def _sync_off(rollout: Rollout) -> Outcome:
    rollout.ledger.set_phase(PHASE, "going back")
    sync_install.take_off(rollout, PHASE)
    return Outcome.DONE


def _reconcile(rollout: Rollout) -> Outcome:
    """
    Raises:
        Stopped: rows that both generations wrote differ, and the plan does not say who wins; lists their keys.
    """
    if not rollout.plan.filled_columns or rollout.sync_state() is not SyncState.ON:
        return Outcome.ALREADY_DONE
    conflict = rollout.plan.reconcile.conflict
    walk = rollout.walk()
    walk = replace(walk, decided_by=fixes.reconcile(walk.pairs, conflict))
    rollout.ledger.reset_pass(RECONCILE)
    with rollout.timed(PHASE, RECONCILE) as facts:
        left = passes.fill(walk, rollout.ledger, RECONCILE, rollout.told)
        facts |= {"rows": rollout.ledger.passes()[RECONCILE]["rows_changed"], "conflicts": left.count, "keys": list(left.keys)}
    if left.count:
        raise Stopped(f"table {rollout.table}", f"{left.count} rows were written by both generations while nothing kept them in step "
                      f"(keys: {', '.join(left.keys)})", "decide them row by row, or --set reconcile.conflict=new or old; then run again")
    return Outcome.DONE


def _canary(rollout: Rollout) -> Outcome:
    if not rollout.plan.filled_columns:
        return Outcome.ALREADY_DONE
    own_shadow_write.needs_sync(rollout)
    rollout.check_owner()
    with rollout.timed(PHASE, "canary") as facts:
        try:
            facts["notes"] = canary.sing(rollout.session, rollout.table, rollout.schema, rollout.pairs())
        except Refused as could_not_look:
            if "canary" not in rollout.accepted:
                raise Stopped(could_not_look.subject, could_not_look.reason, could_not_look.remedy) from None
            facts["notes"] = f"accepted: {could_not_look.reason}"
    return Outcome.DONE


def _parity(rollout: Rollout) -> Outcome:
    found: dict[str, object] = {}
    if rollout.plan.filled_columns:
        with rollout.timed(PHASE, "parity") as facts:
            left = exact_look.looked(rollout.walk(), rollout.ledger, PARITY, rollout.told)
            facts |= {"rows": left.rows_examined, "differ": left.count, "keys": list(left.keys)}
        found = {"rows examined": left.rows_examined, "rows that differ": left.count}
        wrong = [f"{left.count} rows disagree (keys: {', '.join(left.keys)})"] if left.count else []
        if rollout.plan.plan.syncs_late:
            wrong = verify.look(rollout).wrong  # phase 4 could not be exact without sync (F4); now it is
        if wrong:
            raise VerifyFailed(f"table {rollout.table}", "; ".join(wrong), f"on_fail = {rollout.plan.on_fail}")
    own_shadow_write.mark(rollout, "done", found)
    return Outcome.DONE


def _end_soak(rollout: Rollout) -> Outcome:
    rollout.ledger.set_phase(PHASE, "undone")
    return Outcome.DONE
