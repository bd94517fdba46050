"""What somebody who is asked at a gate has to see: what will happen, what was found, how the last phase went, who asked. Markdown."""

from __future__ import annotations

from typing import Any

from flows import planned
from flows.markdown import Page, code, fenced, words
from flows.visible import second
from steps import acknowledged, catalogue, deploys, failover, forecast, parity_looks
from steps.errors import GateClosed
from steps.masking import mask
from steps.mysql import shown
from steps.phase import FORWARD, Phase
from steps.rehearsal import UP
from steps.rollout import Rollout
from steps.sync import SyncTrigger, trigger_names

LONGEST = 40_000


def page(rollout: Rollout, closed: GateClosed, resumed: str = "") -> str:
    """
    The whole page of *closed*, what decides first and SQL last; looks, changes nothing. No row contents, no secrets. *resumed* says who
    goes on with the run where nobody has to answer.

    What does not fit into :data:`LONGEST` bytes is told, with the command that has it.
    """
    phase = Phase(closed.gate["phase"])
    named = f"Phase {FORWARD.index(phase) + 1}, {phase.value}"
    page = Page(f"rollout plan {rollout.plan.called} --sql", LONGEST)
    page.add(f"# {named}: may it begin?" if closed.gate["needs"] == "approval" else f"# {named} waits", "",
             f"Table `{rollout.schema}.{rollout.table}`, plan `{rollout.plan.id}` {words(rollout.plan.plan.title)}".rstrip(), "",
             f"Asked by **{words(rollout.person.actor)}**: {words(rollout.person.reason)}", "",
             *[f"- {words(reason)}" for reason in closed.gate["reasons"]],
             *_asked_with(rollout),
             *(["", f"Once the time has come, {resumed}."] if resumed else []),
             "", f"Void after {second(closed.gate['until'])} (UTC); the same from a shell: `{closed.gate['call']}`")
    happens, statements = _what_will_happen(rollout, phase)
    page.part("What will happen", happens, "lines")
    page.part("Findings", _findings(rollout), "findings")
    title, last = _last_phase(rollout, phase)
    page.part(title, last, "lines")
    page.part("Statements, in order", [fenced(statement) for statement in statements], "statements", last=True)
    return mask(str(page))


def _asked_with(rollout: Rollout) -> list[str]:
    """What the run that asks was given beside the plan: settings, and what it accepts. All of it is what is approved."""
    options = next((dict(run["options"] or {}) for run in rollout.ledger.runs() if run["run_id"] == rollout.ledger.run_id), {})
    settings, keys = options.get("settings") or [], sorted(rollout.accepted)
    given = [f"set for this run: {', '.join(code(str(item)) for item in settings)}"] if settings else []
    given += [f"accepted by who asks: {', '.join(map(code, keys))}"] if keys else []
    return [f"- {one}" for one in given]


def _what_will_happen(rollout: Rollout, phase: Phase) -> tuple[list[str], list[str]]:
    """Lines, and the statements that are run."""
    if phase is Phase.PRE_DEPLOY:
        document = planned.document(rollout)
        steps, statements = _steps(rollout, phase)
        first = document["first_pass_estimate"]
        told = [f"Sync triggers in the same hold, proven by the canary; then the first pass over all rows: {_about(first)}.", ""] \
            if document["triggers"] else []
        return [*steps, "", *told], [*statements, *document["triggers"], *([document["first_pass"]] if document["first_pass"] else [])]
    if phase is Phase.CLEANUP:
        steps, statements = _steps(rollout, phase)
        out, drops = _goes_out(rollout, "V2", rollout.plan.cleanup.deploy), _sync_goes(rollout)
        return [*out, *(["Sync ends, in one hold with the first steps.", ""] if drops else []), *steps], [*drops, *statements]
    if phase is Phase.DEPLOY:
        return _goes_out(rollout, "V1", rollout.plan.deploy.command), []
    if phase is Phase.VERIFY:
        return ["Every row, the schema and the triggers are looked at; nothing is changed."], \
            [shown(sql.strip()) for sql in rollout.plan.queries.values()]
    if phase is Phase.BACKFILL:
        found = forecast.of_first_pass(rollout.rehearsed(), catalogue.estimated_rows(rollout.session, rollout.schema, rollout.table))
        how_long = f": at most {_about({'estimate_ms': found.ms, 'basis': found.basis})}" if found else ""
        return [f"The closing pass over all rows; nothing may be left{how_long}"], []
    command = rollout.plan.shadow_write.enable_command
    return ["The canary on the live table, every row once more; then the soak begins.",
            *(["", "The application is told to write both sides itself:", fenced(shown(command))] if command else [])], []


