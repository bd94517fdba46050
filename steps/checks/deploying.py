"""What the plan's way of deploying needs on this machine: better missed before phase 1 than after it."""

from __future__ import annotations

from steps import deploys
from steps.checks.finding import Finding, Look
from steps.errors import Stopped

NAME = "deploying"
ACCEPT = "deploy-unready"


def run(look: Look) -> list[Finding]:
    """Asks nobody but this machine; the deploy system itself is asked when its turn comes."""
    plan = look.plan.deploy
    way = deploys.chosen(plan)
    if way is None:
        return []
    found = []
    try:
        way.ready()
    except Stopped as missing:
        found.append(Finding(NAME, "refuse", missing.subject, f"{missing.reason}: the run would stop at the deploy, after phase 1",
                             missing.remedy, ACCEPT))
    if not plan.command and not way.puts_out("v1"):
        found.append(Finding(NAME, "warn", f"deploy.{way.name}", "does not say what v1 is: a person would have to put it out",
                             "name it there, or set deploy.command"))
    return found
