"""Putting the sync triggers on the live table and taking them off, always inside a hold (design section 2; cases C43, C53, C73)."""

from __future__ import annotations

from steps import canary, catalogue, sync
from steps.cancellation import Cancelled
from steps.errors import Refused, StatementFailed, Stopped
from steps.hold import hold
from steps.mysql import Session, quote
from steps.phase import Phase
from steps.rollout import Rollout


def put_on(rollout: Rollout, session: Session, phase: Phase) -> None:
    """Create the triggers and let the canary prove them, before any client can meet them; on failure they are gone again."""
    pairs = sync.pairs(session, rollout.plan, rollout.schema)
    wanted = sync.sync_triggers(rollout.plan.id, pairs)
    there = {trigger.name for trigger in catalogue.triggers(session, rollout.schema, rollout.table)}
    definer = "@".join(quote(part) for part in str(session.value("SELECT CURRENT_USER()")).rsplit("@", 1))
    for trigger in reversed(wanted):
        if trigger.name in there:
            rollout.check_owner()
            session.verbatim(trigger.drop())
    for trigger in wanted:
        rollout.check_owner()
        statement = trigger.create(rollout.table, definer, sync.last_foreign_trigger(session, rollout.schema, rollout.table, trigger))
        with rollout.timed(phase, f"trigger {trigger.name}", statement=statement):
            session.verbatim(statement)
    try:
        with rollout.timed(phase, "canary") as facts:
            facts["notes"] = canary.sing(session, rollout.table, rollout.schema, pairs, in_hold=True)
    except Refused as could_not_look:
        if "canary" not in rollout.accepted:
            _take_off(rollout, session, wanted, phase)
            raise Stopped(could_not_look.subject, could_not_look.reason, could_not_look.remedy) from None
    except (Stopped, StatementFailed, Cancelled):  # the canary failed, met locks, or was cut short
        _take_off(rollout, session, wanted, phase)
        raise


def _take_off(rollout: Rollout, session: Session, wanted: tuple[sync.SyncTrigger, ...], phase: Phase, direction: str = "back") -> None:
    """Drop the triggers, INSERT first (case C53)."""
    there = {trigger.name for trigger in catalogue.triggers(session, rollout.schema, rollout.table)}
    for trigger in reversed(wanted):
        if trigger.name in there:
            rollout.check_owner()
            with rollout.timed(phase, f"trigger {trigger.name}", direction=direction, statement=trigger.drop()):
                session.verbatim(trigger.drop())


def _ours(rollout: Rollout) -> tuple[sync.SyncTrigger, ...]:
    """Our triggers by name alone: enough to take them off, whatever their body."""
    return tuple(sync.SyncTrigger(sync.trigger_name(rollout.plan.id, event), event, "") for event in ("UPDATE", "INSERT"))


def take_off_in(rollout: Rollout, session: Session, phase: Phase, direction: str = "back") -> None:
    """Take both triggers off inside a hold that the caller has. Safe to repeat. Cleanup does it on its way forward."""
    _take_off(rollout, session, _ours(rollout), phase, direction)


def take_off(rollout: Rollout, phase: Phase = Phase.PRE_DEPLOY) -> None:
    """Take both triggers off in one hold of its own. Safe to repeat; nothing happens where none stands."""
    there = {trigger.name for trigger in catalogue.triggers(rollout.session, rollout.schema, rollout.table)}
    if not there & {trigger.name for trigger in _ours(rollout)}:
        return
    tables, related = rollout.tables_to_lock()
    with rollout.recorded_later(), \
            hold(rollout.target, rollout.watchdog, rollout.limits, tables, related, rollout.check_owner) as (session, _waited_s):
        session.run(f"USE {quote(rollout.schema)}")
        with rollout.watchdog.while_waiting(session.connection_id, rollout.limits.patience_in_hold_s):
            take_off_in(rollout, session, phase)
