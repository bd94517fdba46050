"""
The shadow write: one BEFORE UPDATE and one BEFORE INSERT trigger that keep both sides of every pair in step (design section 2).

UPDATE is created first and INSERT second, dropped the other way round (case C53), inside a hold, so that no client meets
one without the other. Bodies are compared with the catalogue, never assumed (case C73).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum

from steps import catalogue
from steps.agreement import ColumnFacts, Pair, pairs_of
from steps.errors import Refused
from steps.mysql import LONGEST_NAME, VALUE, Session, byte_literal, literal, quote
from steps.plan import Plan
from steps.session_settings import SQL_MODE


class SyncState(StrEnum):
    """What the catalogue shows of our triggers."""

    ON = "on"
    OFF = "off"
    PARTIAL = "only one of the two triggers is there"
    FOREIGN = "a trigger of our name has another body"


@dataclass(frozen=True)
class SyncTrigger:
    name: str
    event: str
    body: str

    def create(self, table: str, definer: str, follows: str | None) -> str:
        """The CREATE TRIGGER statement; *definer* is already quoted, *follows* is the last foreign trigger (case C72)."""
        order = f" FOLLOWS {quote(follows)}" if follows else ""
        return (f"CREATE DEFINER={definer} TRIGGER {quote(self.name)} BEFORE {self.event} ON {quote(table)} "
                f"FOR EACH ROW{order} {self.body}")

    def drop(self) -> str:
        return f"DROP TRIGGER {quote(self.name)}"


def trigger_names(plan_id: str) -> frozenset[str]:
    """The names of both of our triggers."""
    return frozenset(trigger_name(plan_id, event) for event in ("UPDATE", "INSERT"))


def trigger_name(plan_id: str, event: str) -> str:
    """`rollout_<plan>_bu` or `_bi`, shortened with a stable hash where MySQL's 64 characters do not suffice (case C20)."""
    name = f"rollout_{plan_id}_b{event[0].lower()}"
    if len(name) <= LONGEST_NAME:
        return name
    return f"rollout_{hashlib.sha256(plan_id.encode()).hexdigest()[:16]}_b{event[0].lower()}"


def column_facts(session: Session, schema: str, table: str, column: str) -> ColumnFacts:
    """
    Raises:
        Refused: the column is not there.
    """
    rows = session.query("SELECT DATA_TYPE, IS_NULLABLE, COLUMN_DEFAULT, EXTRA, CHARACTER_SET_NAME FROM information_schema.COLUMNS "
                         f"WHERE TABLE_SCHEMA = {VALUE} AND TABLE_NAME = {VALUE} AND COLUMN_NAME = {VALUE}", schema, table, column)
    if not rows:
        raise Refused(f"column {table}.{column}", "does not exist", "correct the plan, or the table has drifted")
    kind, nullable, default, extra, charset = rows[0]
    return ColumnFacts(str(kind).lower(), nullable == "YES", None if default is None else str(default),
                       "DEFAULT_GENERATED" in str(extra), charset == "utf8mb4")


def pairs(session: Session, plan: Plan, schema: str) -> tuple[Pair, ...]:
    """
    The plan's pairs with what the catalogue says of their columns (both sides exist from the last add on).

    Raises:
        Refused: a default that is not constant, or two defaults that do not agree, make "not supplied" undecidable (C50).
    """
    def facts(column: str) -> ColumnFacts:
        found = column_facts(session, schema, plan.table, column)
        if found.default_is_expression:
            raise Refused(f"column {plan.table}.{column}", "has a default that is not constant, so an INSERT trigger cannot tell "
                          "whether a client supplied it", "leave the column out of [[sync]] and renames")
        return found

    found = pairs_of(plan, facts)
    for pair in found:
        expected = pair.value_map.to_new.get(pair.old_default or "") if pair.value_map else pair.old_default
        if pair.old_default is not None and pair.new_default != expected:
            raise Refused(f"pair {pair.name}", f"has defaults {_said(pair.old_default)} and {_said(pair.new_default)}, which do not agree",
                          f"give {pair.new} the default {_said(expected)}" if expected is not None else "let the map know the old default")
        if pair.old_default is None and pair.new_default is not None:
            raise Refused(f"pair {pair.name}", f"has a default only on {pair.new}", "give both sides agreeing defaults, or none")
    return found


def _said(default: str | None) -> str:
    """A default as SQL has it."""
    return "NULL" if default is None else repr(default)


def sync_triggers(plan_id: str, pairs: tuple[Pair, ...]) -> tuple[SyncTrigger, SyncTrigger]:
    """
    The two triggers for *pairs*: UPDATE first, INSERT second.

    One small condition over all pairs comes first: a row whose pairs are settled, as most statements and every pass of ours
    leave them, passes through a single instruction. Each instruction and each part of its expression costs anew for every row.
    """
    nulls = [line for pair in pairs for line in _defaults_for_null(pair)]
    return (SyncTrigger(trigger_name(plan_id, "UPDATE"), "UPDATE", _body([], [_on_update(pair) for pair in pairs])),
            SyncTrigger(trigger_name(plan_id, "INSERT"), "INSERT", _body(nulls, [_on_insert(pair) for pair in pairs])))


