"""
The watch over the weeks of shadow write: is every pair still in step, do the triggers stand as they were made, has the schema drifted,
does anybody write the old side, and do cleanup's conditions hold?

One look after the other, each with a budget of time (:mod:`steps.parity_round`). It changes nothing but its own rows in the ledger,
owns nothing and takes no lock on the table: a rollout that begins meanwhile never waits for it. Two looks at once would lose each
other's place, so a second one is refused while the first one lives.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from steps import clocks, ledger_lock, old_writers, parity_round, waits
from steps.cleanup_conditions import see_schema, unmet, unmet_after
from steps.errors import Busy, ConnectionLost, Refused, StatementFailed
from steps.exact_look import WATCH
from steps.ledger import Event
from steps.old_writers import Writers
from steps.parity_looks import CONDITIONS, FOR_THE_NEXT, MET, UNMET, Look, conditions_held, last, last_look, looks
from steps.phase import Phase
from steps.rollout import Rollout

__all__ = ["Look", "last_look", "look", "looks", "nothing_to_watch", "unmet"]
DAY_S = 86_400


def nothing_to_watch(rollout: Rollout) -> str | None:
    """Why there is nothing to watch on this table now, or None. Takes no lock."""
    if rollout.ledger.plan() is None:
        return f"plan {rollout.plan.id} was never begun on this table"
    if rollout.cleanup_began():
        return "cleanup has begun, and the old side is not kept in step any more"
    state = rollout.ledger.phase_state(Phase.SHADOW_WRITE)
    return None if state == "done" else f"{Phase.SHADOW_WRITE.value} is {'not begun' if state == '-' else state}"


def alone(rollout: Rollout) -> AbstractContextManager[None]:
    """
    One look at a time, on the connection that writes the place of the look.

    Raises:
        Busy: another look at this plan's table is at work.
    """
    return ledger_lock.alone(rollout.ledger, "watch", Busy(f"table {rollout.table}", "has another look of the parity watch at work",
                                                           "this one did nothing; wait until that ends"))


def look(rollout: Rollout, budget_s: float) -> Look:
    """
    One look, of at most about *budget_s* seconds: rows from where the last one ended, triggers, schema, writers, conditions. On record.

    Call where :func:`nothing_to_watch` is None. Safe to repeat and to kill: what was not recorded is looked at again.

    Raises:
        Busy: another look is at work.
        Cancelled: the look was asked to stop; the next one goes on from there.
    """
    with alone(rollout):
        began, until_s = waits.now_s(), waits.now_s() + budget_s
        rollout.ledger.create()  # a ledger that an older tool made may lack a table
        rollout.ledger.run_id = _latest_run(rollout)
        found, past = Look(), last(rollout)
        if not parity_round.at_work(rollout):
            see_schema(rollout, found)
            _rows(rollout, found, lambda: f"its {budget_s:g} s have ended" if waits.now_s() >= until_s else "")
        disturbed = _disturbed(rollout)
        if disturbed:
            found = Look(rows_examined=found.rows_examined, rows_of_round=found.rows_of_round, held_up=disturbed)
        window = past.get(FOR_THE_NEXT) if past.get("run_id") == rollout.ledger.run_id and not disturbed else None
        writers = old_writers.look(rollout, window)
        found.old_writers, found.writers_unseen = list(writers.seen), list(writers.unseen)
        found.days_since = _days_since(rollout)
        took_s = waits.now_s() - began
        found.seconds = round(took_s, 1)
        now = {"at": clocks.now(rollout.session).server.isoformat(), **found.to_json()}
        found.conditions_unmet = unmet_after(rollout, now)
        _on_record(rollout, found, None if disturbed else writers, took_s)
        return found


def _rows(rollout: Rollout, found: Look, over: Callable[[], str]) -> None:
    """Every row of the round, as far as the budget goes. What cannot be read is not clean."""
    if not rollout.plan.filled_columns:
        found.complete = True
        return
    try:
        rows = parity_round.go_on(rollout, over)
    except (Refused, StatementFailed) as error:
        if isinstance(error, ConnectionLost):
            raise
        found.could_not_look.append(f"rows: {error.reason}")
        return
    found.rows_examined, found.rows_of_round = rows.examined, rows.of_round
    found.complete, found.held_up = rows.complete, rows.held_up
    found.differing, found.by_pair, found.keys = rows.wrong.count, rows.wrong.by_pair, list(rows.wrong.keys)


def _latest_run(rollout: Rollout) -> str:
    """The run whose soak is watched."""
    return next((str(run["run_id"]) for run in reversed(rollout.ledger.runs())), rollout.ledger.run_id)


def _disturbed(rollout: Rollout) -> str:
    """Whether a rollout works on the table or has worked on it since: then what was seen is its doing, and no alarm."""
    if parity_round.at_work(rollout):
        return "a rollout works on the table"
    return "a rollout worked on the table meanwhile" if _latest_run(rollout) != rollout.ledger.run_id or nothing_to_watch(rollout) else ""


def _days_since(rollout: Rollout) -> dict[str, float]:
    phases, now = rollout.ledger.phases(), clocks.now(rollout.session)
    return {phase.value: round((now.server - clocks.recorded(phases[phase]["at"], None).server).total_seconds() / DAY_S, 3)
            for phase in (Phase.VERIFY, Phase.SHADOW_WRITE) if phase in phases}


def _on_record(rollout: Rollout, found: Look, writers: Writers | None, took_s: float) -> None:
    """The look, and once whenever cleanup's conditions begin or cease to hold."""
    by = {"by": rollout.person.actor, "why": rollout.person.reason}
    always = ("rows_examined", "differing", "complete", "drift", "old_writers", "conditions_unmet")
    detail = {name: value for name, value in vars(found).items() if value or name in always}
    rollout.record(Event(Phase.SHADOW_WRITE.value, WATCH, found.outcome, duration_ms=1000 * took_s, rows=found.rows_examined,
                         detail=detail | by | {FOR_THE_NEXT: writers.counters if writers else None}))
    hold = not found.conditions_unmet
    if hold != conditions_held(rollout):
        state = MET if hold else UNMET
        rollout.record(Event(Phase.CLEANUP.value, CONDITIONS, state, detail=by | {"conditions_unmet": found.conditions_unmet}))
