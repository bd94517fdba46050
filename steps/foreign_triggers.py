"""
The table's own triggers on its clone, in their order, so that every step and our sync are rehearsed beside them (cases C40, C72).

Unqualified names in a body mean the scratch schema, where the tables it writes to stand by structure alone. A body that could
reach anything outside is never made here: it is told as *could not look*.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import Token

from steps import canary, catalogue, sample, stubs, sync
from steps.catalogue import Trigger
from steps.checks import words
from steps.clone import Clone
from steps.errors import ConnectionLost, LockWaited, Refused, StatementFailed
from steps.handover_names import Names, is_ours
from steps.mysql import VALUE, Session, quote
from steps.session_settings import SQL_MODE

REACHING_OUT = {"CALL", "GLOBAL", "PERSIST", "PERSIST_ONLY", "OUTFILE", "DUMPFILE", "LOAD_FILE", "GET_LOCK", "RELEASE_LOCK",
                "RELEASE_ALL_LOCKS", "SLEEP", "BENCHMARK"}


def clone_all(live: Session, clone: Clone) -> None:
    """Make every trigger of the live table that is not ours on the clone; those that cannot be made are told in the notes."""
    ours = sync.trigger_names(clone.plan.id)
    names = Names(clone.live_schema, clone.table)  # what a hand-over left goes before the first step
    standing = [t for t in catalogue.triggers(live, clone.live_schema, clone.table) if t.name not in ours and not is_ours(t, names)]
    if not standing:
        return
    around = _Around.of(live, clone.live_schema)
    for trigger in standing:
        try:
            reason = _clone(live, clone, around, trigger)
        except (Refused, StatementFailed) as error:
            if isinstance(error, ConnectionLost):
                raise
            reason = error.reason
        if reason:
            clone.notes.append(f"could not look: trigger {trigger.name} of the table was not rehearsed ({reason})")
        else:
            clone.foreign_triggers.append(trigger.name)
    refused = _act_once(clone) if clone.foreign_triggers else ""
    if refused:
        remove(clone, refused)


@dataclass(frozen=True)
class _Around:
    """What of the live server a body might name; names are compared without case."""

    schemas: set[str]
    tables: dict[str, str]
    views: set[str]
    routines: set[str]
    functions: set[str]

    @classmethod
    def of(cls, live: Session, schema: str) -> _Around:
        tables = live.query(f"SELECT TABLE_NAME, TABLE_TYPE FROM information_schema.TABLES WHERE TABLE_SCHEMA = {VALUE}", schema)
        return cls({str(name).lower() for (name,) in live.query("SELECT SCHEMA_NAME FROM information_schema.SCHEMATA")} | {schema.lower()},
                   {str(name).lower(): str(name) for name, kind in tables if kind == "BASE TABLE"},
                   {str(name).lower() for name, kind in tables if kind != "BASE TABLE"},
                   {str(name).lower() for (name,) in live.query(
                       f"SELECT ROUTINE_NAME FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = {VALUE}", schema)},
                   _loadable(live))


def _loadable(live: Session) -> set[str]:
    """Functions loaded into the server can do anything; those of MySQL's own components are among them and count all the same."""
    try:
        return {str(name).lower() for (name,) in live.query("SELECT UDF_NAME FROM performance_schema.user_defined_functions")}
    except StatementFailed:
        return set()


def _clone(live: Session, clone: Clone, around: _Around, trigger: Trigger) -> str:
    """Make one trigger; return why not, or nothing."""
    try:
        tokens = words.tokens(trigger.body)
    except words.Unreadable:
        return "its body cannot be read"
    if "/*!" in trigger.body or "@@" in trigger.body:
        return "its body has version comments or server variables"
    why = _reaches_out(tokens, around)
    if why:
        return why
    for token in tokens:
        table = around.tables.get(token.text.lower()) if token.token_type not in words.STRINGS else None
        if table and table != clone.table and not catalogue.exists(clone.session, clone.schema, table):
            stubs.build(live, clone, clone.live_schema, table, table, f"trigger {trigger.name}")
    clone.session.run(f"SET SESSION sql_mode = {VALUE}", trigger.sql_mode)
    try:
        clone.session.verbatim(f"CREATE DEFINER=CURRENT_USER TRIGGER {quote(trigger.name)} {trigger.timing} {trigger.event} "
                               f"ON {quote(clone.table)} FOR EACH ROW {trigger.body}")
    finally:
        clone.session.run(f"SET SESSION sql_mode = {VALUE}", SQL_MODE)
    return ""


def _reaches_out(tokens: Sequence[Token], around: _Around) -> str:
    for at, token in enumerate(tokens):
        word, following = token.text, tokens[at + 1].text if at + 1 < len(tokens) else ""
        if token.token_type in words.STRINGS:
            continue
        if following == "." and word.lower() in around.schemas:
            return f"its body names a table with its schema, {word}"
        if word.upper() in REACHING_OUT or (following == "(" and word.lower() in around.routines | around.functions):
            return f"its body uses {word}, which may act outside the clone"
        if word.lower() in around.views:
            return f"its body names the view {word}"
    return ""


def refuse_broken(clone: Clone, step: str) -> None:
    """
    After a step the table's own triggers must still take a row: MySQL accepts the ALTER and then fails every write (case C40).

    Raises:
        Refused: they do not.
    """
    if not clone.foreign_triggers:
        return
    reason = _act_once(clone)
    if reason:
        raise Refused(f"step {step}", f"afterwards the table's own triggers ({', '.join(clone.foreign_triggers)}) fail on every write: "
                      f"{reason}", "change or drop the trigger first, or correct the plan; nothing was touched")


def set_aside_broken(clone: Clone, step: str) -> None:
    """
    The same after a step of cleanup, which is days away: what it breaks goes off the clone with a note, and the rest is rehearsed on.

    Nothing is let through by that: the check `dependents` warns of such triggers now, and cleanup's own gate stops at them (case C40).
    """
    reason = _act_once(clone) if clone.foreign_triggers else ""
    if not reason:
        return
    gone = {column.lower() for column in clone.plan.removed_columns}
    standing = {trigger.name: trigger.body for trigger in catalogue.triggers(clone.session, clone.schema, clone.table)}
    naming = [name for name in clone.foreign_triggers if words.names(standing[name]) & gone]
    for broken in (naming, [name for name in clone.foreign_triggers if name not in naming]):  # where words do not tell which, all
        _drop(clone, broken)
        if broken:
            clone.notes.append(f"after cleanup's {step} the table's own triggers ({', '.join(broken)}) fail on every write: {reason}; "
                               "cleanup stops before that as long as they name what it removes")
        reason = _act_once(clone)
        if not reason:
            return


def _act_once(clone: Clone) -> str:
    """Insert, update and delete a row in transactions that are rolled back; the reason why that does not work, or nothing."""
    try:
        canary.sing(clone.session, clone.table, clone.schema, ())
        sample.touch(clone)
    except (LockWaited, Refused, StatementFailed) as error:
        if isinstance(error, ConnectionLost):
            raise
        return error.reason
    return ""


def remove(clone: Clone, reason: str) -> None:
    """Take them off the clone again, because they do not take rows that nobody but us would write; told in the notes."""
    clone.notes.append(f"could not look: the table's own triggers ({', '.join(clone.foreign_triggers)}) refuse a plain row ({reason}), so "
                       "steps and sync were rehearsed without them")
    _drop(clone, list(clone.foreign_triggers))


def _drop(clone: Clone, names: list[str]) -> None:
    for name in names:
        clone.session.verbatim(f"DROP TRIGGER {quote(name)}")
        clone.foreign_triggers.remove(name)
