"""
Every Prefect flow of the product: `rollout`, `rollback` and one rollback for each phase. Each is a deployment of its own.

The flows hold no logic: parameters in, an action called with a conductor, its ending turned into a state with a name.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from flows import actions, cockpit
from flows.params import Request, RollbackRequest, RunRequest, Through
from flows.states import STATE_NAMES
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

from flows import gates  # noqa: E402
from flows.tasks import CockpitTrouble, PrefectConductor  # noqa: E402

TAG = "mysql-rollout"


class Call:
    """
    What the command line hands to a flow that must not become a stored parameter, and what comes back: a result or what was raised.

    Neither of them when Prefect's own trouble kept the work from beginning or cut it short. `untold` says what Prefect missed, and why.
    """

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


def _told(request: Request, action: Callable[[Rollout, PrefectConductor], actions.Result]) -> State[Any]:
    """Run *action* and end the flow with a state that a list of runs can be read by; errors never look green."""
    call, conduct = current.get() or Call(), PrefectConductor()
    call.flow_run = conduct.flow_run
    cockpit.log_to()
    try:
        database = call.database or database_of(request.database)
        call.result = gates.carried_out(call.request or request, database, call.confirm, call.told, conduct.flow_run,
                                        lambda rollout: action(rollout, conduct))
    except RolloutError as error:
        call.error = error
        return Failed(name=STATE_NAMES.get(error.exit_code, "Failed"), message=mask(f"{error} (exit {error.exit_code}: "
                      f"{EXIT_CODES[error.exit_code]})"))
    except Cancelled as cancelled:
        call.error = cancelled
        return CancelledState(message=f"{cancelled.reason}; {cancelled.remedy}")
    except CockpitTrouble as trouble:
        conduct.untold = str(trouble)
        raise
    except Exception as fault:
        call.error = fault
        raise
    finally:
        call.untold = conduct.untold
    name = "NothingToDo" if call.result.outcome == "nothing to do" else "Completed"
    return Completed(name=name, message=f"{call.result.outcome}: {', '.join(call.result.did)}" if call.result.did else call.result.outcome)


@flow(name="rollout", flow_run_name="rollout {request.plan} by {request.by}", persist_result=False)
def rollout(request: RunRequest) -> State[Any]:
    """Take one table and its application through the phases of its plan, from where they stand."""
    return _told(request, lambda desk, conduct: actions.run(desk, request, conduct))


@flow(name="rollback", flow_run_name="rollback {request.plan} by {request.by}", persist_result=False)
def rollback(request: RollbackRequest) -> State[Any]:
    """Go back: to the end of a phase, or to V0."""
    return _told(request, lambda desk, conduct: actions.rollback(desk, request, conduct))


def _rollback_of(phase: Through) -> Flow[[RollbackRequest], State[Any]]:
    """The flow that undoes one phase; what it undoes and leaves is the table in the README."""

    def undo(request: RollbackRequest) -> State[Any]:
        one = request.model_copy(update={"phase": phase, "to": None})
        return _told(one, lambda desk, conduct: actions.rollback(desk, one, conduct))

    undo.__name__ = undo.__qualname__ = f"rollback_{phase.value}"
    undo.__doc__ = f"Undo phase {phase.value}; refused while a later phase stands."
    return flow(name=f"rollback_{phase.value}", flow_run_name=f"rollback_{phase.value} " + "{request.plan} by {request.by}",
                persist_result=False)(undo)


rollback_pre_deploy = _rollback_of(Through.PRE_DEPLOY)
rollback_deploy = _rollback_of(Through.DEPLOY)
rollback_backfill = _rollback_of(Through.BACKFILL)
rollback_verify = _rollback_of(Through.VERIFY)
rollback_shadow_write = _rollback_of(Through.SHADOW_WRITE)
rollback_cleanup = _rollback_of(Through.CLEANUP)
FLOWS = (rollout, rollback, rollback_pre_deploy, rollback_deploy, rollback_backfill, rollback_verify, rollback_shadow_write,
         rollback_cleanup)


def served() -> list[Any]:
    """
    Every flow as a deployment. Without a concurrency limit of Prefect's: it takes a flow down, wherever that is, once its lease cannot be
    renewed because the API is away; ours is in MySQL, and says Busy.
    """
    from prefect.types.entrypoint import EntrypointType  # noqa: PLC0415  # as the runner

    return [each.to_deployment(name=each.name, tags=[TAG], entrypoint_type=EntrypointType.MODULE_PATH) for each in FLOWS]


def serve() -> None:
    """Serve every flow as a deployment, to be triggered in the UI; ends with SIGTERM or Ctrl-C."""
    from prefect import serve as prefect_serve  # noqa: PLC0415  # pulls in the runner
    from prefect.deployments.runner import RunnerDeployment  # noqa: PLC0415

    prefect_serve(*[deployment for deployment in served() if isinstance(deployment, RunnerDeployment)])
