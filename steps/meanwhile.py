"""What became of the rollout while a run of it was suspended: another one may have taken back what that run stood on."""

from __future__ import annotations

from steps.approvals import STEP, WAITING
from steps.errors import Refused
from steps.mysql import VALUE
from steps.phase import Phase
from steps.rollout import Rollout

CONFIRMATION = "confirmation"


def refuse_taken_back(rollout: Rollout, flow_run: str) -> None:
    """
    Whether *flow_run* may go on that was suspended before. Three small reads; takes no lock.

    Raises:
        Refused: since its last life another run took something back. Nothing was done.
    """
    ledger = rollout.ledger
    mine = ledger.read(f"SELECT run_id FROM {ledger.table('run')} WHERE table_schema = {VALUE} AND table_name = {VALUE} AND plan_id = "
                       f"{VALUE} AND options->>'$.flow_run' = {VALUE} ORDER BY started_at DESC LIMIT 1", *ledger.key, flow_run)
    if not mine:
        return
    run_id = str(mine[0][0])  # answers are kept there, too, whenever they come
    last = ledger.read(f"SELECT MAX(id) FROM {ledger.table('event')} WHERE run_id = {VALUE} AND (step NOT IN ({VALUE}, {VALUE}) OR outcome "
                       f"= {VALUE})", run_id, STEP, CONFIRMATION, WAITING)
    back = ledger.read(
        f"SELECT e.phase, r.actor, r.reason, e.at FROM {ledger.table('event')} e JOIN {ledger.table('run')} r USING (run_id) WHERE "
        f"e.table_schema = {VALUE} AND e.table_name = {VALUE} AND e.plan_id = {VALUE} AND e.direction = 'back' AND e.run_id <> {VALUE} "
        f"AND e.id > {VALUE} ORDER BY e.id DESC LIMIT 1", *ledger.key, run_id, int(last[0][0] or 0) if last else 0)
    if back:
        phase, actor, reason, at = back[0]
        raise Refused("this run", f"was away while {actor} took {Phase(phase).value} back at {at:%Y-%m-%d %H:%M:%S} UTC: {reason}",
                      "begin a new run if it is to go forward again; nothing was done")
