"""
The Prefect flows that change something: `rollout`, `rollback` and one rollback for each phase. :mod:`flows.served` deploys them.

The flows hold no logic: parameters in, an action called with a conductor, its ending turned into a state with a name.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from flows import actions, cockpit, descriptions, lives
from flows.params import FORM, Request, RollbackRequest, RunRequest, Through, UndoPreDeploy
from flows.states import KIND_NAMES, STATE_NAMES
from steps import __version__
from steps.cancellation import Cancelled
from steps.errors import EXIT_CODES, RolloutError, WrongUsage
from steps.masking import mask
from steps.passes import Progress
from steps.rollout import Rollout
from steps.target import Target, target_of

cockpit.prepare()

from prefect import flow  # noqa: E402  # only after the settings above
from prefect.client.schemas.objects import State  # noqa: E402
from prefect.flows import Flow  # noqa: E402
from prefect.states import Cancelled as CancelledState  # noqa: E402
from prefect.states import Completed, Failed  # noqa: E402

from flows import gates, hearing, one_at_a_time, reopening  # noqa: E402
from flows.tasks import PrefectConductor  # noqa: E402


class Call:
    """
    What the command line hands to a flow that must not become a stored parameter, and what comes back: a result or what was raised.

    Neither of them when Prefect's own trouble kept the work from beginning or cut it short. `untold` says what Prefect missed, and why.
    `over` is called once there is one of them.
    """

    over: Callable[[], None] = staticmethod(lambda: None)

    def __init__(self, database: Target | None = None, confirm: Callable[[str], bool | str] | None = None,
                 told: Callable[[Progress], None] = lambda _: None, request: Request | None = None) -> None:
        self.database, self.confirm, self.told, self.request = database, confirm, told, request
        self.result: actions.Result | None = None
        self.error: Exception | Cancelled | None = None
        self.flow_run: str | None = None
        self.untold = ""


current: ContextVar[Call | None] = ContextVar("rollout_call", default=None)


def database_of(name: str) -> Target:
    """The database that the parameter *name* means: `env`, or `secret:NAME` for a Prefect Secret block."""
    if name == "env":
        return target_of(None)
    if name.startswith("secret:"):
        from prefect.blocks.system import Secret  # noqa: PLC0415  # only where one is asked for

        try:
            block: Any = Secret.load(name.removeprefix("secret:"))
        except ValueError:
            raise WrongUsage(f"database {name}", "there is no Prefect Secret block of that name", "make the block, or use env") from None
        return target_of(str(block.get()))
    raise WrongUsage(f"database {name}", "is known on the command line only", "use env or secret:NAME")


def failed_state(error: RolloutError) -> State[Any]:
    """How a run that *error* ended stands in a list."""
    name = KIND_NAMES.get(type(error).__name__) or STATE_NAMES.get(error.exit_code, "Failed")
    return Failed(name=name, message=mask(f"{error} (exit {error.exit_code}: "
                  f"{EXIT_CODES[error.exit_code]})"))


def cancelled_state(cancelled: Cancelled) -> State[Any]:
    """How a run that was asked to stop, and did, stands in a list."""
    return CancelledState(message=f"{cancelled.reason}; {cancelled.remedy}")


def _told(request: Request, action: Callable[[Rollout, PrefectConductor], actions.Result]) -> State[Any]:
    """Run *action* and end the flow with a state that a list of runs can be read by; errors never look green."""
    call, conduct = current.get() or Call(), PrefectConductor()
    call.flow_run = conduct.flow_run
    cockpit.log_to()

    def alone(rollout: Rollout) -> actions.Result:
        forward = isinstance(request, RunRequest)
        hearing.catch_up(rollout)
        if gates.in_deployment():
            _hear(rollout, conduct, forward=forward)
        if isinstance(request, RunRequest | RollbackRequest):
            one_at_a_time.look(rollout, forward=forward)
        done = action(rollout, conduct)
        if gates.in_deployment() and forward and done.did:
            done.did = [*dict.fromkeys([*lives.phases_done(rollout), *done.did])]
        return done

    try:
        database = call.database or database_of(request.database)
        call.result = gates.carried_out(call.request or request, database, call.confirm, call.told, conduct.flow_run, alone)
    except RolloutError as error:
        call.error = error
        return failed_state(error)
    except Cancelled as cancelled:
        call.error = cancelled
        return cancelled_state(cancelled)
    except Exception as fault:
        call.error = fault
        raise
    finally:
        if call.result or call.error:
            call.over()
        call.untold = conduct.untold
    name = "NothingToDo" if call.result.outcome == "nothing to do" else "Completed"
    return Completed(name=name, message=f"{call.result.outcome}: {', '.join(call.result.did)}" if call.result.did else call.result.outcome)


def _hear(rollout: Rollout, conduct: PrefectConductor, *, forward: bool) -> None:
    """What was said to the run while it was suspended, as :func:`flows.hearing.heard`; where that ends it, its summary says so, too."""
    reopening.withdraw(rollout)
    try:
        hearing.heard(rollout, conduct.flow_run, forward=forward)
    except RolloutError as error:
        with conduct.shown(rollout, "run" if forward else "rollback"):
            raise error from None


@flow(name="rollout", flow_run_name="rollout {request.plan} by {request.by}", persist_result=False, version=__version__,
      description=descriptions.ROLLOUT)
def rollout(request: RunRequest = FORM) -> State[Any]:
    """Take one table and its application through the phases of its plan, from where they stand."""
    return _told(request, lambda desk, conduct: actions.run(desk, request, conduct))


@flow(name="rollback", flow_run_name="rollback {request.plan} by {request.by}", persist_result=False, version=__version__,
      description=descriptions.ROLLBACK)
def rollback(request: RollbackRequest = FORM) -> State[Any]:
    """Go back: to the end of a phase, or to V0."""
    return _told(request, lambda desk, conduct: actions.rollback(desk, request, conduct))


def _rollback_of(phase: Through) -> Flow[[Any], State[Any]]:
    """The flow that undoes one phase; what it undoes and leaves is the table in the README."""

    def back(request: Request) -> State[Any]:
        asked = {name: value for name, value in request.model_dump().items() if name != "to"}
        one = RollbackRequest.model_validate(asked | {"phase": phase})
        return _told(one, lambda desk, conduct: actions.rollback(desk, one, conduct))

    def undo(request: Request = FORM) -> State[Any]:
        return back(request)

    def undo_pre_deploy(request: UndoPreDeploy = FORM) -> State[Any]:
        return back(request)

    chosen: Any = undo_pre_deploy if phase is Through.PRE_DEPLOY else undo
    chosen.__name__ = chosen.__qualname__ = f"rollback_{phase.value}"
    chosen.__doc__ = f"Undo phase {phase.value}; refused while a later phase stands."
    return flow(name=f"rollback_{phase.value}", flow_run_name=f"rollback_{phase.value} " + "{request.plan} by {request.by}",
                persist_result=False, version=__version__, description=descriptions.rollback_of(phase))(chosen)


rollback_pre_deploy = _rollback_of(Through.PRE_DEPLOY)
rollback_deploy = _rollback_of(Through.DEPLOY)
rollback_backfill = _rollback_of(Through.BACKFILL)
rollback_verify = _rollback_of(Through.VERIFY)
rollback_shadow_write = _rollback_of(Through.SHADOW_WRITE)
rollback_cleanup = _rollback_of(Through.CLEANUP)
