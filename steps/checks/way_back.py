"""Values that the way back of a widened column has no room for (case C68)."""

from __future__ import annotations

from steps.checks import changes
from steps.checks.column_type import narrowed
from steps.checks.finding import BOUNDED, Finding, Look
from steps.mysql import quote

NAME = "way-back"


def run(look: Look) -> list[Finding]:
    """
    One bounded read for all columns of text that stand widened and that a `.down.sql` would shorten; none before the first run.

    Raises:
        StatementFailed: 3024 when the read took longer than a minute.
    """
    shorter = _shorter(look)
    if not shorter:
        return []
    sums = ", ".join(f"SUM(CHAR_LENGTH({quote(name)}) > {length})" for name, (_step, length) in shorter.items())
    counts = look.session.one(f"SELECT {BOUNDED} {sums} FROM {quote(look.schema)}.{quote(look.table)}")
    return [Finding(
        NAME, "warn", f"column {look.table}.{name}",
        f"holds {int(count)} value{'' if count == 1 else 's'} longer than {length} characters, for which the way back of step {step} has "
        "no room: a rollback keeps the column as wide as it is, and --drop-added refuses",
        "nothing, unless the column is to become short again; then shorten these values first")
        for (name, (step, length)), count in zip(shorter.items(), counts, strict=True) if count]


def _shorter(look: Look) -> dict[str, tuple[str, int]]:
    live = changes.live_columns(look)
    found: dict[str, tuple[str, int]] = {}
    for step in look.plan.pre_deploy.step:
        down = look.plan.sql_text.get(f"{step.ddl}.down.sql", "") if step.ddl else ""
        for change in changes.of(down, look.collation) if down and live else []:
            standing, after = live.get(change.column.lower()), change.column_type
            if change.does == "modify" and standing and after and after.characters is not None and standing.textual and (
                    narrowed(standing, after) and (standing.characters or 0) > after.characters):
                name = next(name for name in look.shape.columns if name.lower() == change.column.lower())
                found.setdefault(name, (step.name, after.characters))
    return found
