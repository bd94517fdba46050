"""The run is asked to stop, by Ctrl-C or SIGTERM, once or without end (cases C94, C102): it ends with 4, or 0 where all is done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable

from tests.faults.kinds.kind import STOPPED, Kind
from tests.faults.scene import Scene

BETWEEN_S = 0.02


def asked_by(number: signal.Signals) -> Callable[[Scene], None]:
    def play(scene: Scene) -> None:
        scene.send(number)
        scene.wait()

    return play


def asked_without_end(scene: Scene) -> None:
    """Both by turns until it has ended, on its way out too."""
    ended = threading.Event()

    def pelt() -> None:
        while not ended.wait(BETWEEN_S):
            for number in (signal.SIGTERM, signal.SIGINT):
                scene.send(number)

    pelting = threading.Thread(target=pelt, daemon=True)
    scene.send(signal.SIGTERM)
    pelting.start()
    try:
        scene.wait()
    finally:
        ended.set()
        pelting.join()


KINDS = (
    *(Kind(f"asked to stop: {number.name}", asked_by(number), ends=STOPPED) for number in (signal.SIGTERM, signal.SIGINT)),
    Kind("asked to stop without end", asked_without_end, ends=STOPPED),
)
