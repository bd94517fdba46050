"""What the Prefect UI says of each deployment, in Markdown: what it does, what it leaves, how its runs end."""

from __future__ import annotations

from flows.params import Through

ENDINGS = """
**How runs end:** `Completed` or `NothingToDo` · `Refused`: nothing was touched · `Stopped`: at a safe edge, the same run continues ·
`RolledBack` · `Busy`: another rollout holds the table, its run is named · `RollbackFailed`: needs a person, see `deploy/runbook.md`.
Starting the same again is always safe: what is done is left alone.
"""

ROLLOUT = f"""
**Forward**: takes one table and its application through the phases of its plan, from where they stand:
*pre_deploy, deploy, backfill, verify, shadow_write* and, when asked for, *cleanup*.

Old and new application keep working throughout. Run **check** and **plan** first.
{ENDINGS}"""

ROLLBACK = f"""
**Back**: undoes the latest phase, everything after a phase, or all of it (`v0`). Give *one* of the two fields.

Added columns stay, unseen by the old application, unless *Also drop what was added* is on.
{ENDINGS}"""

PARITY_WATCH = """
**Look**: one look of the weeks of shadow write: exact parity within a budget of seconds, triggers, drift, who still writes the old side,
and whether cleanup's conditions hold. Changes nothing, holds nothing up. Runs that are suspended for a change window or a soak go on.

Its schedule is off: set its parameters and switch it on when the soak begins. One run of it is scheduled by itself for the time at which
a gate opens that a suspended run waits at.

**How runs end:** `Completed` · `NothingToDo`: no soak to watch · `ParityLost`, `ParityUnseen`: look at the run's message.
"""

UNDOES: dict[Through, tuple[str, str]] = {
    Through.PRE_DEPLOY: ("the sync triggers, once no V1 is left; on request also what was added", "added columns, indexes, widening"),
    Through.DEPLOY: ("V1: the old application goes out again", "sync, so V0 sees all that V1 wrote"),
    Through.BACKFILL: ("nothing: the closing pass counts as not made", "the filled values"),
    Through.VERIFY: ("the record of the proof", "everything"),
    Through.SHADOW_WRITE: ("V1's own shadow write, then the soak", "sync, which belongs to pre_deploy"),
    Through.CLEANUP: ("everything, while V2 runs: columns, indexes, archived values, triggers; then V1 goes out again", "the archive"),
}

CHECK = """
**Look only**: every pre-check and the rehearsal. All findings at once, as a page under *Artifacts*, each with object, reason, remedy and
the key that acknowledges it.

**How runs end:** `Clean` · `ToKnow`: only warnings · `Refused`: a rollout would refuse now.
"""

PLAN = """
**Look only**: what *rollout* would do from here, as a page under *Artifacts*: each step with algorithm, lock, estimate and its way
back, and every statement. Ends `Planned`.
"""

REHEARSE = """
**Look only**: climbs and descends the staircase on a clone in a scratch schema, with triggers, canary and a sample of rows; the live table
is not touched. What the server said of each step is a page under *Artifacts*. Ends `Rehearsed`.
"""


def rollback_of(phase: Through) -> str:
    """Of the flow that undoes *phase*."""
    undoes, leaves = UNDOES[phase]
    return f"""
**Back**: undoes phase *{phase.value}*; refused while a later phase stands.

| undoes | leaves |
|---|---|
| {undoes} | {leaves} |
{ENDINGS}"""
