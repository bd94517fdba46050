"""The stage with several instances of a generation behind one HAProxy, which a deploy replaces one by one."""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import ClassVar, Self

from tests.applications import proxy, replacing, service
from tests.applications.stage import Stage

COUNT = 3
LATENCY_MS = 250  # so that nearly always somebody waits for the instance that is to go


class ProxiedStage(Stage):
    """
    As :class:`Stage`; the load comes through the proxy's address and meets whichever generation is there.

    Only V0 and V1 take turns: before cleanup the clients of the old API are gone, and the proxy has nothing to mix.
    """

    module = "tests.applications.replacing"
    commands: ClassVar = {"deploy.command": "v1", "deploy.rollback_command": "v0"}

    def __enter__(self) -> Self:
        with ExitStack() as started:
            self.proxy = started.enter_context(proxy.running(self.folder / replacing.PROXY))
            started.callback(os.environ.pop, service.LATENCY_NAME, None)
            self._running = started.pop_all()
        os.environ[service.LATENCY_NAME] = str(LATENCY_MS)
        return super().__enter__()

    def __exit__(self, *reason: object) -> None:
        with self._running:
            super().__exit__(*reason)

    def start(self, generation: str, count: int = COUNT) -> None:
        """Put *count* instances of *generation* behind the proxy, and traffic on its address."""
        replacing.come_all(self.url, self.folder, generation, count)

    def instances(self) -> list[str]:
        """Who is behind the proxy, in the order of names."""
        return replacing.names(self.folder)

    def replaced(self) -> list[list[str]]:
        """Who was behind the proxy after each replacement."""
        return [line.split() for line in (self.folder / "replaced").read_text().splitlines()]

    def end(self) -> None:
        """End the clients first, then the instances."""
        for api in (replacing.OLD_API, replacing.NEW_API):
            self.fleet.stop(api)
        for home in (self.folder / replacing.INSTANCES).glob("*"):
            replacing.stop(self.folder, home.name)
