"""`rollout demo`: a private MySQL, live traffic, the phases and back, in one go."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(keep: Annotated[bool, typer.Option("--keep", help="Leave MySQL and the Prefect UI up until Ctrl-C.")] = False,
         html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write its report as one page.")] = None) -> None:
    """Private MySQL, live traffic of three generations, all six phases, a planted failure, every way back."""
    from flows.demo import show  # noqa: PLC0415  # starts servers; nothing else needs it

    raise typer.Exit(show.run(keep=keep, html=html))
