"""
`python -m tests.applications.traffic_table`: real applications through every phase and back, and the table of what they saw.

Each scenario has a database and applications of its own. Exit 0 when the default path kept its promises: nothing failed, no wrong
read, no job run twice, no acknowledged write lost, no gap longer than `max_stall_ms`; and when `path=adr` showed the failures it must.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from deploy.mysql_server import provide
from flows import cockpit
from flows.demo.show import SEES_LONG_STATEMENTS
from flows.demo.traffic import Counts, Report, WrongRow, seed
from flows.demo.traffic.session import Session
from flows.params import Through
from steps.errors import RolloutError
from steps.rollout import Rollout
from steps.step import Step
from tests.applications.proxied_stage import ProxiedStage
from tests.applications.rolling import RATE_PER_S
from tests.applications.stage import Labelled, Stage

ROWS, SOAK_S = 500, 2.0
PACE_MS = 3 * 1000 / RATE_PER_S  # what a gap is without any stall, now and then
FAULTY = "cplantedbyafaultyv1000000"
CLEANUP = ("cleanup",)
HEADING = ("scenario", "phase", "generation", "requests", "failed", "retryable", "wrong reads", "run twice", "longest gap ms")
PHASES_BACK = (Through.SHADOW_WRITE, Through.VERIFY, Through.BACKFILL, Through.DEPLOY, Through.PRE_DEPLOY)


@dataclass
class Scenario:
    """
    What a scenario left: its labels in order, all counts, the rows that are wrong, and the error that ended it, if one did.

    *soaked* are the labels under which traffic had to run for a while.
    """

    name: str
    labels: list[str]
    report: Report
    wrong: list[WrongRow]
    ending: str | None
    seconds: float
    soaked: list[str] = field(default_factory=list)


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
    session = Session(stage.url, "faulty-release")
    session.run("DELETE FROM AiAnalysisJob WHERE id = %s", FAULTY)
    session.close()
    stage.forward()
    stage.soak("V1 alone", SOAK_S)


SCENARIOS: dict[str, Callable[[Stage], None]] = {
    "default path": through_cleanup, "verify fails": verify_fails, "every phase back": every_phase_back,
    "own shadow write": own_shadow_write, "path=adr": the_adrs_own_path, "one by one": one_by_one}
STAGES: dict[str, type[Stage]] = {"one by one": ProxiedStage}


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


def played(server_url: str, name: str) -> Scenario:
    """Play the scenario *name* on a database of its own, which is removed afterwards."""
    began, ending = time.monotonic(), None
    url = f"{server_url}traffic_{[*SCENARIOS].index(name)}"
    session = Session(server_url + "mysql", "traffic-table")
    session.run(f"DROP DATABASE IF EXISTS `{url.rpartition('/')[2]}`")
    seed(url, ROWS)
    with tempfile.TemporaryDirectory(prefix="rollout-traffic-") as folder, STAGES.get(name, Stage)(url, Path(folder)) as stage:
        try:
            SCENARIOS[name](stage)
        except RolloutError as error:
            ending = f"{name} ended with exit {error.exit_code}: {error}"
        report, wrong = stage.ended()
    session.run(f"DROP DATABASE `{url.rpartition('/')[2]}`")
    session.close()
    return Scenario(name, stage.labels, report, wrong, ending, time.monotonic() - began, stage.soaked)


def markdown(scenarios: list[Scenario]) -> str:
    """One table over all of them."""
    lines = [f"| {' | '.join(HEADING)} |", f"|{'---|' * len(HEADING)}"]
    for scenario in scenarios:
        sides = scenario.report.sides
        for label, side in sorted(sides, key=lambda key, labels=scenario.labels: (labels.index(key[0]), key[1])):
            counts = sides[label, side]
            lines.append(f"| {scenario.name} | {label} | {side} | {' | '.join(_figures(counts))} |")
        lines.append(f"| **{scenario.name}** | all, {scenario.seconds:.0f} s | all | {' | '.join(_figures(scenario.report))} |")
    return "\n".join(lines)


def _figures(counts: Counts) -> list[str]:
    kinds = ", ".join(f"{kind}: {count}" for kind, count in counts.failed.items())
    retryable = [f"{number}: {count}" for number, count in ((1213, counts.deadlocks), (1412, counts.snapshots)) if count]
    return [str(counts.requests), f"{counts.failures} ({kinds})" if kinds else "0", ", ".join(retryable) or "0", str(counts.wrong_reads),
            str(counts.run_twice), f"{counts.longest_gap_ms:.0f}"]


def broken_promises(scenario: Scenario, max_stall_ms: int = 1000) -> list[str]:
    """What *scenario* shows that must not be, or fails to show what must be."""
    report = scenario.report
    found = [scenario.ending] if scenario.ending else []
    if scenario.name == "path=adr":
        found = found if "exit 5" not in str(scenario.ending) else []
        return found + ([] if report.failed.get("P2022") else [f"{scenario.name}: no P2022, although V0's columns were renamed"])
    found += [f"{scenario.name}: nobody wrote in {label!r}" for label in scenario.soaked
              if not report.phases.get(label, Counts()).acknowledged_writes]
    wrong = [row for row in scenario.wrong if row.id != FAULTY]
    for what, count in {"failed": report.failures, "wrong reads": report.wrong_reads, "run twice": report.run_twice,
                        "acknowledged writes lost or wrong": len(wrong)}.items():
        found += [f"{scenario.name}: {what}: {count} ({'; '.join(report.examples[:3])})"] if count else []
    gaps = [f"{label} {side} {counts.longest_gap_ms:.0f} ms" for (label, side), counts in report.sides.items()
            if counts.longest_gap_ms > max_stall_ms + PACE_MS]
    if not gaps and report.longest_gap_ms > max_stall_ms + PACE_MS:
        gaps = [f"no success since {report.longest_gap_ms:.0f} ms"]
    return found + ([f"{scenario.name}: gaps longer than {max_stall_ms} ms: {', '.join(gaps)}"] if gaps else [])


def main() -> int:
    """Entry point; scenarios by name, or all of them."""
    names = sys.argv[1:] or [*SCENARIOS]
    cockpit.log_to(sys.stderr)
    with provide(options=SEES_LONG_STATEMENTS) as server:
        scenarios = []
        for name in names:
            scenarios.append(played(server.url, name))
            sys.stderr.write(f"{markdown(scenarios[-1:])}\n")
    broken = [line for scenario in scenarios for line in broken_promises(scenario)]
    endings = [scenario.ending for scenario in scenarios if scenario.ending and scenario.ending not in broken]
    sys.stdout.write("\n".join([markdown(scenarios), "", *endings, *(broken or ["every promise was kept"]), ""]))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
