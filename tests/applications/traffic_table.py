"""
`python -m tests.applications.traffic_table`: real applications through every phase and back, and the table of what they saw.

With names of scenarios as arguments, those alone; with `--readme` the table goes into the README beside this file, too. Each scenario has
a database and applications of its own. Exit 0 when the default path kept its promises: nothing failed, no wrong read, no job run twice, no
acknowledged write lost, no gap longer than `max_stall_ms`; and when `path=adr` showed the failures it must.
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from deploy.mysql_server import provide
from flows import cockpit
from flows.demo.show import SEES_LONG_STATEMENTS
from flows.demo.traffic import Counts, Report, WrongRow, seed
from flows.demo.traffic.session import Session
from steps.errors import RolloutError
from tests.applications.scenarios import FAULTY, SCENARIOS, STAGES
from tests.applications.stage import Stage

ROWS = 500
HEADING = ("scenario", "phase", "generation", "requests", "failed", "retryable", "wrong reads", "run twice", "longest gap ms")
README = Path(__file__).with_name("README.md")
BLOCK = re.compile(r"(<!-- begin traffic -->\n).*?(<!-- end traffic -->)", re.DOTALL)


@dataclass
class Scenario:
    """
    What a scenario left: its labels in order, all counts, the rows that are wrong, and the error that ended it, if one did.

    *soaked* are the labels under which traffic had to run for a while, *pace_ms* is what a gap is without any stall, now and then.
    """

    name: str
    labels: list[str]
    report: Report
    wrong: list[WrongRow]
    ending: str | None
    seconds: float
    soaked: list[str] = field(default_factory=list)
    pace_ms: float = Stage.pace_ms


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
    return Scenario(name, stage.labels, report, wrong, ending, time.monotonic() - began, stage.soaked, stage.pace_ms)


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


def render(text: str, scenarios: list[Scenario]) -> str:
    """The README's *text* with the table made anew. Safe to repeat."""
    return BLOCK.sub(lambda found: f"{found[1]}{markdown(scenarios)}\n{found[2]}", text)


def _figures(counts: Counts) -> list[str]:
    kinds = ", ".join(f"{kind}: {count}" for kind, count in counts.failed.items())
    retryable = [f"{number}: {count}" for number, count in ((1213, counts.deadlocks), (1412, counts.snapshots)) if count]
    return [str(counts.requests), f"{counts.failures} ({kinds})" if kinds else "0", ", ".join(retryable) or "0", str(counts.wrong_reads),
            str(counts.run_twice), f"{counts.longest_gap_ms:.0f}"]


def broken_promises(scenario: Scenario, max_stall_ms: int = 1000) -> list[str]:
    """What *scenario* shows that must not be, or fails to show what must be."""
    report, longest_ms = scenario.report, max_stall_ms + scenario.pace_ms
    found = [scenario.ending] if scenario.ending else []
    if scenario.name == "path=adr":
        found = found if "exit 5" not in str(scenario.ending) else []
        return found + ([] if report.failed.get("P2022") else [f"{scenario.name}: no P2022, although V0's columns were renamed"])
    found += [f"{scenario.name}: nobody wrote in {label!r}" for label in scenario.soaked
              if not report.phases.get(label, Counts()).acknowledged_writes]
    written: Counter[str] = Counter()
    for (_, side), counts in report.sides.items():
        written[side] += counts.acknowledged_writes
    found += [f"{scenario.name}: {side} wrote nothing" for side, count in written.items() if scenario.soaked and not count]
    wrong = [row for row in scenario.wrong if row.id != FAULTY]
    for what, count in {"failed": report.failures, "wrong reads": report.wrong_reads, "run twice": report.run_twice,
                        "acknowledged writes lost or wrong": len(wrong)}.items():
        found += [f"{scenario.name}: {what}: {count} ({'; '.join(report.examples[:3])})"] if count else []
    gaps = [f"{label} {side} {counts.longest_gap_ms:.0f} ms" for (label, side), counts in report.sides.items()
            if counts.longest_gap_ms > longest_ms]
    if not gaps and report.longest_gap_ms > longest_ms:
        gaps = [f"no success since {report.longest_gap_ms:.0f} ms"]
    return found + ([f"{scenario.name}: gaps longer than {max_stall_ms} ms: {', '.join(gaps)}"] if gaps else [])


def main() -> int:
    """Entry point; scenarios by name, or all of them."""
    into_readme = "--readme" in sys.argv
    names = [name for name in sys.argv[1:] if name != "--readme"] or [*SCENARIOS]
    cockpit.log_to(sys.stderr)
    with provide(options=SEES_LONG_STATEMENTS) as server:
        scenarios = []
        for name in names:
            scenarios.append(played(server.url, name))
            sys.stderr.write(f"{markdown(scenarios[-1:])}\n")
    if into_readme:
        README.write_text(render(README.read_text(encoding="utf-8"), scenarios), encoding="utf-8")
    broken = [line for scenario in scenarios for line in broken_promises(scenario)]
    endings = [scenario.ending for scenario in scenarios if scenario.ending and scenario.ending not in broken]
    sys.stdout.write("\n".join([markdown(scenarios), "", *endings, *(broken or ["every promise was kept"]), ""]))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
