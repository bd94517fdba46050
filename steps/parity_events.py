"""What the parity watch has left in the ledger; who watches is not this module's business."""

from __future__ import annotations

import json
from typing import Any

from steps.ledger import Ledger
from steps.mysql import VALUE

STEP, CLEAN, FOUND = "parity watch", "clean", "found"


def last(ledger: Ledger) -> dict[str, Any] | None:
    """The last look's outcome, time (UTC) and detail; None where nobody has looked. One read."""
    rows = ledger.read(f"SELECT at, outcome, detail FROM {ledger.table('event')} WHERE table_schema = {VALUE} AND table_name = {VALUE} "
                       f"AND plan_id = {VALUE} AND step = {VALUE} ORDER BY id DESC LIMIT 1", *ledger.key, STEP)
    if not rows:
        return None
    at, outcome, detail = rows[0]
    return {"at": at.isoformat(timespec="milliseconds") + "Z", "outcome": str(outcome),
            "detail": json.loads(detail) if isinstance(detail, str) else dict(detail)}


def lost(ledger: Ledger) -> str | None:
    """In words that the last look found rows that differ; None if it did not."""
    look = last(ledger)
    if not look or look["outcome"] != FOUND:
        return None
    return f"the parity watch of {look['at']} found {look['detail'].get('differing', 'some')} rows that differ, and none was clean since"
