"""
Phase 5: both sides are written, whoever writes (ADR section 4). On the default path this is proof and the start of the soak.

The canary writes as each generation on the live table, in a transaction that is rolled back; then every row is held against
its other side once more. The soak that follows lasts until cleanup is asked for.
"""

from __future__ import annotations

from steps import canary, passes, waits
from steps.errors import Refused, Stopped, VerifyFailed
from steps.phase import Outcome, Phase
from steps.rollout import Rollout
from steps.step import Step
from steps.sync import SyncState

PHASE = Phase.SHADOW_WRITE


def is_done(rollout: Rollout) -> bool:
    return rollout.ledger.phase_state(Phase.SHADOW_WRITE) == "done"


def steps(rollout: Rollout) -> list[Step]:
    return [Step("canary on the live table", lambda: _canary(rollout)), Step("parity", lambda: _parity(rollout))]


def back(rollout: Rollout) -> list[Step]:
    """Ends the soak; the triggers belong to pre_deploy and stay (design section 2)."""
    return [Step("end the soak", lambda: _end_soak(rollout))]


def _canary(rollout: Rollout) -> Outcome:
    if not rollout.plan.filled_columns:
        return Outcome.ALREADY_DONE
    state = rollout.sync_state()
    if state is not SyncState.ON:
        raise Stopped(f"table {rollout.table}", f"sync triggers: {state.value} (case C74)", "run the same command again: phase "
                      "pre_deploy puts them back and looks for rows that differ")
    rollout.check_owner()
    with rollout.timed(Phase.SHADOW_WRITE, "canary") as facts:
        try:
            facts["notes"] = waits.retry(lambda: canary.sing(rollout.session, rollout.table, rollout.schema, rollout.pairs()),
                                         tries=5, first_wait_s=0.2, longest_wait_s=2)
        except Refused as could_not_look:
            if "canary" not in rollout.accepted:
                raise Stopped(could_not_look.subject, could_not_look.reason, could_not_look.remedy) from None
            facts["notes"] = f"accepted: {could_not_look.reason}"
    return Outcome.DONE


def _parity(rollout: Rollout) -> Outcome:
    found: dict[str, object] = {}
    if rollout.plan.filled_columns:
        with rollout.timed(Phase.SHADOW_WRITE, "parity") as facts:
            left = passes.disagreements(rollout.walk())
            facts |= {"rows": left.rows_examined, "differ": left.count, "keys": list(left.keys)}
        found = {"rows examined": left.rows_examined, "rows that differ": left.count}
        if left.count:
            raise VerifyFailed(f"table {rollout.table}", f"{left.count} rows disagree (keys: {', '.join(left.keys)})",
                               f"on_fail = {rollout.plan.on_fail}")
    rollout.ledger.set_phase(Phase.SHADOW_WRITE, "done", found)
    return Outcome.DONE


def _end_soak(rollout: Rollout) -> Outcome:
    rollout.ledger.set_phase(Phase.SHADOW_WRITE, "undone")
    return Outcome.DONE
