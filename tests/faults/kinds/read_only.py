"""The server is switched to super_read_only and back, as a failover or a full disk does it (cases C26, C84)."""

from __future__ import annotations

import threading

from tests.faults.kinds.kind import Kind
from tests.faults.scene import Scene

AT_ONCE_S = 0.3
LONGEST_S = 20


def switched_on(scene: Scene) -> None:
    """It comes as soon as the server lets it: inside a hold that is when the hold ends. Off when the tool has ended."""
    switching = threading.Thread(target=_switch, args=(scene,), daemon=True)
    switching.start()
    switching.join(AT_ONCE_S)
    try:
        scene.struck()
        scene.wait()
    finally:
        switching.join(LONGEST_S)
        with scene.client() as send:
            send("SET GLOBAL super_read_only = 0")
            send("SET GLOBAL read_only = 0")


def _switch(scene: Scene) -> None:
    with scene.client() as send:
        send("SET GLOBAL super_read_only = 1")


KINDS = (Kind("super_read_only", switched_on, points=6),)
