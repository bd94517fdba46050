"""The tool itself dies: at a point, and while its statement is at the server, which goes on with it all the same (cases C94, C102)."""

from __future__ import annotations

from tests.faults.kinds.kind import HURRY, KILLED, Kind, in_a_statement
from tests.faults.scene import Scene


def killed(scene: Scene) -> None:
    scene.kill()


def killed_in_a_statement(scene: Scene) -> None:
    """The server takes the statement up again just when the same command is started anew."""
    with scene.writes_wait():
        _killed_while_waiting(scene)


def statement_goes_on(scene: Scene) -> None:
    """Somebody starts the command anew at once, while the server is still at the dead tool's statement."""
    with scene.writes_wait():
        _killed_while_waiting(scene)
        told = scene.second_operator()
        if told["ended"] not in (0, 3, 4, 6):
            scene.wrong.append(f"started anew beside the statement, it ended with {told['ended']}: {told.get('said')}")


def _killed_while_waiting(scene: Scene) -> None:
    scene.goes_on()
    scene.hit = bool(scene.seen_waiting())
    scene.struck()
    scene.kill()
    scene.wait()


KINDS = (
    Kind("tool killed", killed, ends=KILLED, points=8),
    Kind("tool killed in a statement", killed_in_a_statement, in_a_statement, ends=KILLED, settings=HURRY),
    Kind("tool killed, its statement goes on", statement_goes_on, in_a_statement, points=3, ends=KILLED, settings=HURRY),
)
