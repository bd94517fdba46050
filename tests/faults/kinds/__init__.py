"""
The kinds of faults. To add one, write a function that plays it and put it into :data:`KINDS`, in the module of its subject.

A kind is played like this (:mod:`tests.faults.judge`): the command is started in the state it begins in and comes to the point, where its
victim stops and waits. Then ``play(scene)`` is called. It strikes, lets the victim go on (``scene.goes_on()`` returns at once,
``scene.wait()`` with its end), and mends what it broke before it returns; a victim that it has left waiting is waited for afterwards.
Then living clients are let in, the same command is run again until it ends with 0, and all that is left must be what an undisturbed
run leaves. `play` may look on the way and add to ``scene.wrong``.

Faults that strike later than at the point call ``scene.struck()`` at that moment, so that the time to notice is counted from there.
"Inside a statement" is ``with scene.writes_wait(): scene.goes_on(); scene.seen_waiting(); …``.

`around` is for what has to stand from before the command until after its last try: a proxy, a disk, a replica, a clock. It is
entered with the standing world, once for all cases of this kind in a row, and yields the world that they see: the same one, a copy with
another ``url`` for the tool (subclass World), or one of its own (``tests.faults.world.opened(environment=…, options=…)``).
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from tests.faults.kinds import clock, cockpit, connections, disk, failover, locks, network, operators, read_only, server, signals, tool
from tests.faults.kinds.kind import Kind, anywhere, owned
from tests.faults.world import World

__all__ = ["KINDS", "Kind", "anywhere", "owned", "surrounded"]
MODULES = (tool, signals, server, connections, network, locks, read_only, operators, failover, disk, clock, cockpit)
KINDS: dict[str, Kind] = {kind.name: kind for module in MODULES for kind in module.KINDS}


def surrounded(world: World, kind: Kind) -> AbstractContextManager[World]:
    """*world* as cases of *kind* see it."""
    return kind.around(world) if kind.around else nullcontext(world)