def _about(estimate: dict[str, Any] | None) -> str:
    return f"about {estimate['estimate_ms'] / 1000:,.1f} s ({words(estimate['basis'])})" if estimate else "nobody knows how long"


def _goes_out(rollout: Rollout, generation: str, command: str | None) -> list[str]:
    if command:
        return [f"{generation} goes out by this command:", fenced(shown(command)), ""]
    way = deploys.forward(rollout.plan.deploy, None, generation.lower())
    return [f"{generation} goes out by `{way.name}`." if way else f"{generation} is put out by a person, who says so.", ""]


def _sync_goes(rollout: Rollout) -> list[str]:
    """The triggers go with the first of the steps, in the same hold."""
    names = sorted(trigger_names(rollout.plan.id)) if rollout.plan.filled_columns else []
    return [SyncTrigger(name, "", "").drop() for name in names]


def _steps(rollout: Rollout, phase: Phase) -> tuple[list[str], list[str]]:
    """Each step left, with what the server takes it for, as `rollout plan` has it; and its statements."""
    ladder, here = rollout.ladder(), rollout.position()
    left = [(stair, told) for number, (stair, told) in enumerate(zip(ladder.stairs, forecast.steps(rollout), strict=True), 1)
            if number > here and Phase(stair.phase) is phase]
    lines = ["| step | algorithm | others meet | estimate | basis |", "|---|---|---|---:|---|"]
    lines += [f"| {words(stair.name)} | {told[UP]['algorithm']} | {forecast.LOCKS[told[UP]['locks']]} | "
              f"{told[UP]['estimate_ms']:,.0f} ms | {words(told[UP]['basis'])} |" for stair, told in left]
    return lines, ["\n".join([*stair.up.before, stair.up.statement]) for stair, _ in left]


def _findings(rollout: Rollout) -> list[str]:
    """What the pre-checks of this run told, and what was accepted."""
    found = [event for event in rollout.ledger.events() if event["run_id"] == rollout.ledger.run_id
             and event["outcome"] in (acknowledged.ACCEPTED, acknowledged.TOLD) and event["step"] != failover.STEP]
    return [f"- {event['outcome']}: {words(str(text))}" for event in found for text in _texts(event)] or ["none"]


def _texts(event: dict[str, Any]) -> list[Any]:
    if event["outcome"] == acknowledged.ACCEPTED:
        return [f"{event['detail'].get('subject')}: {event['detail'].get('found')} ({event['detail'].get('by')})"]
    return list(event["detail"].values())


def _last_phase(rollout: Rollout, phase: Phase) -> tuple[str, list[str]]:
    """The phase before, and the numbers since it began: what was done in it, and what the parity watch saw last."""
    before = FORWARD[FORWARD.index(phase) - 1] if phase is not FORWARD[0] else None
    row = rollout.ledger.phases().get(before) if before else None
    if before is None or not row:
        return "", []
    lines = [f"{row['state']} since {row['at']} (UTC)", "", "| step | outcome | ms | rows |", "|---|---|---:|---:|"]
    lines += [f"| {words(e['step'])} | {words(e['outcome'])} | {'' if e['duration_ms'] is None else round(e['duration_ms'])} | "
              f"{'' if e['row_count'] is None else e['row_count']} |" for e in rollout.ledger.events()
              if e["run_id"] == row["run_id"] and e["phase"] == before.value and e["direction"] == "forward"]
    look = parity_looks.last(rollout)
    if look:
        seen = f"{look.get('rows_examined', '?')} rows looked at, {look.get('differing', '?')} differ"
        lines += ["", f"Parity watch at {look['at']}: {look['outcome']}, {seen}"]
    return before.label, lines
