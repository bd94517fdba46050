"""The demo's last page: what the traffic saw, what each phase did, and where the audit trail is."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table

from flows import report as reports
from flows import report_page
from flows.demo.traffic import Fleet, Report
from steps import plan_loader
from steps.ledger import Ledger
from steps.masking import mask
from steps.mysql import Session
from steps.rollout import Person, opened
from steps.target import Target

REASON = "a look at the demo's own record"
TABLE, PLAN = "AiAnalysisJob", "ai_analysis_job"


def told(console: Console, database: Target, fleet: Fleet, ui: str, seconds: float) -> bool:
    """Print the tables; return whether nothing failed, nothing was wrong and no job ran twice."""
    report, wrong = fleet.report(), fleet.final_check()
    console.print(_traffic(report))
    with Session(database) as session:
        console.print(_phases(Ledger(session, database.schema, TABLE, PLAN)))
    failed = sum(report.failed.values())
    rows = [("requests sent", report.requests), ("failed", failed),
            ("metadata-lock deadlocks (1213, retryable)", report.deadlocks),
            ("old snapshots (1412, retryable)", report.snapshots), ("wrong reads", report.wrong_reads),
            ("jobs run twice", report.run_twice),
            ("acknowledged writes", report.acknowledged_writes), ("of these wrong on either side afterwards", len(wrong)),
            ("longest stall of a request", f"{report.longest_request_ms:.0f} ms"), ("whole demo", f"{seconds:.0f} s")]
    summary = Table("what", "how much", title="Demo", title_justify="left")
    for what, how_much in rows:
        summary.add_row(what, str(how_much))
    console.print(summary)
    for example in report.examples[:5]:
        console.print(f"  {example}", markup=False)
    console.print(f"audit trail: Prefect UI {ui}/runs, and the ledger tables _rollout_* (`rollout report {PLAN}`)", markup=False)
    return not (failed or report.wrong_reads or report.run_twice or wrong)


def _traffic(report: Report) -> Table:
    table = Table("while", "requests", "failed", "1213", "1412", "wrong", "twice", "longest ms", title="Traffic", title_justify="left")
    for label, counts in report.phases.items():
        table.add_row(label, str(counts.requests), str(sum(counts.failed.values())), str(counts.deadlocks), str(counts.snapshots),
                      str(counts.wrong_reads), str(counts.run_twice), f"{counts.longest_request_ms:.0f}")
    return table


def _phases(ledger: Ledger) -> Table:
    """Time and rows by run and phase, from the audit trail."""
    table = Table("run", "phase", "seconds", "rows", title="Phases", title_justify="left")
    runs = {run["run_id"]: f"{number}. {run['verb']}, exit {run['exit_code']}" for number, run in enumerate(ledger.runs(), 1)}
    spent: dict[tuple[str, str], list[float]] = {}
    for event in ledger.events():
        if event["step"].startswith("hold for"):
            continue  # its statements are counted one by one
        total = spent.setdefault((runs[event["run_id"]], event["phase"]), [0.0, 0.0])
        total[0] += (event["duration_ms"] or 0) / 1000
        total[1] += event["row_count"] or 0
    for (run, phase), (took_s, rows) in spent.items():
        table.add_row(run, phase, f"{took_s:.2f}", f"{rows:.0f}")
    return table


def report_to(file: Path, database: Target) -> None:
    """Write everything on record as one page into *file*."""
    with opened(plan_loader.load(PLAN), database, Person("demo", REASON)) as rollout:
        file.write_text(mask(report_page.page(reports.whole(rollout), rollout)), encoding="utf-8")
