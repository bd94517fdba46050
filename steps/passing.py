"""What is told of a pass: how far, how fast, how long still, why it waits, which rows the server refused. From the ledger alone."""

from __future__ import annotations

from typing import Any

from steps import control, quarantine
from steps.ledger import Ledger
from steps.mysql import VALUE
from steps.pace import Progress

MINUTE_S, HOUR_S = 60, 3600


def passes(ledger: Ledger) -> list[dict[str, Any]]:
    """One document a pass. Takes no lock; an older tool's ledger knows less."""
    pace = {str(row[0]): row[1:] for row in ledger.read(
        f"SELECT `pass`, rows_per_s, rows_estimated, paused_for, working_ms, paused_ms FROM {ledger.table('pace')} "
        f"WHERE table_schema = {VALUE} AND table_name = {VALUE} AND plan_id = {VALUE}", *ledger.key)}
    limit = control.wish(ledger).rows_per_s
    found = []
    for name, standing in ledger.passes().items():
        rate, estimated, paused_for, working_ms, paused_ms = pace.get(name, (0.0, 0, None, 0, 0))
        progress = Progress(name, standing["rows_examined"], standing["rows_changed"], max(int(estimated), standing["rows_examined"]),
                            standing["sweep"], float(rate), paused_for or "")
        at_work = standing["finished_at"] is None
        found.append(standing | {
            "rows_per_s": round(progress.rows_per_s, 1), "rows_left": progress.rows_left if at_work else 0,
            "eta_s": progress.eta_s if at_work else 0, "paused_for": paused_for if at_work else None, "limit_rows_per_s": limit,
            "worked_s": int(working_ms) / 1000, "paused_s": int(paused_ms) / 1000, "refused": quarantine.rows(ledger, name)})
    return found


def told(row: dict[str, Any]) -> str:
    """One line of such a document for people."""
    text = f"pass {row['pass']}{_sweep(row['sweep'])}: {row['rows_examined']} rows seen, {row['rows_changed']} filled"
    if row["finished_at"]:
        text += f", finished {row['finished_at']}"
    else:
        text += f", about {row['rows_left']} left" + ("" if row["paused_for"] else f", {row['rows_per_s']:.0f} rows/s{_eta(row['eta_s'])}")
    text += f"; {row['paused_for']}" if row["paused_for"] else ""
    text += f"; limit {row['limit_rows_per_s']} rows/s" if row["limit_rows_per_s"] and not row["finished_at"] else ""
    if row["refused"]:
        text += f"; the server refused {len(row['refused'])} rows: {', '.join(refused['key'] for refused in row['refused'][:10])}"
    return text


def line(progress: Progress) -> str:
    """Progress while it happens: the sweep's own rows; what was filled is of all sweeps."""
    share = min(100, 100 * progress.rows_examined // max(1, progress.rows_estimated))
    text = (f"{progress.name} pass{_sweep(progress.sweep)}: {progress.rows_examined} of about {progress.rows_estimated} rows ({share} %), "
            f"{progress.rows_changed} filled")
    if progress.paused_for:
        return f"{text}, {progress.paused_for}"
    return text + (f", {progress.rows_per_s:.0f} rows/s{_eta(progress.eta_s)}" if progress.rows_per_s else "")


def _sweep(number: int) -> str:
    """The first way through the table is the pass itself; later ones look for what it had to leave."""
    return f", sweep {number}" if number > 1 else ""


def _eta(seconds: float | None) -> str:
    """Time of work that is left, pauses not foreseen."""
    if seconds is None:
        return ""
    if seconds < MINUTE_S:
        return f", {seconds:.0f} s to go"
    return f", {seconds / MINUTE_S:.0f} min to go" if seconds < HOUR_S else f", {seconds / HOUR_S:.1f} h to go"
