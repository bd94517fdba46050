"""The ways of putting a generation of the application out and taking it back: one a file, behind one protocol. `manual` is a person."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from steps.deploys.command import Command
from steps.deploys.compose import Compose
from steps.deploys.http import Http
from steps.deploys.kubernetes import Kubernetes
from steps.deploys.way import DeployWay
from steps.plan_deploy import Deploy

__all__ = ["WAYS", "DeployWay", "chosen", "forward", "way_back"]

WAYS: dict[str, Callable[[Any], DeployWay]] = {"kubernetes": Kubernetes, "compose": Compose, "http": Http}


def chosen(plan: Deploy) -> DeployWay | None:
    """The way that the plan names for every generation, or None where that is a command or a person."""
    made = WAYS.get(plan.how)
    return made(getattr(plan, plan.how)) if made else None


def forward(plan: Deploy, command: str | None, generation: str) -> DeployWay | None:
    """How *generation* goes out: by *command* if there is one, else as `deploy.how` says, else None for a person."""
    if command:
        return Command(command)
    way = chosen(plan)
    return way if way and way.puts_out(generation) else None


def way_back(plan: Deploy, command: str | None, generation: str, known: dict[str, Any]) -> tuple[DeployWay | None, str]:
    """How to return to *generation*: (a way, or None for a person; why a person, where that is not plain)."""
    if command:
        return Command(command), ""
    way = chosen(plan)
    if way is None:
        return None, ""
    why = way.cannot_take_back(generation, known.get(way.name, {}))
    return (None, why) if why else (way, "")
