"""The traffic for whoever drives it from Python: processes by generation, one folder for all they leave behind."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

from flows.demo.traffic.judge import WrongRow, final_check
from flows.demo.traffic.process import URL_NAME, alive, stop_file
from flows.demo.traffic.report import SUFFIX, Report, last_line, read_report

ROOT = Path(__file__).resolve().parents[3]
END_S = 30


class FleetBrokenError(RuntimeError):
    """A traffic process did not start, or did not end: nothing can be said about the traffic."""

    def __init__(self, generation: str, what: str, said: str) -> None:
        super().__init__(generation, what, said)
        self.generation, self.what, self.said = generation, what, said

    def __str__(self) -> str:
        return f"traffic of {self.generation} {self.what}: {self.said}"


class Fleet:
    """
    All traffic on the database *url*; its processes leave reports and journals in *folder*, which must be this
    traffic's alone. Leaving the context ends all of it; the processes also end with this one.

    A second Fleet on the same folder, in another process too, sees and steers the same traffic.
    """

    def __init__(self, url: str, folder: Path) -> None:
        self._url, self.folder = url, folder
        self.control = folder / "control"
        self._running: dict[Path, subprocess.Popen[bytes]] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(
        self, generation: str, *, clients: int = 6, rate_per_s: float = 40, seconds: float = 900, ready_s: float = 20,
        watched: int | None = None, application: str | None = None, stack: str = "", module: str = "flows.demo.traffic",
    ) -> None:  # fmt: skip
        """
        Start *clients* of *generation*; return when each has had a success, or after *ready_s* though some had none.

        They ask the *application* at that base URL, made of *stack*; without one they are the application themselves.
        They end with the process *watched*, this one unless told otherwise, 0 for none. *module* is who they are, with the
        arguments of `flows.demo.traffic`.

        Raises:
            FleetBrokenError: the process ended at once; the text says why.
        """
        stop_file(self.control, generation).unlink(missing_ok=True)
        number = 1 + len([*self.folder.glob(f"{generation}-*.log")])
        stem = self.folder / "-".join(filter(None, (generation, str(number), stack)))
        health, report = stem.with_suffix(".healthy"), stem.with_suffix(SUFFIX)
        command = [
            sys.executable, "-m", module, "--generation", generation, "--clients", str(clients),
            "--rate", str(rate_per_s), "--report", str(report), "--control", str(self.control),
            "--health-file", str(health), "--seconds", str(seconds),
            "--watch-pid", str(os.getpid() if watched is None else watched), "--stack", stack,
            *(["--application", application] if application else []),
        ]  # fmt: skip
        with stem.with_suffix(".log").open("wb") as log:
            process = subprocess.Popen(
                command, cwd=ROOT, env={**os.environ, URL_NAME: self._url}, stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, start_new_session=True,
            )  # fmt: skip
        self._running[report] = process
        deadline = time.monotonic() + ready_s
        while not health.exists() and time.monotonic() < deadline:
            if process.poll() is not None:
                raise FleetBrokenError(generation, "ended at once", stem.with_suffix(".log").read_text()[-600:])
            time.sleep(0.02)

    def stop(self, generation: str) -> None:
        """
        End all processes of *generation*, whoever started them; they finish what is in hand. Safe to repeat.

        Raises:
            FleetBrokenError: one has not written its final report within half a minute.
        """
        stop_file(self.control, generation).touch()
        deadline = time.monotonic() + END_S
        ours = [report for report in self._running if report.name.startswith(f"{generation}-")]
        for report in {*self.folder.glob(f"{generation}-*{SUFFIX}"), *ours}:
            process = self._running.pop(report, None)
            while not _ended(report, process):
                if time.monotonic() > deadline:
                    raise FleetBrokenError(generation, "did not end", report.name)
                time.sleep(0.05)
            if process and process.wait(END_S):
                raise FleetBrokenError(generation, "did not end well", report.with_suffix(".log").read_text()[-600:])

    def close(self) -> None:
        """End the processes that this object started. Safe to repeat."""
        for process in self._running.values():
            process.terminate()
        for process in self._running.values():
            process.wait(END_S)
        self._running.clear()

    def label(self, phase: str) -> None:
        """From the next request on, count under *phase*."""
        fresh = self.control.with_name("control.fresh")
        fresh.write_text(phase, encoding="utf-8")
        fresh.replace(self.control)

    def report(self) -> Report:
        """Count and judge all traffic of this folder so far; up to half a second old while clients run."""
        return read_report(self.folder)

    def final_check(self, *, old_side_only: bool = False) -> list[WrongRow]:
        """Hold the table against every acknowledged write, as :func:`judge.final_check` says; all must have ended."""
        return final_check(self._url, self.folder, old_side_only=old_side_only)


def _ended(report: Path, process: "subprocess.Popen[bytes] | None") -> bool:
    line = last_line(report)
    if process:
        return process.poll() is not None
    return bool(line.get("final")) or not alive(int(line.get("pid", 0)))
