"""
What earlier runs left under way outside of the server, before anything is done that it could harm (cases C61, C93).

A command goes on after `kill -9` of the tool; one that belonged to a run without its table may have put the new generation out after
another run had gone back. As long as the ledger reckons with that generation all is well; else a person has to say that none lives,
or the old side would decide over what it wrote.
"""

from __future__ import annotations

from steps import deploy
from steps.errors import Stopped, WaitingForPerson
from steps.ledger import Event
from steps.phase import Phase
from steps.rollout import Rollout
from steps.under_way import RECKONED, Unsettled, unsettled

ACCEPT = "command-unseen"


def settle(rollout: Rollout, *, back: bool) -> None:
    """
    Once the run, or the way *back*, owns the table, before it works. Says in the ledger that what is left has been reckoned with.

    Raises:
        Stopped: a command is at work still, on this machine; names its process.
        WaitingForPerson: it began on another machine, or what it brought the ledger does not reckon with; `--accept command-unseen`.
    """
    left = unsettled(rollout.ledger)
    for one in left:
        if one.at_work:
            number = int(one.detail["pid"])
            raise Stopped(f"table {rollout.table}", f"{one}", f"wait for its end, or end it (`kill -- -{number}`), then run the same "
                          "command again; this run changed nothing")
        if ACCEPT not in rollout.accepted and (one.at_work is None or _harms(rollout, one, back=back)):
            unseen = "whether it is at work still cannot be seen from here" if one.at_work is None else "another run has gone on since"
            raise WaitingForPerson(f"table {rollout.table}", f"{one}; {unseen}", "make sure that it has ended and that no instance lives "
                                   f"that the ledger does not know of, then add --accept {ACCEPT}; this run changed nothing")
    if left:
        rollout.record(Event(left[-1].phase.value, "earlier commands", RECKONED, detail={
            "what": [str(one) for one in left], "accepted by": rollout.person.actor if ACCEPT in rollout.accepted else None}))


def _harms(rollout: Rollout, one: Unsettled, *, back: bool) -> bool:
    """Whether a generation may live that nobody reckons with, and that what comes next would harm."""
    if one.phase is Phase.SHADOW_WRITE:
        return False  # an application that writes both sides makes no row wrong
    if one.direction == "back":
        return rollout.cleanup_began() and not back  # the same way back brings that generation itself
    return not rollout.cleanup_began() and (one.phase is Phase.CLEANUP or not deploy.v1_may_live(rollout))
