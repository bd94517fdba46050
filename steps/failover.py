"""
Another server answers than the one that earlier runs of this plan worked on: a failover, or a restored copy (case C84).

Its last transactions may be missing. Schema, triggers, rows and ledger went back together, since all of them replicate in one order;
what happened outside of the server did not. So only a deploy can have been forgotten: then the new generation lives, and the ledger
does not know. Without it being said that none does, nothing is done that would harm it.
"""

from __future__ import annotations

from steps import deploy, fleet, pre_deploy
from steps.acknowledged import TOLD
from steps.errors import WaitingForPerson
from steps.ledger import Event
from steps.mysql import VALUE
from steps.phase import Phase
from steps.rollout import Rollout

ACCEPT = "failover"
STEP = "server"


def known_server(rollout: Rollout) -> str | None:
    """The `server_uuid` that the latest run on record worked on; None when none is on record."""
    ledger = rollout.ledger
    rows = ledger.read(f"SELECT detail ->> '$.server_uuid' FROM {ledger.table('event')} WHERE table_schema = {VALUE} AND table_name = "
                       f"{VALUE} AND plan_id = {VALUE} AND step = {VALUE} AND outcome = {VALUE} ORDER BY id DESC LIMIT 1",
                       *ledger.key, STEP, TOLD)
    return str(rows[0][0]) if rows and rows[0][0] else None


def is_another_server(rollout: Rollout) -> bool:
    known = known_server(rollout)
    return known is not None and known != rollout.session.server_uuid


def refuse_forgotten(rollout: Rollout, *, back: bool) -> None:
    """
    Before a run that would harm instances of the new generation which the ledger knows nothing of. Reads only; safe to repeat.

    Forward that is a phase 1 that did not end: its first pass lets the old side decide everywhere. *back* it is the way to V0.

    Raises:
        WaitingForPerson: nobody has said that no such instance lives, with `--accept failover`.
    """
    if rollout.ledger.plan() is None or not is_another_server(rollout) or ACCEPT in rollout.accepted:
        return
    if deploy.v1_may_live(rollout) or rollout.cleanup_began():
        return  # on record, so it is reckoned with
    if not back and pre_deploy.is_done(rollout):
        return  # the triggers stand, and nobody decides any more
    raise WaitingForPerson(
        f"server {rollout.target.where}", "is another one than the run before worked on (a failover, or a restored copy), and its last "
        "transactions may be missing: where the new generation went out meanwhile, this ledger does not know of it"
        + _seen(rollout), f"make sure that no instance of the new generation lives, then add --accept {ACCEPT}; nothing was touched")


def _seen(rollout: Rollout) -> str:
    plan = rollout.plan.fleet
    if plan is None:
        return ""
    alive = fleet.look(rollout.session, rollout.schema, plan).alive
    told = [f"{name}: {fleet.told(found)}" for name, found in alive.items() if found and name != "v0"]
    return f"; connected now: {'; '.join(told)}" if told else ""


def on_record(rollout: Rollout) -> None:
    """Write down once which server the runs of this plan work on. Once the run owns the table."""
    if known_server(rollout) == rollout.session.server_uuid:
        return
    if is_another_server(rollout):
        rollout.say("another server than before answers: a failover, or a restored copy; everything is looked at anew")
    rollout.ledger.record(Event(Phase.PRE_DEPLOY.value, STEP, TOLD, detail={"server_uuid": rollout.session.server_uuid}))
