"""`rollout uninstall`: ledger, archives and tombstones away."""

from __future__ import annotations

from flows import actions
from flows.cli.ending import ending
from flows.cli.options import NO_REASON, Accept, By, DatabaseUrl, Json, PlanName, Reason, Settings, Yes, whoami
from flows.cli.performing import Ask
from flows.params import Request
from steps import uninstall as traces
from steps.target import target_of


def uninstall(plan: PlanName, database_url: DatabaseUrl = None, settings: Settings = None, accept: Accept = None, yes: Yes = False,
              by: By = "", reason: Reason = NO_REASON, as_json: Json = False) -> None:
    """Take the ledger's rows and the archive of PLAN away; refuses while any is needed. The audit trail goes with them."""
    with ending(as_json=as_json) as end:
        request = Request(plan=plan, by=by or whoami(), reason=reason, settings=settings or [], accept=accept or [])
        database = target_of(database_url)
        with actions.desk(request, database) as desk:
            traces.refuse_what_is_needed(desk)
            if not yes:
                Ask(end, quiet=as_json).before_starting(f"remove archive and audit trail of {request.plan} on {database.where} "
                                                        "(keep them with `rollout report --html FILE` first)")
            gone = traces.uninstall(desk)
        end.document |= {"outcome": "done" if gone else "nothing to do", "removed": gone}
        end.say(f"removed: {', '.join(gone)}" if gone else "nothing to do")
