"""What names a column that the plan removes: everything that would break, or vanish silently (cases C37 to C41, C72)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from steps import catalogue, sync
from steps.checks import dynamic_sql, words
from steps.checks.finding import Finding, Look
from steps.mysql import VALUE
from steps.quoted_names import column_of, parts

NAME = "dependents"
GENERATED, FUNCTIONAL = "MySQL refuses that (3108)", "MySQL refuses that (3837)"
ALONE = "one over that column alone would vanish without a word, one over several stops the change (3959)"


@dataclass(frozen=True)
class Dependent:
    """
    An object whose definition may name columns; *text* is None where the server does not show it to us.

    *stops* says what MySQL does about it when a column goes; without it the column goes, and the object breaks afterwards.
    """

    subject: str
    text: str | None
    remedy: str
    stops: str = ""


def run(look: Look) -> list[Finding]:
    """Matches words, not meaning: a column of the same name elsewhere in the text counts too."""
    early, late = _removed(look)
    found = _placed_after(look)
    for dependent in _dependents(look):
        if dependent.text is None:
            found.append(_unseen(dependent))
            continue
        named = words.names(dependent.text)
        found += _named(dependent, [column for folded, column in early.items() if folded in named], "a step of pre_deploy")
        found += _named(dependent, [column for folded, column in late.items() if folded in named - set(early)], "cleanup")
    return [*found, *_prepared(look, {**early, **late}), *_indexes(look, late), *_keys(look, {**early, **late})]


def of_cleanup(look: Look) -> list[Finding]:
    """What would break once cleanup's columns are gone: what only warns before the rollout refuses here; texts not shown are told too."""
    late = {name.lower(): name for name in look.plan.removed_columns}
    found = []
    for dependent in _dependents(look):
        if dependent.text is None:
            found.append(_unseen(dependent))
            continue
        columns = [late[folded] for folded in late if folded in words.names(dependent.text)]
        if columns:
            found.append(Finding(
                NAME, "refuse", dependent.subject,
                f"names {', '.join(columns)}, which cleanup removes" + (f"; {dependent.stops}" if dependent.stops else ""),
                dependent.remedy))
    return found + _prepared(look, late)


def _prepared(look: Look, going: dict[str, str]) -> list[Finding]:
    """Statements that a program puts together at run time name what nobody can read."""
    return [Finding(
        NAME, "warn", subject,
        f"could not look: it prepares statements of its own (PREPARE) that may name {look.table}, and columns of it go",
        f"read it yourself: it must not name {', '.join(going.values())}",
        could_not_look=True) for subject in (dynamic_sql.unseen(look) if going else [])]


def _unseen(dependent: Dependent) -> Finding:
    return Finding(
        NAME, "warn", dependent.subject,
        "could not look: its definition is not shown to this account",
        "grant SHOW VIEW or SHOW_ROUTINE, or read it yourself",
        could_not_look=True)


def _removed(look: Look) -> tuple[dict[str, str], dict[str, str]]:
    """Columns, as the plan writes them, by their folded names: those that go in a step's own SQL and those in cleanup."""
    early = [name for sql in words.steps_sql(look.plan).values() for name in words.removed_columns(sql)]
    early += [rename.old for rename in look.plan.renames] if look.plan.plan.renames_in_place else []
    late = list(look.plan.removed_columns)
    return {name.lower(): name for name in early}, {name.lower(): name for name in late}


def _named(dependent: Dependent, columns: list[str], when: str) -> list[Finding]:
    """What MySQL itself refuses stops the rollout at once, since cleanup's steps are rehearsed too; the rest breaks only then."""
    if not columns:
        return []
    severity = "refuse" if dependent.stops or when != "cleanup" else "warn"
    return [Finding(
        NAME, severity, dependent.subject,
        f"names {', '.join(columns)}, which {when} removes" + (f"; {dependent.stops}" if dependent.stops else ""),
        f"{dependent.remedy} before that; no earlier phase touches it" if severity == "warn" else dependent.remedy)]


