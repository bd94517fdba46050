"""An audit trail as the ledger gives it, without a ledger: for pages and pictures of things that take weeks, or that nobody would do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from flows import phase_facts

STARTED = datetime(2026, 11, 2, 9, 0, tzinfo=UTC)
HOSTILE = ("<script>alert(1)</script> ![x](http://evil.example/y.png) | `cell` **bold** [link](javascript:alert(1)) </details>\n# head\n"
           "\u202egnp.exe\u200b \x1b[31m 数据 \U0001f600 &amp; {{ 7 * 7 }} '\"")


def at(seconds: float) -> str:
    return (STARTED + timedelta(seconds=seconds)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Trail:
    """Grows run by run and event by event; `document` is what :func:`flows.report.audit_trail` would give."""

    def __init__(self, table: str = "shop.Job", plan: str = "p") -> None:
        self.table, self.plan = table, plan
        self.runs: list[dict[str, Any]] = []
        self.beside: list[dict[str, Any]] = []
        self._number = 0

    def run(self, began_s: float, seconds: float | None, exit_code: int | None = 0, outcome: str | None = "done", **more: Any) -> None:
        self.runs.append({"run_id": f"r{len(self.runs)}", "verb": "run", "actor": "ann", "reason": "CHG-1", "host": "h", "options": {},
                          "tool_version": "0", "started_at": at(began_s), "ended_at": None if seconds is None else at(began_s + seconds),
                          "exit_code": exit_code, "outcome": outcome, "events": []} | more)

    def event(self, at_s: float, phase: str, step: str, outcome: str = "done", **more: Any) -> dict[str, Any]:
        self._number += 1
        row = {"id": self._number, "run_id": self.runs[-1]["run_id"] if self.runs else "-", "at": at(at_s), "phase": phase,
               "direction": "forward", "step": step, "outcome": outcome, "statement": None, "duration_ms": None, "row_count": None,
               "detail": {}} | more
        (self.runs[-1]["events"] if self.runs and row["run_id"] != "-" else self.beside).append(row)
        return row

    @property
    def document(self) -> dict[str, Any]:
        runs = [run | {"went_back": phase_facts.went_back(run)} for run in self.runs]
        return {"table": self.table, "plan": self.plan, "runs": runs, "beside": self.beside, "phases": {}}


def weeks() -> Trail:
    """Forward, a failed verify that goes back by itself, forward again two weeks later, with watches of the soak between."""
    trail = Trail()
    trail.run(0, 40)
    trail.event(3, "pre_deploy", "010_add", duration_ms=40.0, statement="ALTER TABLE `Job` ADD COLUMN `a` INT",
                detail={"algorithm": "INSTANT"})
    trail.event(3.5, "pre_deploy", "hold for 3 objects", duration_ms=900.0, detail={"waited_for_gap_s": 0.6, "held_ms": 120.0})
    trail.event(20, "pre_deploy", "pass first", "resumed", duration_ms=5000.0, detail={"why": "number of running threads is 90, over 60"})
    trail.event(30, "pre_deploy", "pace of pass first", duration_ms=20000.0, row_count=20000, detail={
        "rows per s": 1000, "worked s": 20.0, "paused s": 5.0, "intervals": [[n, 1.0, 1000, 80.0 + n, 300.0] for n in range(25)]})
    trail.event(30, "pre_deploy", "first pass", duration_ms=25000.0, row_count=19000, detail={"examined": 20000, "left": 0})
    trail.event(36, "deploy", "command for v1", duration_ms=5000.0, statement="./deploy.sh v1")
    trail.run(100, 20, 5, "table Job: 1 of 20000 rows disagree", actor="ben", reason="CHG-2")
    trail.event(105, "verify", "look at rows", "fail", duration_ms=4000.0, row_count=20000, detail={
        "verdict": "fail", "queries": 5, "wrong": ["1 of 20000 rows disagree (status: 1; keys: c7)"], "unclear": []})
    trail.event(110, "deploy", "command for v0", duration_ms=3000.0, direction="back", statement="./deploy.sh v0")
    trail.run(14 * 86400, 60, actor="carol", reason="CHG-3")
    trail.event(14 * 86400 + 20, "deploy", "command for v1", duration_ms=5000.0, statement="./deploy.sh v1")
    trail.event(14 * 86400 + 40, "shadow_write", "parity", duration_ms=4000.0, row_count=20000, detail={"differ": 0, "keys": []})
    for day in range(14, 20):
        trail.event(day * 86400 + 90000, "shadow_write", "parity watch", "found" if day == 17 else "clean", run_id="-", detail={
            "rows_examined": 20000, "differing": 3 if day == 17 else 0, "complete": day != 18})
    return trail
