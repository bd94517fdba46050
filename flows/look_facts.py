"""What one look of the parity watch came to, in one word and one sentence, from the ledger's event. Prefect-free."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steps.exact_look import WATCH
from steps.parity_looks import CLEAN, FOUND, UNSEEN

Row = dict[str, Any]


def watched(events: Sequence[Row]) -> Row | None:
    """The last look among *events*."""
    return next((event for event in reversed(events) if event["step"] == WATCH), None)


def ended(look: Row) -> str:
    return {FOUND: "parity lost", CLEAN: "done"}.get(look["outcome"], str(look["outcome"]))


def sentence(look: Row) -> str:
    """What was seen; rows by number alone."""
    detail, rows = look["detail"] or {}, f"{look['row_count']} rows looked at"
    if look["outcome"] == FOUND:
        wrong = [f"{detail['differing']} rows differ"] if detail.get("differing") else []
        wrong += [f"sync triggers are {detail['triggers']}"] if detail.get("triggers", "on") != "on" else []
        return f"Parity is lost: {'; '.join([*wrong, *(detail.get('drift') or [])])}. {rows}."
    if look["outcome"] == CLEAN:
        return f"Both sides agree: {rows}, every row of the round."
    if look["outcome"] == UNSEEN:
        return f"Could not look: {'; '.join(detail.get('could_not_look') or [])}."
    held_up = f": {detail['held_up']}" if detail.get("held_up") else ""
    return f"Not to the end{held_up}; {rows}, none differs so far."
