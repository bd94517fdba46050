"""
What the plan's own SQL would do to the application that runs now, and to values that stand (cases C10, C13, C30, C31, C80, C88).

The rehearsal proves that a step runs; these are steps that run and still break somebody.
"""

from __future__ import annotations

from steps.checks import changes, taken_names
from steps.checks.changes import Change
from steps.checks.column_type import Column, lost, narrowed
from steps.checks.finding import Finding, Look
from steps.quoted_names import has_name

NAME = "statements"
NARROWING, LOST = "narrowing", "lost-attributes"


def run(look: Look) -> list[Finding]:
    """Reads the catalogue only. Steps whose effects the table has already are not judged again."""
    if not look.shape.columns:
        return []
    keyed, taken = _keyed(look), taken_names.columns(look)
    found = [_index_taken(*one) for one in taken_names.indexes(look)]
    for step, columns, made in changes.simulated(look):
        found += [finding for change in made for finding in _judged(look, step, columns, change, made)]
        found += [_taken(look, step, change, taken[step, change.column.lower()]) for change in made
                  if change.does == "add" and (step, change.column.lower()) in taken and change.column in look.shape.columns
                  and not any(other.does == "drop" and other.column.lower() == change.column.lower() for other in made)]
        found += [finding for change in made for finding in _of_a_key(look, step, columns.get(change.column.lower()), change, keyed)]
        found += [] if look.begun else _mixed(step, columns, made)
    return found


def _refuse(subject: str, what: str, remedy: str, accept: str | None = None) -> Finding:
    return Finding(NAME, "refuse", subject, what, remedy + (f", or go on with --accept {accept}" if accept else ""), accept)


def _judged(look: Look, step: str, columns: dict[str, Column], change: Change, made: list[Change]) -> list[Finding]:
    before = columns.get(change.column.lower())
    if change.does == "add":
        return _added(look, step, before, change, made)
    if change.does == "search index" and not look.begun:
        return [Finding(NAME, "warn", f"step {step}", "adds a FULLTEXT or SPATIAL index: it is built with writes blocked, and with a "
                        "FULLTEXT index no later change of the table is instant", "put it last, or keep it out of the rollout")]
    if before is None:
        return []  # done already, or the rehearsal says that there is no such column
    column = f"column {look.table}.{change.column}"
    if change.does == "drop":
        return [_dropped(column, step, change, made)]
    if change.does in ("rename", "modify") and change.to.lower() != change.column.lower():
        return [_refuse(column, f"is renamed to {change.to} inside step {step}: from that second on every request that names it fails with "
                        "1054", f'take it out and write a step `rename = {{ from = "{change.column}", to = "{change.to}" }}`')]
    return _modified(column, step, before, change.column_type) if change.column_type else []


def _dropped(column: str, step: str, change: Change, made: list[Change]) -> Finding:
    if change.column.lower() in {c.column.lower() for c in made if c.does == "add"}:
        return _refuse(column, f"is dropped and added again in step {step}, which loses its values", "use MODIFY COLUMN")
    return _refuse(column, f"is dropped in step {step}, while the old application still names it (1054 from that second on)",
                   "leave it to cleanup.drop")


def _added(look: Look, step: str, before: Column | None, change: Change, made: list[Change]) -> list[Finding]:
    """1364 for whoever does not name the column; a name that differs only by case is the same name (1060)."""
    column = f"column {look.table}.{change.column}"
    if before is not None and change.column not in look.shape.columns and not any(c.does == "drop" for c in made):
        there = next((name for name in look.shape.columns if name.lower() == change.column.lower()), change.column)
        return [_refuse(column, f"is added by step {step}, but the table has {there}, which is the same name (1060)",
                        "choose another name, or write it as the table does")]
    if before is None and change.column_type and not change.column_type.supplied:
        return [_refuse(column, f"is added NOT NULL without a default by step {step}: the old application, which does not name it, would "
                        "get 1364 for every INSERT, and rows that stand would get an empty value", "add it NULL, or give it a default")]
    return []


def _taken(look: Look, step: str, change: Change, there: str) -> Finding:
    wanted = f" as {change.column_type.type}" if change.column_type else ""
    return _refuse(f"column {look.table}.{change.column}", f"is added{wanted} by step {step}, but the table has a column of that name "
                   f"already, {there} (1060)", "choose another name, or take that column away first if nobody needs it")


def _index_taken(step: str, name: str, there: str) -> Finding:
    return _refuse(f"index {name}", f"is added by step {step}, but the table has an index of that name already, on {there} (1061)",
                   "choose another name, or rename that index first")


def _modified(column: str, step: str, before: Column, after: Column) -> list[Finding]:
    found = []
    reason, gone = narrowed(before, after), lost(before, after)
    if reason:
        found.append(_refuse(column, f"is narrowed by step {step}: {reason}; the old application writes such values still",
                             "leave it for after the rollout", NARROWING))
    if gone:
        found.append(_refuse(column, f"loses {', '.join(gone)} in step {step}, which does not repeat them: MODIFY and CHANGE keep nothing "
                             "that they do not name", "repeat them in the step, and in its .down.sql", LOST))
    return found


def _keyed(look: Look) -> dict[str, str]:
    """Columns of the primary key and of unique indexes, folded, with the index."""
    return {column.lower(): name for name, text in look.shape.indexes.items() if text.startswith(("PRIMARY", "UNIQUE"))
            for column in look.shape.columns if has_name(text, column)}


def _of_a_key(look: Look, step: str, before: Column | None, change: Change, keyed: dict[str, str]) -> list[Finding]:
    """Passes keep a key's value as a cursor, so the primary key stays as it is; a unique index compares by its column's collation."""
    if change.does == "primary key" and not look.begun:
        return [_refuse(f"step {step}", "changes the primary key, along which every pass walks", "do it outside the rollout")]
    index, after = keyed.get(change.column.lower()), change.column_type
    if index is None or before is None or after is None or change.does != "modify" or before.definition == after.definition:
        return []
    if index == "PRIMARY":
        return [_refuse(f"column {look.table}.{change.column}", f"is changed by step {step} from {before.definition} to "
                        f"{after.definition}, and is part of the primary key, along which every pass walks", "do it outside the rollout")]
    if before.collation == after.collation:
        return []
    return [_refuse(f"column {look.table}.{change.column}", f"gets another collation in step {step} ({before.definition} becomes "
                    f"{after.definition}), under which the unique index {index} may hold other values for equal (1062)",
                    "look for values that the new collation holds for equal", NARROWING)]


def _mixed(step: str, columns: dict[str, Column], made: list[Change]) -> list[Finding]:
    """One clause drags the others down to its own algorithm (case C10)."""
    classes = {_class(columns.get(change.column.lower()), change) for change in made} - {""}
    if len(classes) < 2:  # noqa: PLR2004  # one kind of work
        return []
    worst = "copy" if "copy" in classes else "foreign key" if "foreign key" in classes else "in place"
    return [Finding(NAME, "warn", f"step {step}", f"does work of several kinds ({', '.join(sorted(classes))}) in one statement, so all of "
                    f"it is done the way the slowest needs ({worst})", "split it, one kind a step")]


def _class(before: Column | None, change: Change) -> str:
    """A MODIFY that leaves the type as it is changes metadata only."""
    after = change.column_type
    same = before and after and (before.definition, before.nullable) == (after.definition, after.nullable)
    return "instant" if change.does == "modify" and same else change.algorithm_class