def _indexes(look: Look, late: dict[str, str]) -> list[Finding]:
    """Dropping a column narrows an index that others share, without a word; narrowed, a unique one may collide (1062)."""
    kept = {name.lower() for name in look.plan.cleanup.drop_indexes}
    found = []
    for name, text in look.shape.indexes.items():
        columns = [column.lower() for part in parts(text) if (column := column_of(part)) is not None]
        gone = [late[column] for column in columns if column in late]
        if gone and len(gone) < len(columns) and name.lower() not in kept:
            found.append(Finding(
                NAME, "refuse", f"index {name}",
                f"stands on {', '.join(gone)}, which cleanup removes, and on other columns: MySQL would narrow it silently"
                + (", and rows may then collide in it (1062)" if text.startswith("UNIQUE") else ""),
                "build its successor in a step of the plan and name this one in cleanup.drop_indexes"))
    return found


def _keys(look: Look, removed: dict[str, str]) -> list[Finding]:
    """Foreign keys of the table (1828) and of others that refer to it (1829), columns to be removed on this side (case C44)."""
    rows = look.session.query(
        "SELECT CONSTRAINT_NAME, TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, 1828 FROM information_schema.KEY_COLUMN_USAGE WHERE TABLE_SCHEMA = "
        f"{VALUE} AND TABLE_NAME = {VALUE} AND REFERENCED_TABLE_NAME IS NOT NULL UNION ALL "
        "SELECT CONSTRAINT_NAME, TABLE_SCHEMA, TABLE_NAME, REFERENCED_COLUMN_NAME, 1829 FROM information_schema.KEY_COLUMN_USAGE "
        f"WHERE REFERENCED_TABLE_SCHEMA = {VALUE} AND REFERENCED_TABLE_NAME = {VALUE} ORDER BY 2, 3, 1",
        look.schema, look.table, look.schema, look.table)
    return [Finding(
        NAME, "refuse", f"foreign key {name} of {schema}.{table}",
        f"needs {removed[str(column).lower()]}, which the plan removes: MySQL refuses that ({number})",
        "drop the foreign key in a step of the plan first, or keep the column")
        for name, schema, table, column, number in rows if str(column).lower() in removed]


def _placed_after(look: Look) -> list[Finding]:
    ours = sync.trigger_names(look.plan.id)
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
    ours = sync.trigger_names(look.plan.id)
    for program in look.programs:
        if not (program.own and program.name in ours):
            yield Dependent(program.subject, program.text, "rewrite it without them")


def _on_table(look: Look) -> Iterator[Dependent]:
    here = look.schema, look.table
    where = f"WHERE TABLE_SCHEMA = {VALUE} AND TABLE_NAME = {VALUE}"
    for name, text in look.session.query(f"SELECT COLUMN_NAME, GENERATION_EXPRESSION FROM information_schema.COLUMNS {where} "
                                         "AND GENERATION_EXPRESSION <> '' ORDER BY ORDINAL_POSITION", *here):
        yield Dependent(f"generated column {name}", str(text), "drop it, or generate it from another column", GENERATED)
    for name, text in look.session.query(f"SELECT INDEX_NAME, EXPRESSION FROM information_schema.STATISTICS {where} "
                                         "AND EXPRESSION IS NOT NULL ORDER BY 1, SEQ_IN_INDEX", *here):
        yield Dependent(f"index {name}", str(text), "drop it, or build it over another column", FUNCTIONAL)
    for name, text in sorted(look.shape.checks.items()):
        yield Dependent(f"check {name}", text, "drop it, or write it over another column", ALONE)


def _views(look: Look) -> Iterator[Dependent]:
    """`SELECT *` is stored with its columns written out, so star views are found too."""
    for schema, name, text in look.session.query(
            "SELECT v.TABLE_SCHEMA, v.TABLE_NAME, v.VIEW_DEFINITION FROM information_schema.VIEW_TABLE_USAGE u "
            "JOIN information_schema.VIEWS v ON v.TABLE_SCHEMA = u.VIEW_SCHEMA AND v.TABLE_NAME = u.VIEW_NAME "
            f"WHERE u.TABLE_SCHEMA = {VALUE} AND u.TABLE_NAME = {VALUE} ORDER BY 1, 2", look.schema, look.table):
        yield Dependent(f"view {schema}.{name}", str(text) if text else None, "rewrite it without them")
