"""Conditions of cleanup beside a gate: which of them time alone does not end, and whether a yes was one to them as they are now."""

from __future__ import annotations

import re

from steps.approvals import Gate
from steps.gate_times import Wait

NUMBER, COUNT, KEYS = re.compile(r"\d+"), re.compile(r"\b(\d+) (?:rows?|sessions?)\b"), re.compile(r" \(keys: ([^)]*)\)")


def besides(waits: list[Wait], unmet: list[str]) -> list[str]:
    """Those of *unmet* that time alone does not end."""
    return [one for one in unmet if not any(one.startswith(wait.reason) for wait in waits)]


def ceased(unmet: list[str], gate: Gate) -> list[str]:
    """Those of *unmet* that were not said, or less of them, when *gate* was approved: that yes is not one to them."""
    known = list(gate.answer.get("unmet") or [])
    return [one for one in unmet if not any(_no_worse(one, before) for before in known)]


def _no_worse(now: str, before: str) -> bool:
    """Whether a condition says the same as *before*, with numbers that are no greater, and of no other rows."""
    if NUMBER.sub("", KEYS.sub("", now)) != NUMBER.sub("", KEYS.sub("", before)):
        return False
    rows, rows_before = (set(found[1].split(", ")) if (found := KEYS.search(text)) else set() for text in (now, before))
    counts = zip(COUNT.findall(now), COUNT.findall(before), strict=False)
    return rows <= rows_before and all(int(one) <= int(other) for one, other in counts)
