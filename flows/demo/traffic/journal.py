"""
What the clients did, one JSON line at a time: the memory that the judge reads, across processes.

How the last acknowledged write of a job is known: every write notes `held`, the system-wide monotonic clock, *after*
its UPDATE was answered and *before* it sends COMMIT, that is, while it holds the row's lock. The next writer of the row
gets the lock only after that COMMIT, so `held` orders the writes of one row strictly, whichever process made them
(all processes must run on one machine). No token in the row is needed, so clients write what Prisma would write.

A client that asks an application over HTTP notes the clock before it asks; the application's answer brings the clock
that it took itself, where others may write the same row.

A write is on record before its COMMIT is sent and is acknowledged by a second line: what a killed process or a lost
connection leaves without the second line may or may not have happened, and the judge accepts both.
"""

import itertools
import json
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

SUFFIX = ".journal"
Values = dict[str, Any]


def plain(column: str, value: Any) -> Any:
    """Return *value* in the one form in which the journal keeps it and the judge compares it."""
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds")
    if column == "validatedOutput" and value is not None:
        return json.dumps(json.loads(value), sort_keys=True)
    return value


@dataclass
class Write:
    """
    One write of one job: *values* are logical and plain; *acked* is the clock at its acknowledgement, if it came.

    *kind* is `create`, `update`, `delete`, or `replace`: of what the row said before, nothing is left.
    """

    job: str
    kind: str
    held: int
    generation: str
    label: str
    values: Values
    queued: bool = False
    executed: bool = False
    acked: int | None = None
    stack: str = ""


@dataclass(frozen=True)
class Read:
    """One detail read between the clocks *begun* and *ended*: the word it *saw* as its state, None for no row."""

    job: str
    begun: int
    ended: int
    saw: str | None
    generation: str
    label: str
    stack: str = ""


class Journal:
    """
    One process's journal; every line is in the file when the method returns. Used by all its threads.

    *stack* names what the application is made of; empty for our own clients.
    """

    def __init__(self, file: Path, label: Callable[[], str], stack: str = "") -> None:
        self._file = file.open("a", encoding="utf-8")
        self._lock, self._label, self._numbers, self._stack = threading.Lock(), label, itertools.count(), stack

    def intend(self, generation: str, job: str, kind: str, values: Values, marks: Values) -> int:
        """Record a write whose row lock is held now and whose COMMIT is about to be sent; return its number."""
        number = next(self._numbers)
        known = {name: plain(name, value) for name, value in values.items()}
        held = time.monotonic_ns()
        self._append(write=number, job=job, kind=kind, held=held, generation=generation, values=known, **marks)
        return number

    def acknowledge(self, number: int, held: int | None = None, by: str | None = None) -> None:
        """
        Record that the COMMIT of write *number* was acknowledged, *by* that generation.

        *held* is the clock under its row lock. Both are given where they are known only now.
        """
        known = {"held": held, "by": by}
        self._append(ack=number, at=time.monotonic_ns(), **{name: value for name, value in known.items() if value is not None})

    def withdraw(self, number: int) -> None:
        """Record that write *number* did not happen: MySQL rolled it back, or no row fitted."""
        self._append(void=number)

    def saw(self, generation: str, job: str, begun: int, word: str | None) -> None:
        """Record a detail read that began at the clock *begun* and has just ended."""
        self._append(read=job, begun=begun, ended=time.monotonic_ns(), saw=word, generation=generation)

    def close(self) -> None:
        """Safe to repeat."""
        self._file.close()

    def _append(self, **line: Any) -> None:
        if "generation" in line:
            line |= {"label": self._label(), "stack": self._stack}
        with self._lock:
            self._file.write(json.dumps(line) + "\n")
            self._file.flush()


@dataclass
class History:
    """
    Everything remembered in one folder: per job its writes in the order in which they happened, and all detail reads.

    *cut* is the clock before the first file was read: what ended before it is complete here, also while clients run.
    *pending* are the jobs that waited before the first client of all started.
    """

    cut: int
    chains: dict[str, list[Write]] = field(default_factory=dict)
    reads: list[Read] = field(default_factory=list)
    pending: frozenset[str] = frozenset()


def read_history(folder: Path) -> History:
    """Merge the journals in *folder*. Safe while clients run; a torn last line is left out."""
    history = History(time.monotonic_ns())
    chains: dict[str, list[Write]] = defaultdict(list)
    for file in sorted(folder.glob(f"*{SUFFIX}")):
        writes: dict[int, Write] = {}
        for line in _lines(file):
            if "write" in line:
                number = line.pop("write")
                writes[number] = Write(**line)
            elif "ack" in line:
                write = writes[line["ack"]]
                write.acked, write.held = line["at"], line.get("held", write.held)
                write.generation = line.get("by", write.generation)
            elif "void" in line:
                del writes[line["void"]]
            elif "read" in line:
                history.reads.append(Read(line.pop("read"), **line))
        for write in writes.values():
            chains[write.job].append(write)
    history.chains = {job: sorted(chain, key=lambda write: write.held) for job, chain in chains.items()}
    history.pending = _first_pending(folder)
    return history


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            if line.endswith("\n"):
                yield json.loads(line)


def note_pending(file: Path, jobs: list[str]) -> None:
    """Write down the *jobs* waiting before this process's clients start, beside its *file*."""
    at = time.monotonic_ns()
    file.with_suffix(".pending").write_text(json.dumps({"at": at, "jobs": jobs}), encoding="utf-8")


def _first_pending(folder: Path) -> frozenset[str]:
    notes = [json.loads(file.read_text(encoding="utf-8")) for file in folder.glob("*.pending")]
    return frozenset(min(notes, key=lambda note: int(note["at"]))["jobs"]) if notes else frozenset()
