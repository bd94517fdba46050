"""One report over all processes of a folder: their counters, and what the judge finds in their journals."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flows.demo.traffic.failure import Kind
from flows.demo.traffic.journal import History, Read, Write, read_history
from flows.demo.traffic.judge import run_twice, wrong_reads

SUFFIX = ".report"


@dataclass
class Counts:
    """
    What the traffic saw. `failed` counts by MySQL's number, or an application's code, every error but 1213
    (`deadlocks`) and 1412 (`snapshots`).

    `longest_gap_ms` is between two successes of any clients of one process, so at least what the rate makes it.
    """

    requests: int = 0
    failed: Counter[Kind] = field(default_factory=Counter)
    deadlocks: int = 0
    snapshots: int = 0
    wrong_reads: int = 0
    run_twice: int = 0
    acknowledged_writes: int = 0
    longest_request_ms: float = 0
    longest_gap_ms: float = 0

    @property
    def failures(self) -> int:
        """Return the number of failed requests, without deadlocks and snapshots."""
        return sum(self.failed.values())

    def add(self, other: "Counts") -> None:
        """Add *other*'s counts; of the times the longer ones stay."""
        for name, value in vars(other).items():
            if name.startswith("longest"):
                setattr(self, name, max(getattr(self, name), value))
            elif name in COUNTED:
                setattr(self, name, getattr(self, name) + value)


COUNTED = ("requests", "failed", "deadlocks", "snapshots", "wrong_reads", "run_twice", "acknowledged_writes")


@dataclass
class Report(Counts):
    """
    All phases together, each by its label, each label's sides, and the first wrong things by name, without contents.

    A side is the generation that answered, with the stack of its application where it has one: `v0`, `v0 prisma`.
    """

    phases: dict[str, Counts] = field(default_factory=dict)
    sides: dict[tuple[str, str], Counts] = field(default_factory=dict)
    examples: list[str] = field(default_factory=list)


def read_report(folder: Path) -> Report:
    """Read the reports and journals in *folder*. Safe while clients run; costs one reading of all journals."""
    report = Report()
    for file in sorted(folder.glob(f"*{SUFFIX}")):
        _add_counters(report, file)
    _add_judgement(report, read_history(folder))
    for (label, _), counts in report.sides.items():
        report.phases.setdefault(label, Counts()).add(counts)
        report.add(counts)
    return report


def last_line(file: Path) -> dict[str, Any]:
    """Return the newest whole line of a process's report; empty when there is none yet."""
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    whole = text[: text.rfind("\n") + 1].splitlines()
    line: dict[str, Any] = json.loads(whole[-1]) if whole else {}
    return line


def _add_counters(report: Report, file: Path) -> None:
    line = last_line(file)
    for numbers in line.get("counts", []):
        label, answered, wrong = numbers.pop("label"), numbers.pop("answered"), numbers.pop("wrong")
        numbers["failed"] = Counter({_kind(kind): count for kind, count in numbers["failed"].items()})
        _side(report, label, answered, line["stack"]).add(Counts(**numbers, wrong_reads=sum(wrong.values())))
        report.examples += [f"{label}: {what} is not as its client wrote it" for what in wrong][:5]
    if line:
        report.longest_gap_ms = max(report.longest_gap_ms, line["silent_ms"])


def _add_judgement(report: Report, history: History) -> None:
    for write in (write for chain in history.chains.values() for write in chain if write.acked):
        _of(report, write).acknowledged_writes += 1
    for read in wrong_reads(history):
        _of(report, read).wrong_reads += 1
    for write in run_twice(history):
        _of(report, write).run_twice += 1
    report.examples += _named(history)


def _named(history: History) -> Iterator[str]:
    for read in wrong_reads(history)[:10]:
        yield f"{read.label}: {read.generation} read {read.job} not as it was written last"
    for write in run_twice(history)[:10]:
        yield f"{write.label}: {write.generation} executed {write.job}, which was not queued"


def _of(report: Report, seen: Write | Read) -> Counts:
    return _side(report, seen.label, seen.generation, seen.stack)


def _side(report: Report, label: str, generation: str, stack: str) -> Counts:
    return report.sides.setdefault((label, f"{generation} {stack}".strip()), Counts())


def _kind(written: str) -> Kind:
    """MySQL's numbers are numbers again; JSON keys are always text."""
    return int(written) if written.lstrip("-").isdigit() else written
