"""Putting the sync triggers on the live table and taking them off, always inside a hold (design section 2; cases C43, C53, C73)."""

from __future__ import annotations

from steps import canary, catalogue, sync
from steps.errors import CanaryFailed, Refused, StatementFailed, Stopped
from steps.hold import hold
from steps.mysql import Session, quote
from steps.phase import Phase
from steps.rollout import Rollout

PHASE = Phase.PRE_DEPLOY


def put_on(rollout: Rollout, session: Session) -> None:
    """Create the triggers and let the canary prove them, before any client can meet them; on failure they are gone again."""
    pairs = sync.pairs(session, rollout.plan, rollout.schema)
    wanted = sync.sync_triggers(rollout.plan.id, pairs)
    there = {trigger.name for trigger in catalogue.triggers(session, rollout.schema, rollout.table)}
    definer = "@".join(quote(part) for part in str(session.value("SELECT CURRENT_USER()")).rsplit("@", 1))
    for trigger in reversed(wanted):
        if trigger.name in there:
            session.verbatim(trigger.drop())
    for trigger in wanted:
        statement = trigger.create(rollout.table, definer, sync.last_foreign_trigger(session, rollout.schema, rollout.table, trigger))
        with rollout.timed(PHASE, f"trigger {trigger.name}", statement=statement):
            session.verbatim(statement)
    try:
        with rollout.timed(PHASE, "canary") as facts:
            facts["notes"] = canary.sing(session, rollout.table, rollout.schema, pairs)
    except Refused as could_not_look:
        if "canary" not in rollout.accepted:
            _take_off(rollout, session, wanted)
            raise Stopped(could_not_look.subject, could_not_look.reason, could_not_look.remedy) from None
    except (CanaryFailed, StatementFailed):
        _take_off(rollout, session, wanted)
        raise


def _take_off(rollout: Rollout, session: Session, wanted: tuple[sync.SyncTrigger, ...]) -> None:
    """Drop the triggers, INSERT first (case C53)."""
    there = {trigger.name for trigger in catalogue.triggers(session, rollout.schema, rollout.table)}
    for trigger in reversed(wanted):
        if trigger.name in there:
            rollout.check_owner()
            with rollout.timed(PHASE, f"trigger {trigger.name}", direction="back", statement=trigger.drop()):
                session.verbatim(trigger.drop())


def take_off(rollout: Rollout) -> None:
    """Take both triggers off in one hold. Safe to repeat; nothing happens where none stands."""
    names = [sync.SyncTrigger(sync.trigger_name(rollout.plan.id, event), event, "") for event in ("UPDATE", "INSERT")]
    there = {trigger.name for trigger in catalogue.triggers(rollout.session, rollout.schema, rollout.table)}
    if not there & {trigger.name for trigger in names}:
        return
    tables, related = rollout.tables_to_lock()
    with rollout.recorded_later(), \
            hold(rollout.target, rollout.watchdog, rollout.limits, tables, related, rollout.check_owner) as (session, _waited_s):
        session.run(f"USE {quote(rollout.schema)}")
        with rollout.watchdog.while_waiting(session.connection_id, rollout.limits.patience_s):
            _take_off(rollout, session, tuple(names))
