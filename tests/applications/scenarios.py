"""The scenarios of `make traffic`: what the rollout does to a stage with live applications, step by step."""

from __future__ import annotations

from collections.abc import Callable

from flows.demo.traffic.session import Session
from flows.params import Through
from steps.errors import RolloutError
from steps.rollout import Rollout
from steps.step import Step
from tests.applications.proxied_stage import ProxiedStage
from tests.applications.stage import HabitStage, Labelled, Stage

SOAK_S = 2.0
FAULTY = "cplantedbyafaultyv1000000"
CLEANUP = ("cleanup",)
PHASES_BACK = (Through.SHADOW_WRITE, Through.VERIFY, Through.BACKFILL, Through.DEPLOY, Through.PRE_DEPLOY)


class FaultyRelease(Labelled):
    """After the deploy V1 writes one row that no trigger can repair: finished for V0, locked for V1."""

    def phase(self, name: str, steps: list[Step], rollout: Rollout) -> None:
        super().phase(name, steps, rollout)
        if name == "2. deploy":
            session = Session(self.stage.url, "faulty-release")
            session.run("INSERT INTO AiAnalysisJob (id, userId, jobType, status, lifecycleStatus, updatedAt) "
                        "SELECT %s, MIN(id), 'active-recall', 'completed', 'locked', UTC_TIMESTAMP(3) FROM `User`", FAULTY)
            session.close()


def through_cleanup(stage: Stage) -> None:
    """The default path, V0 to V2."""
    stage.start("v0")
    stage.soak("V0 alone", SOAK_S)
    stage.forward()
    stage.soak("V0 and V1", SOAK_S)
    stage.forward("cleanup.cooling_s=0", accept=CLEANUP, through=Through.CLEANUP)
    stage.soak("V2 alone", SOAK_S)


def verify_fails(stage: Stage) -> None:
    """A planted fault: verify fails and V0 is back by itself, sync still on."""
    stage.start("v0")
    expect(5, lambda: stage.forward(conductor=FaultyRelease(stage)))
    stage.soak("V0 again, sync on", SOAK_S)


def every_phase_back(stage: Stage) -> None:
    """Forward, then phase by phase back; forward again to tombstones, and back from cleanup."""
    stage.start("v0")
    stage.forward()
    for phase in PHASES_BACK:
        stage.back(phase=phase)
        stage.soak(f"after the rollback of {phase.value}", SOAK_S / 2)
    stage.forward()
    stage.forward("cleanup.cooling_s=3600", accept=CLEANUP, through=Through.CLEANUP)
    stage.soak("V2 beside tombstones", SOAK_S)
    stage.back(phase=Through.CLEANUP)
    stage.soak("after the rollback of cleanup", SOAK_S)


def own_shadow_write(stage: Stage) -> None:
    """V1 writes both sides itself beside the triggers, stops, begins again, and V2 takes over from it."""
    stage.start("v0")
    stage.forward(*stage.switch())
    stage.soak("V1's own and triggers", SOAK_S)
    stage.back(*stage.switch(), phase=Through.SHADOW_WRITE)
    stage.soak("triggers alone", SOAK_S)
    stage.forward(*stage.switch())
    stage.forward("cleanup.cooling_s=0", *stage.switch(), accept=CLEANUP, through=Through.CLEANUP)
    stage.soak("V2 alone", SOAK_S)


def the_adrs_own_path(stage: Stage) -> None:
    """
    Renames in place under a running V0, which is accepted: its failures are counted, not avoided.

    What V1 wrote between deploy and backfill may make verify fail; then all goes back to V0 by itself.
    """
    stage.start("v0")
    stage.soak("V0 alone", SOAK_S)
    stage.forward("path=adr", "reconcile.conflict=new", accept=["rename-in-place"])
    stage.soak("V0 and V1", SOAK_S)


def one_by_one(stage: Stage) -> None:
    """Instances behind one address: V1 replaces V0 one by one, verify fails, V0 replaces V1 likewise; then all again, and it stays."""
    stage.start("v0")
    stage.soak("V0 alone", SOAK_S)
    expect(5, lambda: stage.forward(conductor=FaultyRelease(stage)))
    stage.soak("V0 again, sync on", SOAK_S)
    mend(stage)
    stage.forward()
    stage.soak("V1 alone", SOAK_S)


def habits(stage: Stage) -> None:
    """REPLACE, upserts, many rows at once, a row twice, the queue's moves, deletions: forward, every way back, cleanup, and on to V2."""
    stage.start("v0")
    stage.soak("V0 alone", SOAK_S)
    if not any(finding.check == "positional" and "REPLACE" in finding.what for finding in stage.forward().warnings):
        raise RolloutError("scenario", "nobody warned of V0's REPLACE", "look at the check `positional`")
    stage.soak("V0 and V1", SOAK_S)
    for phase in PHASES_BACK:
        stage.back(phase=phase)
        stage.soak(f"after the rollback of {phase.value}", SOAK_S / 2)
    expect(5, lambda: stage.forward(conductor=FaultyRelease(stage)))
    stage.soak("V0 again, sync on", SOAK_S)
    mend(stage)
    stage.forward()
    stage.forward("cleanup.cooling_s=3600", accept=CLEANUP, through=Through.CLEANUP)
    stage.soak("V2 beside tombstones", SOAK_S)
    stage.back(phase=Through.CLEANUP)
    stage.soak("after the rollback of cleanup", SOAK_S)
    stage.forward("cleanup.cooling_s=0", accept=CLEANUP, through=Through.CLEANUP)
    stage.soak("V2 alone", SOAK_S)


def mend(stage: Stage) -> None:
    """Take away what :class:`FaultyRelease` wrote."""
    session = Session(stage.url, "faulty-release")
    session.run("DELETE FROM AiAnalysisJob WHERE id = %s", FAULTY)
    session.close()


def expect(code: int, act: Callable[[], object]) -> None:
    """
    Raises:
        RolloutError: *act* ended otherwise than with exit *code*; where it ended well, the fault was not there to be met.
    """
    try:
        act()
    except RolloutError as error:
        if error.exit_code != code:
            raise
    else:
        raise RolloutError("scenario", f"ended well instead of with exit {code}", "plant the fault again")


SCENARIOS: dict[str, Callable[[Stage], None]] = {
    "default path": through_cleanup, "verify fails": verify_fails, "every phase back": every_phase_back,
    "own shadow write": own_shadow_write, "path=adr": the_adrs_own_path, "one by one": one_by_one, "habits": habits}
STAGES: dict[str, type[Stage]] = {"one by one": ProxiedStage, "habits": HabitStage}
