"""`rollout status`: where it stands; takes no lock; needs no Prefect."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.table import Table

from flows import actions, watching
from flows.cli.ending import Ending, ending
from flows.cli.options import NO_REASON, DatabaseUrl, Json, PlanName, Settings, whoami
from flows.cli.status_watch import follow
from flows.params import Request
from flows.standing import standing
from flows.visible import one_line
from steps import approvals, gate_words, passing
from steps.errors import WrongUsage
from steps.phase import Phase
from steps.target import target_of

LEAST_EVERY_S = 0.2


def status(plan: PlanName, database_url: DatabaseUrl = None, settings: Settings = None,
           watch: Annotated[bool, typer.Option("--watch", help="Stay and show it as it works; Ctrl-C ends it. On a pipe, a line for "
                                               "each change.")] = False,
           every_s: Annotated[float, typer.Option("--every", metavar="S", min=LEAST_EVERY_S, max=3600, help="With --watch: look every S "
                                                  "seconds.")] = 2.0,
           until_idle: Annotated[bool, typer.Option("--until-idle", help="With --watch: end once nobody is at work.")] = False,
           as_json: Json = False) -> None:
    """Where the rollout stands, from catalogue and ledger. Takes no lock."""
    with ending(as_json=as_json) as end:
        _refuse_words(watch=watch, until_idle=until_idle, as_json=as_json)
        request = Request(plan=plan, by=whoami(), reason=NO_REASON, settings=settings or [])
        if watch:
            follow(request, target_of(database_url), end, every_s, until_idle=until_idle)
            return
        with actions.desk(request, target_of(database_url)) as desk:
            now = standing(desk)
        end.document |= now
        if as_json:
            return
        table = Table("phase", "state", "since (UTC)", title=f"{now['table']}, plan {now['plan']}", title_justify="left")
        for row in now["phases"]:
            table.add_row(Phase(row["phase"]).label, row["state"], row["at"] or "")
        end.console.print(table)
        stair = f"stair {now['stair']} of {now['stairs']}" if now["stair"] is not None else now.get("drift", "not begun")
        end.say(f"schema: {stair}; sync triggers: {now['sync']}; pre_deploy ends at stair {now['pre_deploy_stairs']}")
        for deviation in now["contract"] or []:
            end.say(f"not as the contract says: {deviation}")
        _say_gates(end, [*now["gates"], *now["gates_closed"]])
        _say_left(end, now)
        _say_last_run(end, now)
        for row in now["passes"]:
            end.say(passing.told(row))
        if now["parity_watch"]:
            end.say(watching.line(now["parity_watch"]))
        if now["working_on_it"]:
            owner = now["working_on_it"]
            end.say(f"working on it: {owner['actor']} on {owner['host']} since {owner['since']}" + ("" if owner["alive"] else " (dead)"))
        for line in now["under_way"]:
            end.say(f"outside of the server: {line}")
        end.say(f"connection: {now['connection']}")
        end.say(f"next: {now['next']}")


def _say_gates(end: Ending, gates: list[dict[str, Any]]) -> None:
    for gate in gates:
        end.say(f"gate of {gate['phase']}: {one_line(gate_words.in_words(gate))}; asked at {gate['since']}")
        for line in [*gate["reasons"], *gate["calls"]] if gate["state"] == approvals.WAITING else []:
            end.say(f"  {line}")


def _say_last_run(end: Ending, now: dict[str, Any]) -> None:
    """How the last run ended, where it did not end well and nobody is at work."""
    last, owner = now["last_run"], now["working_on_it"]
    if last and last["exit_code"] != 0 and not (owner and owner["alive"]):
        ended = f"exit {last['exit_code']} at {last['ended_at']}" if last["ended_at"] else "never ended (killed?)"
        why = one_line(last["outcome"] or "-")
        end.say(f"last run: {last['verb']} by {one_line(last['actor'])} of {last['started_at']}, {ended}: {why}")


def _say_left(end: Ending, now: dict[str, Any]) -> None:
    """What is there and does not belong there."""
    if now["strangers"]:
        end.say(f"not in the plan: {', '.join(now['strangers'])}")
    if now["rehearsal_left"]:
        end.say(f"left by a killed rehearsal: schema {now['rehearsal_left']}; the next run removes it, and so does rollout uninstall")
    if now["handover_left"]:
        end.say(f"left by a hand-over that was cut short: {', '.join(now['handover_left'])}; the next run removes them first")


def _refuse_words(*, watch: bool, until_idle: bool, as_json: bool) -> None:
    """
    Raises:
        WrongUsage: words that do not go together.
    """
    if watch and as_json:
        raise WrongUsage("--watch", "does not go with --json, which is one document", "call `rollout status --json` as often as you like")
    if until_idle and not watch:
        raise WrongUsage("--until-idle", "says when --watch ends", "add --watch")
