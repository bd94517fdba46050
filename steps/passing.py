"""What is told of a pass: how far, how fast, how long still, why it waits, which rows the server refused. From the ledger alone."""

from __future__ import annotations

from typing import Any

from steps import control, quarantine
from steps.exact_look import LOOKS, WATCH
from steps.ledger import Ledger
from steps.mysql import VALUE
from steps.pace import Progress

MINUTE_S, HOUR_S = 60, 3600


def passes(ledger: Ledger, *, at_work: bool = True, planned_limit: int | None = None) -> list[dict[str, Any]]:
    """
    One document a pass; looks only while they go on, since what they found is with their phase. Takes no lock; an older tool's ledger
    knows less. *at_work* says whether anybody works on the plan now: a rate is of somebody who works, and what is left of a dead run's
    pause is nobody's. *planned_limit* is the plan's own.
    """
    pace = {str(row[0]): row[1:] for row in ledger.read(
        f"SELECT `pass`, rows_per_s, rows_estimated, paused_for, working_ms, paused_ms FROM {ledger.table('pace')} "
        f"WHERE table_schema = {VALUE} AND table_name = {VALUE} AND plan_id = {VALUE}", *ledger.key)}
    wish = control.wish(ledger)
    limit, standing_pause = wish.rows_per_s or planned_limit, f"paused: {wish.said}" if wish.wanted == control.PAUSE else None
    found = []
    for name, standing in ledger.passes().items():
        rate, estimated, paused_for, working_ms, paused_ms = pace.get(name, (0.0, 0, None, 0, 0))
        ended = standing["finished_at"] is not None
        if name == WATCH or (ended and name in LOOKS):  # the watch is told by itself: it goes on for weeks
            continue
        progress = Progress(name, standing["rows_examined"], standing["rows_changed"], int(estimated), standing["sweep"],
                            float(rate) if at_work else 0.0, paused_for or "", ended, limit)
        found.append(standing | {
            "rows_per_s": round(progress.rows_per_s, 1), "rows_left": progress.rows_left, "eta_s": progress.eta_s,
            "paused_for": None if ended else paused_for if at_work else standing_pause, "limit_rows_per_s": limit,
            "worked_s": int(working_ms) / 1000, "paused_s": int(paused_ms) / 1000, "refused": quarantine.rows(ledger, name)})
    return found


def told(row: dict[str, Any]) -> str:
    """One line of such a document for people."""
    text = f"pass {row['pass']}{_sweep(row['sweep'])}: {row['rows_examined']} rows seen, {row['rows_changed']} filled"
    if row["finished_at"]:
        text += f", finished {row['finished_at']}"
    else:
        text += ", more than the server estimated" if row["rows_left"] is None else f", about {row['rows_left']} left"
        text += f", {row['rows_per_s']:.0f} rows/s{_eta(row['eta_s'])}" if row["rows_per_s"] and not row["paused_for"] else ""
    text += f"; {row['paused_for']}" if row["paused_for"] else ""
    text += f"; limit {row['limit_rows_per_s']} rows/s" if row["limit_rows_per_s"] and not row["finished_at"] else ""
    if row["refused"]:
        text += f"; the server refused {len(row['refused'])} rows: "
        text += "; ".join(f"{refused['key']} ({refused['error']})" for refused in row["refused"][:10])
    return text


def line(progress: Progress) -> str:
    """Progress while it happens: the sweep's own rows; what was filled is of all sweeps."""
    text = f"{progress.name} pass{_sweep(progress.sweep)}: {progress.rows_examined} {_share(progress)}, {progress.rows_changed} filled"
    if progress.paused_for:
        return f"{text}, {progress.paused_for}"
    return text + (f", {progress.rows_per_s:.0f} rows/s{_eta(progress.eta_s)}" if progress.rows_per_s else "")


def _share(progress: Progress) -> str:
    if progress.ended:
        return "rows (100 %)"  # whatever the estimate was
    if progress.rows_left is None:
        return "rows, more than the server estimated"
    return f"of about {progress.rows_estimated} rows ({100 * progress.rows_examined // max(1, progress.rows_estimated)} %)"


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
