"""What names a column that the plan removes: everything that would break, or vanish silently (cases C37 to C41, C72)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from steps import catalogue, sync
from steps.checks import words
from steps.checks.finding import Finding, Look
from steps.mysql import VALUE, Row

NAME = "dependents"
NOT_SYSTEM = "NOT IN ('information_schema', 'mysql', 'performance_schema', 'sys')"


@dataclass(frozen=True)
class Dependent:
    """
    An object whose definition may name columns; *text* is None where the server does not show it to us.

    It speaks of our table only where its text also has all of *needs*: the table's name, from another schema its schema too.
    """

    subject: str
    text: str | None
    remedy: str
    needs: frozenset[str] = frozenset()


def run(look: Look) -> list[Finding]:
    """Matches words, not meaning: a column of the same name elsewhere in the text counts too."""
    early, late = _removed(look)
    found = _placed_after(look)
    for dependent in _dependents(look):
        if dependent.text is None:
            found.append(Finding(
                NAME, "warn", dependent.subject,
                "could not look: its definition is not shown to this account",
                "grant SHOW VIEW or SHOW_ROUTINE, or read it yourself",
                could_not_look=True))
            continue
        named = words.names(dependent.text)
        if dependent.needs <= named:
            found += _named(dependent, [column for folded, column in early.items() if folded in named], "refuse")
            found += _named(dependent, [column for folded, column in late.items() if folded in named - set(early)], "warn")
    return found


def _removed(look: Look) -> tuple[dict[str, str], dict[str, str]]:
    """Columns, as the plan writes them, by their folded names: those that go in a step's own SQL and those in cleanup."""
    early = [name for sql in words.steps_sql(look.plan).values() for name in words.removed_columns(sql)]
    late = list(look.plan.removed_columns)
    return {name.lower(): name for name in early}, {name.lower(): name for name in late}


def _named(dependent: Dependent, columns: list[str], severity: str) -> list[Finding]:
    if not columns:
        return []
    when = "a step of pre_deploy" if severity == "refuse" else "cleanup"
    return [Finding(
        NAME, severity, dependent.subject,
        f"names {', '.join(columns)}, which {when} removes",
        f"{dependent.remedy} before that; no earlier phase touches it" if severity == "warn" else dependent.remedy)]


def _placed_after(look: Look) -> list[Finding]:
    ours = {sync.trigger_name(look.plan.id, event) for event in ("UPDATE", "INSERT")}
    return [Finding(
        NAME, "warn", f"trigger {t.name}",
        f"acts before {t.event} on {look.table}; the sync trigger is placed after the last such trigger, so that it "
        "sees what that leaves",
        "nothing to do, unless its order is to change")
        for t in catalogue.triggers(look.session, look.schema, look.table)
        if t.timing == "BEFORE" and t.name not in ours and look.plan.filled_columns]


def _dependents(look: Look) -> Iterator[Dependent]:
    yield from _on_table(look)
    yield from _views(look)
    yield from _programs(look)


def _on_table(look: Look) -> Iterator[Dependent]:
    here = look.schema, look.table
    where = f"WHERE TABLE_SCHEMA = {VALUE} AND TABLE_NAME = {VALUE}"
    for name, text in look.session.query(f"SELECT COLUMN_NAME, GENERATION_EXPRESSION FROM information_schema.COLUMNS {where} "
                                         "AND GENERATION_EXPRESSION <> '' ORDER BY ORDINAL_POSITION", *here):
        yield Dependent(f"generated column {name}", str(text), "drop it, or generate it from another column")
    for name, text in look.session.query(f"SELECT INDEX_NAME, EXPRESSION FROM information_schema.STATISTICS {where} "
                                         "AND EXPRESSION IS NOT NULL ORDER BY 1, SEQ_IN_INDEX", *here):
        yield Dependent(f"index {name}", str(text), "drop it, or build it over another column")
    for name, text in sorted(catalogue.shape(look.session, *here).checks.items()):
        yield Dependent(f"check {name}", text, "drop it, or write it over another column")
    ours = {sync.trigger_name(look.plan.id, event) for event in ("UPDATE", "INSERT")}
    for trigger in catalogue.triggers(look.session, *here):
        if trigger.name not in ours:
            yield Dependent(f"trigger {trigger.name}", trigger.body, "rewrite it without them")


def _views(look: Look) -> Iterator[Dependent]:
    """`SELECT *` is stored with its columns written out, so star views are found too."""
    for schema, name, text in look.session.query(
            "SELECT v.TABLE_SCHEMA, v.TABLE_NAME, v.VIEW_DEFINITION FROM information_schema.VIEW_TABLE_USAGE u "
            "JOIN information_schema.VIEWS v ON v.TABLE_SCHEMA = u.VIEW_SCHEMA AND v.TABLE_NAME = u.VIEW_NAME "
            f"WHERE u.TABLE_SCHEMA = {VALUE} AND u.TABLE_NAME = {VALUE} ORDER BY 1, 2", look.schema, look.table):
        yield Dependent(f"view {schema}.{name}", str(text) if text else None, "rewrite it without them")


def _programs(look: Look) -> Iterator[Dependent]:
    """Triggers of other tables, events and routines of every schema; only those that mention the table at all."""
    mentions = f"LOCATE({VALUE}, {{}}) > 0"
    rows: list[Row] = look.session.query(
        "SELECT 'trigger', TRIGGER_SCHEMA, TRIGGER_NAME, ACTION_STATEMENT FROM information_schema.TRIGGERS "
        f"WHERE TRIGGER_SCHEMA {NOT_SYSTEM} AND NOT (EVENT_OBJECT_SCHEMA = {VALUE} AND EVENT_OBJECT_TABLE = {VALUE}) "
        f"AND {mentions.format('ACTION_STATEMENT')} ORDER BY 2, 3", look.schema, look.table, look.table)
    rows += look.session.query(
        "SELECT 'event', EVENT_SCHEMA, EVENT_NAME, EVENT_DEFINITION FROM information_schema.EVENTS "
        f"WHERE EVENT_SCHEMA {NOT_SYSTEM} AND {mentions.format('EVENT_DEFINITION')} ORDER BY 2, 3", look.table)
    rows += look.session.query(
        "SELECT LOWER(ROUTINE_TYPE), ROUTINE_SCHEMA, ROUTINE_NAME, ROUTINE_DEFINITION FROM information_schema.ROUTINES "
        f"WHERE ROUTINE_SCHEMA {NOT_SYSTEM} AND ((ROUTINE_DEFINITION IS NULL AND ROUTINE_SCHEMA = {VALUE} AND "
        f"ROUTINE_BODY = 'SQL') OR {mentions.format('ROUTINE_DEFINITION')}) ORDER BY 2, 3", look.schema, look.table)
    for kind, schema, name, text in rows:
        needs = {look.table.lower()} if schema == look.schema else {look.table.lower(), look.schema.lower()}
        yield Dependent(f"{kind} {schema}.{name}", None if text is None else str(text), "rewrite it without them", frozenset(needs))
