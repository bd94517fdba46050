"""How long a hold has lasted, and whether another move fits: on a server slower than estimated it is given back in time."""

from __future__ import annotations

from steps import waits

GIVE_BACK_SHARE = 0.7


class HoldClock:
    """Begins with the hold; *max_stall_ms* is the plan's."""

    def __init__(self, max_stall_ms: int) -> None:
        self.max_stall_ms = max_stall_ms
        self.began_s = waits.now_s()
        self.estimated_ms = 0.0

    @property
    def elapsed_ms(self) -> float:
        return (waits.now_s() - self.began_s) * 1000

    def fits(self, estimate_ms: float) -> bool:
        """Whether what should take *estimate_ms* can still be begun; the first move always. Estimates follow what moves took so far."""
        if not self.estimated_ms:
            return True
        pace = max(1.0, self.elapsed_ms / self.estimated_ms)
        return self.elapsed_ms + estimate_ms * pace < self.max_stall_ms * GIVE_BACK_SHARE

    def did(self, estimate_ms: float) -> None:
        """Count a move that was estimated so."""
        self.estimated_ms += max(1.0, estimate_ms)
