"""The last run's request once more, as the ledger has it: what `rollout resume` goes on with where no suspended run does."""

from __future__ import annotations

from flows.params import BESIDE_A_REQUEST, RollbackRequest, RunRequest
from steps.approvals import HIMSELF, UNREADY, same_person
from steps.errors import Refused
from steps.masking import MASK
from steps.rollout import Rollout

KINDS: dict[str, type[RunRequest | RollbackRequest]] = {"run": RunRequest, "rollback": RollbackRequest}


def request(rollout: Rollout, plan: str, by: str, reason: str) -> RunRequest | RollbackRequest:
    """
    What was asked last, by somebody and for a reason of today. A person's word that something is deployed was said of then: it is not said
    again. Nor is, for anybody else, that cleanup may go, and that it may although its conditions are not met.

    Raises:
        Refused: nothing was run yet, or the options hold a secret, of which the ledger has only a mask.
    """
    called = rollout.plan.called
    last = next((run for run in reversed(rollout.ledger.runs()) if run["verb"] in KINDS), None)
    if last is None:
        raise Refused(f"plan {rollout.plan.id}", "was never run on this table, so there is nothing to resume", f"`rollout run {called}`")
    options = {key: value for key, value in dict(last["options"] or {}).items() if key not in {*BESIDE_A_REQUEST, "deployed_by"}}
    hidden = [str(item).partition("=")[0] for item in options.get("settings") or [] if MASK in str(item)]
    if hidden:
        raise Refused("rollout resume", f"the last run's --set {', '.join(hidden)} holds a secret, of which the ledger has only a mask",
                      f"give the whole command again: `rollout {last['verb']} {called} --set {hidden[0]}=… `; nothing was done")
    if not same_person(by, last["actor"]):
        options["accept"] = [key for key in options.get("accept") or [] if key not in (HIMSELF, UNREADY)]
    return KINDS[last["verb"]](**options | {"plan": plan, "by": by, "reason": reason, "database": "command line"})
