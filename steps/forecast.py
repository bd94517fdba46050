"""
What each step will cost, told with what the figure rests on: the statement forward and back, the first pass, what goes together.

Figures are :mod:`steps.estimates`'s; what the server accepts, whether it builds the table anew and what others meet was
learned in the rehearsal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from steps import catalogue, ddl, estimates, handover
from steps.ddl import Group, Move
from steps.ladder import Way
from steps.phase import Phase
from steps.rehearsal import DOWN, UP, Rehearsed
from steps.rollout import Rollout

LOCKS = {"metadata": "an instant", "none": "none while it works, an instant at both ends", "shared": "writes wait", None: "unknown"}
"""What others meet, by the lock that the rehearsal learned."""
PASS_MS = 0.7  # for each row that disagrees, triggers and pauses included; README, "What was measured"
PAUSES = 1.25  # a pass rests a quarter of the time it works
FEWEST_ROWS = 20  # below this a sample's time is mostly the statement's own


@dataclass(frozen=True)
class Forecast:
    """How long something should take, and the sum behind it in words."""

    ms: float
    basis: str


def of_way(way: Way, rows: int, slowness: float) -> Forecast:
    """The estimate of one statement with its basis."""
    fixed, each = estimates.COST_MS[way.algorithm]
    built = estimates.built_indexes(way)
    parts = [f"{fixed:g} ms"]
    if way.fk_checks_off:
        parts.append(f"0.001 ms × {rows:,} estimated rows")
    elif way.algorithm == "COPY":
        parts.append(f"{each:g} ms × {rows:,} estimated rows")
    elif way.algorithm == "INPLACE" and built:
        parts.append(f"{each:g} ms × {rows:,} estimated rows × {built} index{'es' if built > 1 else ''}")
    if way.algorithm == "INPLACE" and way.rebuilds:
        parts.append(f"{estimates.COST_MS['COPY'][1]:g} ms × {rows:,} estimated rows built anew")
    text = " + ".join(parts)
    if slowness > 1:
        text = f"({text}) × slowness {slowness:.1f}" if len(parts) > 1 else f"{text} × slowness {slowness:.1f}"
    return Forecast(estimates.estimate_ms(way, rows) * slowness, text)


def of_handover(rows: int, slowness: float) -> Forecast:
    """The estimate of a copy that another tool makes; clients go on meanwhile."""
    fixed, each = handover.COST_MS
    text = f"{fixed:g} ms + {each:g} ms × {rows:,} estimated rows"
    return Forecast(handover.estimate_ms(rows) * slowness, f"({text}) × slowness {slowness:.1f}" if slowness > 1 else text)


def of_first_pass(rehearsed: Rehearsed, rows: int) -> Forecast | None:
    """The first pass over all rows; from the sample's own share and time where there is one. None without pairs."""
    sample = rehearsed.sample
    if not rehearsed.pairs:
        return None
    if sample is None or sample.pass_ms is None or sample.rows < FEWEST_ROWS:
        return Forecast(PASS_MS * rows * rehearsed.slowness, f"{PASS_MS:g} ms × {rows:,} estimated rows × slowness "
                        f"{rehearsed.slowness:.1f}, as if every row disagreed")
    each = sample.pass_ms / sample.rows
    return Forecast(each * PAUSES * rows, f"{each:.3f} ms × {rows:,} estimated rows × {PAUSES:g} for pauses, measured on "
                    f"{sample.rows} sampled rows, of which {sample.changed} disagreed")


def steps(rollout: Rollout) -> list[dict[str, Any]]:
    """Every stair of the ladder, up and down, as `rollout rehearse` and `rollout plan` print it; field names are stable."""
    ladder = rollout.ladder()
    rows = catalogue.estimated_rows(rollout.session, rollout.schema, rollout.table)
    alone = {UP: _alone(rollout, 0, ladder.top, rows), DOWN: _alone(rollout, ladder.top, 0, rows)}
    return [{"step": stair.name, "phase": Phase(stair.phase).value, "after_first_pass": stair.after_first_pass,
             **{side: told(rollout, way, rows, stair.name, side) | {"alone": stair.name in alone[side]}
                for side, way in ((UP, stair.up), (DOWN, stair.down))}} for stair in ladder.stairs]


def told(rollout: Rollout, way: Way, rows: int, step: str, side: str) -> dict[str, Any]:
    """One direction of a step as JSON; what was not learned in this rehearsal is null."""
    rehearsed = rollout.rehearsed()
    learned = rehearsed.learned.get((step, side))
    forecast = of_way(way, rows, rehearsed.slowness)
    handed_over = handover.is_due(rollout, way, forecast.ms)
    if handed_over:
        forecast = of_handover(rows, rehearsed.slowness)
    return {"algorithm": handover.ALGORITHM if handed_over else way.algorithm, "foreign_key_checks": int(not way.fk_checks_off),
            "rebuilds": learned.rebuilds if learned else None, "locks": learned.lock if learned else None,
            "in_place_lock": learned.in_place_lock if learned else None, "estimate_ms": round(forecast.ms, 1), "basis": forecast.basis,
            "clone_ms": learned.clone_ms if learned else None, "refused": learned.refused if learned else {}}


def _alone(rollout: Rollout, start: int, end: int, rows: int) -> set[str]:
    """The steps that go outside of any hold on the way from *start* to *end*."""
    ladder = rollout.ladder()
    found: list[Move] = ddl.moves(ladder, start, end, rows, rollout.slowness)
    groups: list[Group] = ddl.grouped(found, rollout, rows, with_sync=False)
    return {move.stair.name for group in groups if not group.in_hold for move in group.moves}
