"""
Phase 6: the old side goes, reversibly (F13). V2 first; then a gate by evidence; triggers off and columns to tombstones in one
hold; a watch for errors; cooling; an archive by key, compared with the table; at last indexes and columns are dropped.
Its way back is :mod:`steps.cleanup_back`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from steps import archive, catalogue, cleanup_ready, clocks, ddl, deploy, fleet, gates, usage, waits
from steps.checks import Look, dependents
from steps.deploys.health import Health
from steps.errors import CleanupBroke, Stopped, WaitingForPerson
from steps.phase import Outcome, Phase
from steps.rollout import Rollout
from steps.rungs import TOMBSTONES
from steps.step import Step

PHASE = Phase.CLEANUP
OLDER = ("v0", "v1")


def is_done(rollout: Rollout) -> bool:
    return rollout.ledger.phase_state(PHASE) == "done"


def steps(rollout: Rollout) -> list[Step]:
    return [Step("allowed to begin", lambda: _allowed(rollout)),
            Step("put V2 out", lambda: _v2_out(rollout)),
            Step("nobody uses the old columns", lambda: _gate(rollout)),
            Step("triggers off, columns to tombstones", lambda: _bury(rollout)),
            Step("watch for errors", lambda: _watch(rollout)),
            Step("archive", lambda: _archive(rollout)),
            Step("drop", lambda: _drop(rollout))]


def stage_of(rollout: Rollout) -> dict[str, Any]:
    detail = rollout.ledger.phases().get(PHASE, {}).get("detail")
    return dict(detail) if detail else {}


def reached(rollout: Rollout, stage: str, state: str = "running", **more: Any) -> None:
    rollout.ledger.set_phase(PHASE, state, {**stage_of(rollout), "stage": stage, **more})


def tombstones(rollout: Rollout) -> int:
    return rollout.ladder().stair_named(TOMBSTONES) or rollout.ladder().expanded


def _allowed(rollout: Rollout) -> Outcome:
    """
    Raises:
        Stopped: verify is too young, or something of the database names what goes: better before V2 than after it.
        WaitingForPerson: nobody has confirmed that the old side may go.
    """
    if rollout.cleanup_began():
        return Outcome.ALREADY_DONE
    _refuse_dependents(rollout)
    young = cleanup_ready.too_young(rollout, clocks.now(rollout.session))
    if young:
        raise Stopped("cleanup", young.reason, f"run the same command after {young.due.shown}")
    if not gates.approved(rollout, PHASE):
        raise WaitingForPerson("cleanup", f"a person has to confirm that {gates.what_goes(rollout)}", f"add --accept {gates.ACCEPT}")
    return Outcome.DONE


def _v2_out(rollout: Rollout) -> Outcome:
    if rollout.cleanup_began() and stage_of(rollout).get("v2"):
        return Outcome.ALREADY_DONE
    plan = rollout.plan.cleanup
    how = deploy.put_out(rollout, PHASE, plan.deploy, Health(plan.health_command, plan.health_url), "v2",
                         "the generation without the old columns (V2) is deployed and no older instance is left",
                         f"rollout run {rollout.plan.called} --through cleanup --deployed-by NAME",
                         before=lambda detail: reached(rollout, "v2 going out", **detail))
    reached(rollout, "v2 out", v2=how)
    return Outcome.DONE


def _gate(rollout: Rollout) -> Outcome:
    """
    Nobody may be seen using the old columns for `cleanup.observe_s`, while we are silent ourselves.

    Raises:
        Stopped: somebody was seen, or is connected; or it could not be seen well enough and `cleanup-unseen` is not accepted.
    """
    if rollout.position() > rollout.ladder().expanded:
        return Outcome.ALREADY_DONE
    fleet.refuse_alive(rollout, PHASE, OLDER, "nothing was taken away")
    _refuse_dependents(rollout)
    with rollout.timed(PHASE, "look for users of the old columns") as facts:
        before = usage.look(rollout.session, rollout.schema)
        waits.sleep_s(rollout.plan.cleanup.observe_s)
        found = usage.between(before, usage.look(rollout.session, rollout.schema), rollout.table, rollout.plan.removed_columns)
        facts |= {"observed_s": rollout.plan.cleanup.observe_s, "users": list(found.users), "could not look": list(found.unseen)}
    if found.users:
        raise Stopped(f"table {rollout.table}", f"the old columns are in use: {'; '.join(found.users)}",
                      "an older instance is left; nothing was taken away")
    if found.unseen and "cleanup-unseen" not in rollout.accepted:
        raise Stopped(f"table {rollout.table}", f"could not look: {'; '.join(found.unseen)}",
                      "raise the limits and look again, or say that you know from elsewhere with --accept cleanup-unseen")
    fleet.refuse_alive(rollout, PHASE, OLDER, "nothing was taken away")  # one may have come while we watched
    return Outcome.DONE


def _refuse_dependents(rollout: Rollout) -> None:
    """
    What only warned before phase 1 stops here: views, triggers, events, routines that name the old columns (cases C37 to C41).

    Words are matched, not meaning, so a person may say that it is another column of that name.

    Raises:
        Stopped: with each of them, unless `cleanup-dependents` is accepted, and `cleanup-unseen` for those whose text is hidden.
    """
    found = dependents.of_cleanup(Look(rollout.session, rollout.target, rollout.plan, begun=True))
    for key, hidden, remedy in (("cleanup-dependents", False, "rewrite or drop them"), ("cleanup-unseen", True, "let them be shown")):
        stopping = [f"{f.subject} {f.what}" for f in found if f.could_not_look is hidden]
        if stopping and key not in rollout.accepted:
            raise Stopped(f"table {rollout.table}", f"before cleanup: {'; '.join(stopping)}", f"{remedy}, then run the same command again, "
                          f"or say that they do not need the columns with --accept {key}; nothing was taken away")


def _bury(rollout: Rollout) -> Outcome:
    ladder, to = rollout.ladder(), tombstones(rollout)
    if rollout.position() < to:
        rows = catalogue.estimated_rows(rollout.session, rollout.schema, rollout.table)
        reached(rollout, "tombstoning", seen=_counters(usage.look(rollout.session, rollout.schema), rollout.table))
        moves = tuple(ddl.moves(ladder, rollout.position(), to, rows, rollout.slowness))
        ddl.carry_out(rollout, ddl.Group(moves, in_hold=True, sync="off", phase=PHASE), ladder, "forward")
    elif stage_of(rollout).get("drop_due"):
        return Outcome.ALREADY_DONE
    due = clocks.now(rollout.session).plus(rollout.plan.cleanup.cooling_s)  # a run killed just before this line cools longer
    reached(rollout, "tombstoned", drop_due=due.server.isoformat(timespec="seconds"), drop_due_by_tool_clock=due.by_tool)
    return Outcome.DONE


def _counters(seen: usage.Seen | None, table: str) -> dict[str, Any] | None:
    """What the watch has to remember across runs; digests of this table only, without their texts."""
    if seen is None:
        return None
    return {"errors": seen.errors, "lost": seen.lost,
            "digests": {d: w for d, (text, _c, w) in seen.digests.items() if table.lower() in text.lower()}}


def _watch(rollout: Rollout) -> Outcome:
    """
    Raises:
        CleanupBroke: statements on the table began to fail; the way back follows by itself.
    """
    if rollout.position() != tombstones(rollout):
        return Outcome.ALREADY_DONE
    if not stage_of(rollout).get("watched"):
        waits.sleep_s(rollout.plan.cleanup.observe_s)
    now, then = usage.look(rollout.session, rollout.schema), stage_of(rollout).get("seen")
    if now and then:
        before = usage.Seen({d: ("", 0, int(w)) for d, w in then["digests"].items()}, int(then.get("lost", 0)), 0, int(then["errors"]), 0)
        broken = usage.broke(before, now, rollout.table)
        if broken:
            raise CleanupBroke(f"table {rollout.table}", broken, "the old columns come back by themselves")
    reached(rollout, "watched", watched=True)
    return Outcome.DONE


def _due(rollout: Rollout) -> bool:
    """Whether the drop may come; else the phase is left as cooling, and the run ends well and says when."""
    stage, now = stage_of(rollout), clocks.now(rollout.session)
    due = clocks.recorded(stage["drop_due"], stage.get("drop_due_by_tool_clock"))
    if due.has_come(now):
        return True
    reached(rollout, "cooling", "cooling")
    rollout.say(f"drop not due yet{clocks.difference(now)}", due=due.shown)
    return False


def _archive(rollout: Rollout) -> Outcome:
    if rollout.position() > tombstones(rollout):
        return Outcome.ALREADY_DONE
    if not _due(rollout):
        return Outcome.NOT_DUE
    reached(rollout, "archiving")
    archive.fill(rollout)
    reached(rollout, "archived")
    return Outcome.DONE


def _drop(rollout: Rollout) -> Outcome:
    ladder, here = rollout.ladder(), rollout.position()
    if here < ladder.top:
        if not _due(rollout):
            return Outcome.NOT_DUE
        if rollout.plan.removed_columns and not archive.is_complete(rollout):
            raise Stopped("cleanup", "the archive is missing, so nothing may be dropped", "run the same command again")
        rows = catalogue.estimated_rows(rollout.session, rollout.schema, rollout.table)
        for group in ddl.grouped(ddl.moves(ladder, here, ladder.top, rows, rollout.slowness), rollout, rows, with_sync=False):
            ddl.carry_out(rollout, replace(group, phase=PHASE), ladder, "forward")
    rollout.ledger.end_plan(ended=True)  # before the phase is done: after that no run comes here again
    reached(rollout, "dropped", "done", by_tool_clock=clocks.now(rollout.session).by_tool)
    return Outcome.DONE
