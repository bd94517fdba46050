"""What ways have in common that change the images of named things: which image comes with a generation, and which one to return to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class Imaged(Protocol):
    """A service or a container, and its image in each generation that changes it."""

    @property
    def name(self) -> str: ...

    @property
    def images(self) -> Mapping[Any, str]: ...


class ByImages:
    """`known` is the image of each thing before, by its name; None where it was the new one already."""

    name: str

    def __init__(self, things: Sequence[Imaged]) -> None:
        self._things = things

    def puts_out(self, generation: str) -> bool:
        return bool(self.wanted(generation))

    def cannot_take_back(self, generation: str, known: dict[str, Any]) -> str | None:
        before = self.before(generation, known)
        lost = [name for name, image in before.items() if image is None]
        if lost:
            return (f"the image of {', '.join(lost)} before is not known, because it was the new one already when this began; "
                    f"name {generation} in deploy.{self.name}")
        return None if before else f"this tool did not put the new generation out, and deploy.{self.name} does not name {generation}"

    def before(self, generation: str, known: dict[str, Any]) -> dict[str, str | None]:
        """The image to return to, by name: the recorded one, else the plan's, else None."""
        named = self.wanted(generation)
        return {name: known.get(name) or named.get(name) for name in known or named}

    def wanted(self, generation: str) -> dict[str, str]:
        """The image of each thing that *generation* changes, by name."""
        return {thing.name: image for thing in self._things for of, image in thing.images.items() if of == generation}
