"""A pass cut into equal stretches of time, so that its rate and its chunks' times can be drawn afterwards. Bounded, whatever it did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

MOST = 40
SHORTEST_S = 0.1


@dataclass(frozen=True)
class Chunk:
    """When one chunk ended, in seconds since its pass began in this run (pauses count), its rows and how long it took."""

    at_s: float
    rows: int
    took_s: float


def intervals(chunks: Sequence[Chunk], most: int = MOST) -> list[list[float]]:
    """
    `[from s, seconds, rows, median ms, 99th percentile ms]` of each stretch in which a chunk ended, in order, at most *most*.

    Seconds since the pass began in this run, pauses among them: a stretch without any chunk is left out.
    """
    if not chunks:
        return []
    width_s = max(SHORTEST_S, max(chunk.at_s for chunk in chunks) / most)
    stretches: dict[int, list[Chunk]] = {}
    for chunk in chunks:
        stretches.setdefault(min(most - 1, int(chunk.at_s / width_s)), []).append(chunk)
    return [[round(number * width_s, 2), round(width_s, 2), sum(chunk.rows for chunk in some), *_ms(some)]
            for number, some in sorted(stretches.items())]


def _ms(chunks: list[Chunk]) -> tuple[float, float]:
    took = sorted(1000 * chunk.took_s for chunk in chunks)
    return round(took[len(took) // 2], 1), round(took[min(len(took) - 1, len(took) * 99 // 100)], 1)
