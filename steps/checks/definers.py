"""Triggers of the table whose definer does not exist: every write that fires them fails (1449), the canary's as well."""

from __future__ import annotations

from steps.checks.finding import Finding, Look, could_not_look, unavailable
from steps.errors import StatementFailed
from steps.mysql import VALUE

NAME = "definers"


def run(look: Look) -> list[Finding]:
    """Our own triggers take the account that runs the rollout, as the server itself names it. One look at the accounts."""
    own = str(look.session.value("SELECT CURRENT_USER()"))
    by_definer: dict[str, list[str]] = {}
    for program in look.programs:
        if program.own and program.definer != own:
            by_definer.setdefault(program.definer, []).append(program.name)
    found: list[Finding] = []
    for definer, triggers in sorted(by_definer.items()):
        names = ", ".join(sorted(triggers))
        try:
            known = look.session.value(f"SELECT COUNT(*) FROM mysql.user WHERE User = {VALUE} AND Host = {VALUE}",
                                       *definer.rsplit("@", 1))
        except StatementFailed as error:
            if not unavailable(error):
                raise
            return [*found, could_not_look(NAME, f"definer {definer} of trigger {names}", error, "warn")]
        if not known:
            found.append(Finding(
                NAME, "refuse", f"trigger {names}",
                f"belongs to {definer}, an account that does not exist: every write that fires it fails (1449)",
                "make the account, or make the trigger again with a DEFINER that exists"))
    return found
