"""What an approval is given for, so that a yes counts for nothing else."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from steps import approvals
from steps.masking import masked
from steps.phase import Phase
from steps.rollout import Rollout


def of(rollout: Rollout, phase: Phase) -> dict[str, Any]:
    """
    What an approval is given for: this plan, from this stair, with these settings and accepted findings. Any other needs another approval.

    The two keys by which people answer the gate itself are none of them.
    """
    settings = rollout.plan.model_dump(mode="json", exclude={"folder", "given", "table_as_written"})
    text = json.dumps(masked(settings), sort_keys=True)
    return {"identity": rollout.plan.identity_hash(), "stair": rollout.position(), "phase": phase.value,
            "accepted findings": sorted(rollout.accepted - {approvals.HIMSELF, approvals.UNREADY}),
            "settings": hashlib.sha256(text.encode()).hexdigest()}
