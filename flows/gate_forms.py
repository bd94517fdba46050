"""What Prefect asks of whoever answers a suspended run. Nothing that decides has a default: the server refuses an empty resume."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field, StringConstraints

from flows import cockpit
from steps.approvals import APPROVAL
from steps.phase import Phase

cockpit.prepare()

from prefect.input import Keyset, RunInput, keyset_from_base_key  # noqa: E402  # only after the settings above

KEYS = "suspended-"
"""How Prefect's keys begin of what is asked of a suspended run."""
Said = Annotated[str, StringConstraints(min_length=1, max_length=500, pattern=r"\S")]


class Decision(StrEnum):
    """Whether the phase may begin."""

    APPROVE = "approve"
    REJECT = "reject"


class Approval(RunInput):
    """What a person answers at a gate. Nothing that decides has a default."""

    decision: Decision = Field(description="Whether the phase may begin. Rejected, the run ends, and the next run asks anew.")
    approver: Said = Field(description="Who decides. Recorded in the audit trail.")
    reason: Said = Field(description="Why. Recorded in the audit trail.")


class CleanupApproval(Approval):
    """The same for cleanup, which has conditions of its own."""

    although_unready: bool = Field(default=False, description="Approve although conditions above are not met.")


class Resumption(RunInput):
    """What a person says who looks whether the time has come."""

    reason: Said = Field(description="Why now. Recorded in the audit trail. Too early, the run is suspended again.")


class Confirmation(RunInput):
    """A person's word that something outside is so."""

    confirmed_by: Said = Field(description="Who has seen that it is so. Recorded in the audit trail.")
    note: Said = Field(description="What was seen, or the ticket. Recorded in the audit trail.")


def form_of(phase: Phase, needs: str) -> type[RunInput]:
    """What is asked at a gate of *phase* that *needs* an approval, or only its time."""
    if needs != APPROVAL:
        return Resumption
    return CleanupApproval if phase is Phase.CLEANUP else Approval


def keys_of(key: str) -> Keyset:
    """Where Prefect keeps what was answered to a run that was suspended under *key*."""
    return keyset_from_base_key(f"{KEYS}{key}")
