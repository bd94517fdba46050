"""Whether the rehearsal's refusal tells, in the server's words, what a check has told in plain ones already."""

from __future__ import annotations

import re
from collections.abc import Iterable

from steps.checks import Finding
from steps.errors import Refused

MYSQL_ERROR = re.compile(r"(?:MySQL error |\()(\d{4})\b")
NAME = re.compile(r"[\w$]+")


def repeated(refused: Refused, found: Iterable[Finding], accepted: frozenset[str]) -> bool:
    """
    Whether a finding that stops the run anyway speaks of the same step, object or MySQL error as *refused*.

    A finding that was accepted stops nothing, so it hides nothing; neither does one that could not look.
    """
    said = f"{refused.subject}: {refused.reason}"
    return any(_same(said, finding) for finding in found
               if finding.stops(accepted) and not finding.could_not_look)


def _same(said: str, finding: Finding) -> bool:
    told = f"{finding.subject} {finding.what}"
    if set(MYSQL_ERROR.findall(said)) & set(MYSQL_ERROR.findall(told)):
        return True
    steps = {after.group(1) for after in re.finditer(r"\bstep (\w+)", said)}
    return bool(steps & set(NAME.findall(told)) or _object(finding) & set(NAME.findall(said)))


def _object(finding: Finding) -> set[str]:
    """The column, index, key or constraint that *finding* is about; a table is what all of them are about."""
    kind, _, rest = finding.subject.partition(" ")
    if kind in ("table", "server", "account", "session", "check") and not (kind == "check" and finding.check == "dependents"):
        return set()
    named = rest.removeprefix("column ").removeprefix("key ").split(" ")[0]
    return {named.rpartition(".")[2]} - {""}
