"""
Rows that a pass has to come back to, by key and never by content: those that the server would not have changed, with its error, and
those that a look found to disagree. Kept in the ledger until their pass is tried again.
"""

from __future__ import annotations

import json
from typing import Any

from steps.keyset import Key, decode, encode, shown_key
from steps.ledger import Ledger
from steps.masking import mask
from steps.mysql import VALUE, Session


def put(ledger: Ledger, session: Session, name: str, key: Key, error: str) -> int:
    """Record that the server refused the row *key* in pass *name*; returns how many are recorded."""
    session.run(f"INSERT INTO {ledger.table('quarantine')} (table_schema, table_name, plan_id, `pass`, `key`, error, at) "
                f"VALUES ({', '.join([VALUE] * 6)}, UTC_TIMESTAMP(3))", *ledger.key, name, encode(key), mask(error)[:1000])
    return int(session.value(f"SELECT COUNT(*) FROM {ledger.table('quarantine')} WHERE table_schema = {VALUE} AND table_name = {VALUE} "
                             f"AND plan_id = {VALUE} AND `pass` = {VALUE}", *ledger.key, name))


def rows(ledger: Ledger, name: str) -> list[dict[str, Any]]:
    """Key and error of every row that pass *name* was refused; none where no ledger is."""
    return [{"key": shown_key(decode(json.loads(key)) or ()), "error": error} for key, error in ledger.read(
        f"SELECT `key`, error FROM {ledger.table('quarantine')} WHERE table_schema = {VALUE} AND table_name = {VALUE} "
        f"AND plan_id = {VALUE} AND `pass` = {VALUE} ORDER BY id", *ledger.key, name)]


def keys(ledger: Ledger, name: str) -> list[Key]:
    """The key of every such row of pass *name*, as it goes into a statement."""
    return [decode(json.loads(key)) or () for (key,) in ledger.read(
        f"SELECT `key` FROM {ledger.table('quarantine')} WHERE table_schema = {VALUE} AND table_name = {VALUE} "
        f"AND plan_id = {VALUE} AND `pass` = {VALUE} ORDER BY id", *ledger.key, name)]


def clear(ledger: Ledger, name: str) -> None:
    """A pass that is tried again tries these rows again. Safe to repeat."""
    ledger.session.run(f"DELETE FROM {ledger.table('quarantine')} WHERE table_schema = {VALUE} AND table_name = {VALUE} "
                       f"AND plan_id = {VALUE} AND `pass` = {VALUE}", *ledger.key, name)
