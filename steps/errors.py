"""
What can stop a rollout. Every error names its object, the reason and the remedy, keeps them as fields, and knows its exit code.

The fields are the exception's arguments and the text is made of them, so errors compare by value and survive pickling
(Prefect pickles them).
"""

from __future__ import annotations

from typing import Any

EXIT_CODES = {
    0: "done, or nothing to do",
    1: "a fault in the tool",
    2: "wrong usage, or the plan is invalid",
    3: "refused before the first change: nothing was touched",
    4: "stopped or waiting for a person; continues with the same command",
    5: "failed, and rolled back as the plan says",
    6: "another rollout holds this table",
    7: "a rollback failed: needs a person; the message says what stands",
}


class RolloutError(Exception):
    """A rollout could not go on: *subject* is the object, *reason* what is wrong with it, *remedy* what to do now."""

    exit_code = 1
    retryable = False

    def __init__(self, subject: str, reason: str, remedy: str = "") -> None:
        super().__init__(subject, reason, remedy)
        self.subject, self.reason, self.remedy = subject, reason, remedy

    def __str__(self) -> str:
        return f"{self.subject}: {self.reason}" + (f"; {self.remedy}" if self.remedy else "")


class WrongUsage(RolloutError):
    """The command's words do not fit: an unknown plan name, a malformed URL, an unknown phase or key."""

    exit_code = 2


class PlanInvalid(RolloutError):
    """The plan's text is wrong; *subject* is `file:line`."""

    exit_code = 2


class Refused(RolloutError):
    """Nothing was touched, and nothing will be until the reason is gone or acknowledged."""

    exit_code = 3


class FindingsRefused(Refused):
    """Pre-checks found something; *findings* holds each with object, reason, remedy and accept key."""

    def __init__(self, subject: str, reason: str, remedy: str = "", findings: tuple[dict[str, object], ...] = ()) -> None:
        super().__init__(subject, reason, remedy)
        self.args = (subject, reason, remedy, findings)
        self.findings = findings


class Unreachable(Refused):
    """The server cannot be reached or does not let us in; *errno* is MySQL's number, or the driver's where nobody answered."""

    def __init__(self, subject: str, reason: str, remedy: str = "", errno: int = 0) -> None:
        super().__init__(subject, reason, remedy)
        self.args = (subject, reason, remedy, errno)
        self.errno = errno


class Drifted(Refused):
    """The table stands on no stair of the plan's staircase."""


class Stopped(RolloutError):
    """Stopped at a safe edge; the same command continues."""

    exit_code = 4


class NoGap(Stopped):
    """No moment came in which taking an exclusive metadata lock would have killed nobody's transaction (F24)."""


class LockWaited(Stopped):
    """Somebody held the table for longer than we may make others wait."""


class WaitingForPerson(Stopped):
    """A person has to confirm something; *remedy* is the call that does it. *question* is what they would say yes to, if that is enough."""

    def __init__(self, subject: str, reason: str, remedy: str = "", question: str = "") -> None:
        super().__init__(subject, reason, remedy)
        self.args = (subject, reason, remedy, question)
        self.question = question


class GateClosed(Stopped):
    """
    A phase may not begin yet; nothing of it was begun. *gate* holds `gate` (its id), `phase`, `reasons`, `needs` (`approval` or `time`),
    `opens_at` (UTC, where time alone opens it), `until` (then it is asked anew) and `call`.
    """

    def __init__(self, subject: str, reason: str, remedy: str = "", gate: dict[str, Any] | None = None) -> None:
        super().__init__(subject, reason, remedy)
        self.args = (subject, reason, remedy, gate)
        self.gate: dict[str, Any] = gate or {}


class ApprovalMissing(GateClosed, WaitingForPerson):
    """Nobody who may has approved that a phase begins, whatever else it waits for."""

    def __init__(self, subject: str, reason: str, remedy: str = "", gate: dict[str, Any] | None = None) -> None:
        GateClosed.__init__(self, subject, reason, remedy, gate)
        self.args = (subject, reason, remedy, gate)
        self.question = ""


class Rejected(Stopped):
    """A person has said that a phase shall not begin; the next run asks anew."""


class OwnershipLost(Stopped):
    """Our named lock or owner row is gone: another rollout may have taken over (case C93)."""


class RolledBack(RolloutError):
    """The rollout failed and was rolled back as the plan says."""

    exit_code = 5


class Busy(RolloutError):
    """Another rollout holds this table; this run did nothing."""

    exit_code = 6


class RollbackFailed(RolloutError):
    """A way back failed half-way; the text says what stands."""

    exit_code = 7


class VerifyFailed(RolloutError):
    """The rows, the schema or a smoke query are not as the plan says; the plan's on_fail decides what follows."""

    exit_code = 5


class CanaryFailed(Stopped):
    """The sync triggers do not do what the plan says; they were removed again before any client met them."""


class CleanupBroke(RolloutError):
    """Somebody still needed what cleanup had buried; the way back follows by itself."""

    exit_code = 5


class DeployFailed(RolloutError):
    """The deploy or its health command failed or ran over its deadline."""

    exit_code = 5


class ShadowWriteFailed(RolloutError):
    """The command that switches the application's own shadow write on or off failed or ran over its deadline."""

    exit_code = 5


class DeploySystemAway(Stopped):
    """The deploy system gave no answer; what became of a request is not known and must be looked up, never taken for a failure."""

    retryable = True


class StatementFailed(RolloutError):
    """The server answered a statement with an error; *errno* is MySQL's number. Texts that quote row contents are cut."""

    def __init__(self, subject: str, reason: str, remedy: str = "", errno: int = 0) -> None:
        super().__init__(subject, reason, remedy)
        self.args = (subject, reason, remedy, errno)
        self.errno = errno


class LockTimeout(StatementFailed):
    """1205, 1213, 1317 or 3024: the statement was undone and may be tried again after a rollback (cases C06, C60, C61)."""

    retryable = True
    exit_code = 4


class ConnectionLost(StatementFailed):
    """The connection went away; what became of the statement is not known and must be looked up, never repeated blindly."""

    retryable = True
    exit_code = 4
