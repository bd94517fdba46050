"""Where commands are disturbed: a server, the process that forks victims, the state in which each command begins, and how it ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flows.demo.traffic.generations import TABLE, V0_COLUMNS
from tests.faults.executioner import Executioner
from tests.faults.stage import Copy, Stage

START = {"run": "baseline", "cleanup": "v1 lives", "back": "shadow write", "back-drop": "shadow write", "back-cleanup": "dropped"}
V0_GOES_ON = (f"UPDATE {TABLE} SET status = 'failed', completedAt = '2026-06-06 06:06:06.666', errorMessage = 'after', "
              "updatedAt = updatedAt WHERE id IN ('c000003', 'c000004')")


@dataclass(frozen=True)
class Theatre:
    """*on_clone* is what the first rehearsal passes; *rehearsed* the file that remembers what it found."""

    stage: Stage
    executioner: Executioner
    states: dict[str, Copy]
    on_clone: list[str]
    rehearsed: str

    def run(self, command: str, *, series: str = "live", at: int = 0, known: bool = True, **more: Any) -> dict[str, Any]:
        """Carry *command* out; it dies at number *at* of *series*. `known`: the rehearsal is remembered instead of made."""
        return self.executioner.run(command, self.stage.url, series=series, at=at, **self.remembered(known=known), **more)

    def remembered(self, *, known: bool) -> dict[str, Any]:
        return {"rehearsed": self.rehearsed} if known else {}

    def enter(self, command: str) -> None:
        """The state in which *command* begins, in a schema of its own."""
        if START[command] == "baseline":
            self.stage.seed()
        else:
            self.stage.restore(self.states[START[command]])

    def clients(self, command: str) -> None:
        """Statements of every generation that lives now; V2's columns are there from the first moment of cleanup to the last."""
        for generation in dict.fromkeys([*self.stage.living(), *(["v2"] if "cleanup" in command else [])]):
            self.stage.use(generation)

    def ending(self, command: str) -> dict[str, Any]:
        """All that is left now; after a way back that keeps the columns, also what the next run makes of them."""
        stage = self.stage
        held = stage.nothing_held()
        if command != "back":
            return {"held": held, **stage.left(), "rows": stage.table()}
        found = {"held": held, **stage.left(), "rows": stage.table(V0_COLUMNS)}
        stage.app.run(V0_GOES_ON)
        again = self.run("run")
        return {**found, "next run": (again["ended"], again["said"]), "then": {**stage.left(), "rows": stage.table()}}

    def undisturbed(self, command: str) -> tuple[list[str], dict[str, Any]]:
        """What *command* passes when nobody disturbs it and no hold is given back for the machine's slowness, and how it ends."""
        self.enter(command)
        self.clients(command)
        told = self.run(command, patient=True)
        assert told["ended"] == 0, told["said"]
        ending = self.ending(command)
        assert (ending["held"], ending["owners"], ending.get("next run", (0, "done"))) == ([], [], (0, "done"))
        return told["passed"]["live"], ending


@contextmanager
def opened(server_url: str, folder: Path, environment: dict[str, str] | None = None) -> Iterator[Theatre]:
    """A theatre on the server at *server_url*; *folder* is for its notes, *environment* is the victims'."""
    stage, rehearsed = Stage(server_url), folder / "rehearsed"
    with Executioner(folder / "log", environment) as executioner:
        stage.seed()
        told = executioner.run("run", stage.url, remember=str(rehearsed))
        assert told["ended"] == 0, told
        states, passed_on_clone = {}, told["passed"]["clone"]
        stage.app.run(f"UPDATE {TABLE} SET lifecycleStatus = 'locked', updatedAt = updatedAt WHERE id = 'c000005'")
        states["shadow write"] = stage.copied()
        for generation in stage.living():
            stage.use(generation)
        states["v1 lives"] = stage.copied()
        told = executioner.run("cleanup", stage.url, rehearsed=str(rehearsed))
        assert told["ended"] == 0, told
        states["dropped"] = stage.copied()
        yield Theatre(stage, executioner, states, passed_on_clone, str(rehearsed))
    stage.end()
    stage.app.close()
