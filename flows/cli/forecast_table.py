"""The table of steps that `rollout rehearse` and `rollout plan` print: each way with algorithm, rebuild, lock and estimate."""

from __future__ import annotations

from typing import Any

from rich.table import Column, Table

from steps import forecast

LOCKS = forecast.LOCKS
REBUILDS = {True: "yes", False: "no", None: "unknown"}


def forecast_table(steps: list[dict[str, Any]], title: str) -> Table:
    """Two lines a step: forward, and its way back."""
    table = Table(Column("step", overflow="fold"), "way", Column("algorithm", no_wrap=True), "rebuilds", "others meet", "goes", "estimate",
                  "basis", title=title, title_justify="left")
    for step in steps:
        for side, label in (("up", "forward"), ("down", "back")):
            way = step[side]
            checks = "" if way["foreign_key_checks"] else ", foreign_key_checks=0"
            table.add_row(step["step"] if side == "up" else "", label, way["algorithm"] + checks, REBUILDS[way["rebuilds"]],
                          LOCKS[way["locks"]], "alone" if way["alone"] else "in a hold", f"{way['estimate_ms']:,.0f} ms", way["basis"])
    return table
