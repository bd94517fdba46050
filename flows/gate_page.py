"""What somebody who is asked at a gate has to see: what will happen, what was found, how the last phase went, who asked. Markdown."""

from __future__ import annotations

from typing import Any

from flows.markdown import fenced, words
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


def page(rollout: Rollout, closed: GateClosed) -> str:
    """The whole page of *closed*; looks, changes nothing. No row contents, no secrets."""
    phase = Phase(closed.gate["phase"])
    named = f"Phase {FORWARD.index(phase) + 1}, {phase.value}"
    lines = [f"# {named}: may it begin?" if closed.gate["needs"] == "approval" else f"# {named} waits", "",
             f"Table `{rollout.schema}.{rollout.table}`, plan `{rollout.plan.id}` {words(rollout.plan.plan.title)}".rstrip(), "",
             f"Asked by **{words(rollout.person.actor)}**: {words(rollout.person.reason)}", "",
             *[f"- {words(reason)}" for reason in closed.gate["reasons"]],
             *[f"- **not met**: {words(one)}" for one in closed.gate.get("unmet", [])],
             "", f"Void after {second(closed.gate['until'])} (UTC); the same from a shell: `{closed.gate['call']}`", "",
             *_what_will_happen(rollout, phase), *_findings(rollout), *_last_phase(rollout, phase)]
    return mask("\n".join(lines))[:LONGEST]


def _what_will_happen(rollout: Rollout, phase: Phase) -> list[str]:
    lines = ["## What will happen", ""]
    if phase is Phase.PRE_DEPLOY:
        return lines + _steps(rollout, phase)
    if phase is Phase.CLEANUP:
        return [*lines, *_goes_out(rollout, "V2", rollout.plan.cleanup.deploy), *_sync_goes(rollout), *_steps(rollout, phase)]
    if phase is Phase.DEPLOY:
        return lines + _goes_out(rollout, "V1", rollout.plan.deploy.command)
    if phase is Phase.VERIFY:
        queries = [fenced(shown(sql.strip())) for sql in rollout.plan.queries.values()]
        return [*lines, "Every row, the schema and the triggers are looked at; nothing is changed.", *queries, ""]
    if phase is Phase.BACKFILL:
        found = forecast.of_first_pass(rollout.rehearsed(), catalogue.estimated_rows(rollout.session, rollout.schema, rollout.table))
        how_long = f": at most about {found.ms / 1000:,.1f} s ({found.basis})" if found else ""
        return [*lines, f"The closing pass over all rows; nothing may be left{how_long}", ""]
    command = rollout.plan.shadow_write.enable_command
    return [*lines, "The canary on the live table, every row once more; then the soak begins.",
            *(["The application is told to write both sides itself:", fenced(shown(command))] if command else []), ""]


def _goes_out(rollout: Rollout, generation: str, command: str | None) -> list[str]:
    if command:
        return [f"{generation} goes out by this command:", fenced(shown(command)), ""]
    way = deploys.forward(rollout.plan.deploy, None, generation.lower())
    return [f"{generation} goes out by `{way.name}`." if way else f"{generation} is put out by a person, who says so.", ""]


def _sync_goes(rollout: Rollout) -> list[str]:
    """The triggers go with the first of the steps, in the same hold."""
    names = sorted(trigger_names(rollout.plan.id)) if rollout.plan.filled_columns else []
    drops = [SyncTrigger(name, "", "").drop() for name in names]
    return ["Sync ends, in one hold with the first steps:", fenced(";\n".join(drops)), ""] if drops else []


def _steps(rollout: Rollout, phase: Phase) -> list[str]:
    """Each statement left, with what the server takes it for; as `rollout plan` has it."""
    ladder, here = rollout.ladder(), rollout.position()
    left = [(stair, told) for number, (stair, told) in enumerate(zip(ladder.stairs, forecast.steps(rollout), strict=True), 1)
            if number > here and Phase(stair.phase) is phase]
    lines = ["| step | algorithm | others meet | estimate | basis |", "|---|---|---|---:|---|"]
    lines += [f"| {words(stair.name)} | {told[UP]['algorithm']} | {forecast.LOCKS[told[UP]['locks']]} | "
              f"{told[UP]['estimate_ms']:,.0f} ms | {words(told[UP]['basis'])} |" for stair, told in left]
    lines += ["", *[fenced("\n".join([*stair.up.before, stair.up.statement])) for stair, _ in left], ""]
    return lines


def _findings(rollout: Rollout) -> list[str]:
    """What the pre-checks of this run told, and what was accepted."""
    found = [event for event in rollout.ledger.events() if event["run_id"] == rollout.ledger.run_id
             and event["outcome"] in (acknowledged.ACCEPTED, acknowledged.TOLD) and event["step"] != failover.STEP]
    lines = [f"- {event['outcome']}: {words(str(text))}" for event in found for text in _texts(event)]
    return ["## Findings", "", *(lines or ["none"]), ""]


def _texts(event: dict[str, Any]) -> list[Any]:
    if event["outcome"] == acknowledged.ACCEPTED:
        return [f"{event['detail'].get('subject')}: {event['detail'].get('found')} ({event['detail'].get('by')})"]
    return list(event["detail"].values())


def _last_phase(rollout: Rollout, phase: Phase) -> list[str]:
    """The numbers since the phase before began: what was done in it, and what the parity watch saw last."""
    before = FORWARD[FORWARD.index(phase) - 1] if phase is not FORWARD[0] else None
    row = rollout.ledger.phases().get(before) if before else None
    if before is None or not row:
        return []
    lines = [f"## {before.label}", "", f"{row['state']} since {row['at']} (UTC)", "",
             "| step | outcome | ms | rows |", "|---|---|---:|---:|"]
    lines += [f"| {words(e['step'])} | {words(e['outcome'])} | {'' if e['duration_ms'] is None else round(e['duration_ms'])} | "
              f"{'' if e['row_count'] is None else e['row_count']} |" for e in rollout.ledger.events()
              if e["run_id"] == row["run_id"] and e["phase"] == before.value and e["direction"] == "forward"]
    look = parity_looks.last(rollout)
    if look:
        seen = f"{look.get('rows_examined', '?')} rows looked at, {look.get('differing', '?')} differ"
        lines += ["", f"Parity watch at {look['at']}: {look['outcome']}, {seen}"]
    return [*lines, ""]