@dataclass(frozen=True)
class _Rule:
    """When and how one side of a pair follows the other; the two conditions exclude each other."""

    pair: Pair
    old_follows: str
    new_follows: str

    @property
    def text(self) -> str:
        old, new = quote(self.pair.old), quote(self.pair.new)
        return (f"    IF {self.old_follows} THEN SET NEW.{old} = {self.pair.to_old('NEW.')};\n"
                f"    ELSEIF {self.new_follows} THEN SET NEW.{new} = {self.pair.to_new('NEW.')};\n    END IF;")


def _body(first: list[str], rules: list[_Rule]) -> str:
    settled = " AND ".join(rule.pair.settled("NEW.") for rule in rules)
    return "\n".join(["BEGIN", *first, f"  IF NOT ({settled}) THEN", *(rule.text for rule in rules), "  END IF;", "END"])


def state(session: Session, schema: str, table: str, wanted: tuple[SyncTrigger, ...]) -> SyncState:
    """What of *wanted* stands on the table, by name, timing, body and sql_mode."""
    there = {trigger.name: trigger for trigger in catalogue.triggers(session, schema, table)}
    found = [there.get(trigger.name) for trigger in wanted]
    for trigger, standing in zip(wanted, found, strict=True):
        if standing and (standing.body != trigger.body or standing.timing != "BEFORE" or standing.event != trigger.event
                         or set(standing.sql_mode.split(",")) != set(SQL_MODE.split(","))):
            return SyncState.FOREIGN
    if all(found):
        return SyncState.ON
    return SyncState.PARTIAL if any(found) else SyncState.OFF


def last_foreign_trigger(session: Session, schema: str, table: str, trigger: SyncTrigger) -> str | None:
    """The last BEFORE trigger of the same event that is not ours: the sync has to see the value it leaves (case C72)."""
    names = [t.name for t in catalogue.triggers(session, schema, table)
             if t.timing == "BEFORE" and t.event == trigger.event and t.name != trigger.name]
    return names[-1] if names else None


def _on_update(pair: Pair) -> _Rule:
    """The side that moved is followed; where both moved and do not agree, the new one wins (design section 2)."""
    old, new = quote(pair.old), quote(pair.new)
    old_moved = f"NOT ({pair.bytes_of(f'NEW.{old}')} <=> {pair.bytes_of(f'OLD.{old}')})"
    new_moved = f"NOT ({pair.bytes_of(f'NEW.{new}')} <=> {pair.bytes_of(f'OLD.{new}')})"
    return _Rule(pair, f"{new_moved} AND NOT {pair.agrees('NEW.')}{_and(pair.old_is_known('NEW.'))}",
                 f"{old_moved} AND NOT ({new_moved}){_and(pair.new_is_known('NEW.'))}{_unless_already_said(pair)}")


def _on_insert(pair: Pair) -> _Rule:
    """A side that holds its default was not supplied (case C50)."""
    new_given = f"NOT ({_is_default(pair, f'NEW.{quote(pair.new)}', pair.new_default)})"
    old_given = f"NOT ({_is_default(pair, f'NEW.{quote(pair.old)}', pair.old_default)})"
    return _Rule(pair, f"{new_given} AND NOT {pair.agrees('NEW.')}{_and(pair.old_is_known('NEW.'))}",
                 f"{old_given} AND NOT ({new_given}){_and(pair.new_is_known('NEW.'))}")


def _unless_already_said(pair: Pair) -> str:
    """A pass in which the new side decides sets the old one; a many-to-one value like cancelled must survive that (F13)."""
    if pair.value_map is None:
        return ""
    return f" AND NOT IFNULL({pair.bytes_of(f'NEW.{quote(pair.old)}')} = {pair.bytes_of(pair.to_old('NEW.'))}, FALSE)"


def _and(condition: str) -> str:
    return "" if condition == "TRUE" else f" AND {condition}"


def _defaults_for_null(pair: Pair) -> list[str]:
    """NULL in a NOT NULL column was not supplied (F10): the default takes its place before the server would say 1048."""
    sides = ((pair.old, pair.old_default, pair.old_nullable), (pair.new, pair.new_default, pair.new_nullable))
    return [f"  IF NEW.{quote(column)} IS NULL THEN SET NEW.{quote(column)} = {_constant(pair, default)}; END IF;"
            for column, default, nullable in sides if default is not None and not nullable]


def _is_default(pair: Pair, expression: str, default: str | None) -> str:
    if default is None:
        return f"{expression} IS NULL"
    return f"{pair.bytes_of(expression)} <=> {byte_literal(default) if pair.textual else _constant(pair, default)}"


def _constant(pair: Pair, default: str) -> str:
    return literal(default) if pair.textual or not default.lstrip("-").replace(".", "", 1).isdigit() else default
