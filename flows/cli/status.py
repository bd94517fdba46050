"""`rollout status`: where it stands; takes no lock; needs no Prefect."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from flows import actions
from flows.cli.ending import Ending, ending
from flows.cli.options import NO_REASON, DatabaseUrl, Json, PlanName, Settings, whoami
from flows.params import Request
from flows.standing import standing
from steps import approvals, passing
from steps.phase import Phase
from steps.target import target_of


def status(plan: PlanName, database_url: DatabaseUrl = None, settings: Settings = None, as_json: Json = False) -> None:
    """Where the rollout stands, from catalogue and ledger. Takes no lock."""
    with ending(as_json=as_json) as end:
        request = Request(plan=plan, by=whoami(), reason=NO_REASON, settings=settings or [])
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
        _say_gates(end, now["gates"])
        if now["strangers"]:
            end.say(f"not in the plan: {', '.join(now['strangers'])}")
        if now["rehearsal_left"]:
            end.say(f"left by a killed rehearsal: schema {now['rehearsal_left']}; the next run removes it, and so does rollout uninstall")
        if now["handover_left"]:
            end.say(f"left by a hand-over that was cut short: {', '.join(now['handover_left'])}; the next run removes them first")
        for row in now["passes"]:
            end.say(passing.told(row))
        if now["working_on_it"]:
            owner = now["working_on_it"]
            end.say(f"working on it: {owner['actor']} on {owner['host']} since {owner['since']}" + ("" if owner["alive"] else " (dead)"))
        end.say(f"connection: {now['connection']}")
        end.say(f"next: {now['next']}")


def _say_gates(end: Ending, gates: list[dict[str, Any]]) -> None:
    for gate in gates:
        end.say(f"gate of {gate['phase']}: {approvals.in_words(gate)}")
        for line in [*gate["reasons"], *gate["calls"]] if gate["state"] == approvals.WAITING else []:
            end.say(f"  {line}")
