"""Carrying out a run or a rollback for the command line: through Prefect when it can be reached, without it when not."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable

from rich.console import Console
from rich.progress_bar import ProgressBar

from flows import actions, cockpit
from flows.cli import leaving
from flows.cli.ending import Ending
from flows.conductor import PlainConductor
from flows.params import RollbackRequest, RunRequest
from flows.watching import WatchRequest, watch
from steps import cancellation, passing, waits
from steps.errors import Stopped
from steps.masking import masked
from steps.passes import Progress
from steps.target import Target

Asked = RunRequest | RollbackRequest | WatchRequest
TELL_EVERY_S = 1.0
BAR_COLUMNS = 20


class Ask:
    """Questions to a person on a terminal."""

    def __init__(self, end: Ending, *, quiet: bool) -> None:
        self.end, self.quiet = end, quiet

    def confirm(self, what: str) -> bool:
        """Whether the person types `yes` to *what*; Ctrl-C is an answer too."""
        self.end.say(f"Please confirm: {what}. Type yes when it is so.")
        with cancellation.at_once():
            return sys.stdin.readline().strip().lower() == "yes"

    def before_starting(self, what: str) -> None:
        """
        Ask once on a terminal; without a terminal there is nobody to ask, and the command itself is the answer.

        Raises:
            Stopped: the person said no; nothing was done.
        """
        if sys.stdin.isatty() and not self.quiet:
            self.end.say(f"About to {what}. Continue? [y/N]")
            with cancellation.at_once():
                said = sys.stdin.readline().strip().lower()
            if said not in ("y", "yes"):
                raise Stopped("command", "was not confirmed", "nothing was done")


def progress_told(end: Ending) -> Callable[[Progress], None]:
    """Progress as plain lines on a pipe, as a bar that moves on a terminal; now and then, and once more at the end of a pass."""
    last_s = [0.0]
    last_end: list[object] = [None]

    def told(progress: Progress) -> None:
        ended = (progress.name, progress.sweep, progress.rows_examined) if progress.ended else None
        again, last_end[0] = ended == last_end[0], ended
        if again if ended else waits.now_s() - last_s[0] < TELL_EVERY_S:
            return
        last_s[0] = waits.now_s()
        if end.console.is_terminal:
            _draw(end.console, progress)
        else:
            end.console.print(passing.line(progress), markup=False)

    return told


def _draw(console: Console, progress: Progress) -> None:
    """One line that the next one overwrites; red while the pass is paused."""
    colour = "red" if progress.paused_for else "green"
    console.print(ProgressBar(total=max(1, progress.rows_estimated), completed=progress.rows_examined, width=BAR_COLUMNS,
                              complete_style=colour, finished_style=colour), end="")
    room = console.width - BAR_COLUMNS - 1
    console.print(f" {passing.line(progress)}"[:room].ljust(room), end="\r", markup=False)


def perform(request: Asked, database: Target, end: Ending, ask: Ask, *, prefect: bool) -> None:
    """Carry out *request*; its result goes into *end*, its errors are raised."""
    confirm = ask.confirm if sys.stdin.isatty() else None
    result = (_with_prefect(request, database, end, confirm) if prefect else None) or _plainly(request, database, end, confirm)
    say(end, result)


def say(end: Ending, result: actions.Result) -> None:
    """*result* into the document, and in lines for a person."""
    end.document |= result.to_json()
    end.say(f"{result.outcome}" + (f": {', '.join(result.did)}" if result.did else ""))
    for finding in result.warnings:
        end.say(f"warning [{finding.check}] {finding.subject}: {finding.what}; {finding.remedy}")


def _plainly(request: Asked, database: Target, end: Ending, confirm: Callable[[str], bool] | None) -> actions.Result:
    with actions.desk(request, database, confirm, progress_told(end)) as desk:
        if isinstance(request, WatchRequest):
            return watch(desk, request, PlainConductor())
        if isinstance(request, RunRequest):
            return actions.run(desk, request, PlainConductor())
        return actions.rollback(desk, request, PlainConductor())


def _with_prefect(request: Asked, database: Target, end: Ending,
                  confirm: Callable[[str], bool] | None) -> actions.Result | None:
    """
    The result, or None when Prefect could not be reached before anything began, or fell out with us on the way: then the same goes on
    without it. What the body did counts, whatever Prefect makes of it afterwards (case C101).
    """
    cockpit.prepare(quiet=True)
    from prefect import tags  # noqa: PLC0415  # importing Prefect takes seconds

    from flows import api, deployments, one_at_a_time, parity_watch  # noqa: PLC0415  # the same

    why_not = api.why_not()
    if why_not:
        _untold(request, end, why_not)
        return None
    leaving.by_deadline()
    call = deployments.Call(database, confirm, progress_told(end), request)
    call.over = leaving.unstoppable
    texts = ("by", "reason", "settings", "accept", "deployed_by")
    shown = request.model_copy(update={name: masked(getattr(request, name)) for name in texts})  # Prefect stores it in clear
    token = deployments.current.set(call)
    trouble: BaseException | None = None
    try:
        with tags(one_at_a_time.TAG):  # from its first event on: a run that dies without a word is known by it
            if isinstance(request, WatchRequest):
                parity_watch.parity_watch(shown, return_state=True)
            elif isinstance(request, RunRequest):
                deployments.rollout(shown, return_state=True)
            else:
                deployments.rollback(shown, return_state=True)
    except BaseException as caught:  # noqa: BLE001  # Prefect's own trouble is told, the database's is in call.error
        trouble = caught
    finally:
        deployments.current.reset(token)
    untold = call.untold or (api.told(trouble) if trouble and trouble is not call.error else "")
    if untold:
        _untold(request, end, untold, call.flow_run)
    else:
        end.document["prefect"] = {"told": True, "flow_run": call.flow_run}
    if call.error:
        raise call.error
    if call.result is None and trouble and not isinstance(trouble, Exception):
        raise trouble  # a signal, before anything began
    return call.result


def _untold(request: Asked, end: Ending, why: str, flow_run: str | None = None) -> None:
    """Say once what Prefect missed, and the command that tells it later; the exit code is the database work's."""
    remedy = f"rollout report {shlex.quote(request.plan)} --sync"
    end.document["prefect"] = {"told": False, "flow_run": flow_run, "reason": why, "remedy": remedy}
    end.say(f"Prefect could not be told ({why}); the ledger has all of it, and `{remedy}` tells it later")
