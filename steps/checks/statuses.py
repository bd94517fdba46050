"""Values in a pair's columns, byte by byte, that the plan's maps do not know (cases C46, C48; F12)."""

from __future__ import annotations

from collections.abc import Iterable

from steps import sync
from steps.agreement import TEXTUAL
from steps.checks.finding import BOUNDED, Finding, Look
from steps.mysql import VALUE, quote
from steps.plan import ValueMap

NAME = "statuses"
LONGEST = 32
MOST = 10


def run(look: Look) -> list[Finding]:
    """
    Both sides of every value map, as far as the columns exist. One bounded read of the table a column.

    Raises:
        StatementFailed: 3024 when the read took longer than a minute.
    """
    return [finding for pair in look.plan.sync for finding in _pair(look, pair)]


def _pair(look: Look, pair: ValueMap) -> list[Finding]:
    found, nulls = _unknown(look, pair.old, pair.to_new, "to_new") if look.has(pair.old) else ([], 0)
    if look.has(pair.new):
        found += _unknown(look, pair.new, [*pair.to_old, *pair.keep_old], "to_old and keep_old")[0]
    return found + _nulls(look, pair, nulls)


def _unknown(look: Look, column: str, known: Iterable[str], maps: str) -> tuple[list[Finding], int]:
    """What the maps do not know, and in how many rows there is nothing at all: one read for both."""
    textual = sync.column_facts(look.session, look.schema, look.table, column).data_type in TEXTUAL
    value = f"CAST({f'CONVERT({quote(column)} USING utf8mb4)' if textual else quote(column)} AS BINARY)"
    words = [word.encode() for word in known]
    rows = look.session.query(
        f"SELECT {BOUNDED} {value}, COUNT(*) FROM {quote(look.schema)}.{quote(look.table)} "
        f"WHERE {value} IS NULL OR {value} NOT IN ({', '.join([VALUE] * len(words))}) GROUP BY 1 "
        f"ORDER BY MAX({value} IS NULL) DESC, 2 DESC, 1 LIMIT {MOST + 2}", *words)
    nulls = sum(int(count) for word, count in rows if word is None)
    rows = [row for row in rows if row[0] is not None]
    if not rows:
        return [], nulls
    listed = ", ".join(f"{_shown(word)} ({count} {'row' if count == 1 else 'rows'})" for word, count in rows[:MOST])
    more = " and more" if len(rows) > MOST else ""
    found = Finding(
        NAME, "refuse", f"column {look.table}.{column}",
        f"has values that {maps} of the plan's [[sync]] does not know, byte by byte: {listed}{more}",
        "correct these rows" + ("" if look.begun else f", or add the values to {maps.partition(' ')[0]} before the first run"))
    return [found], nulls


def _shown(word: bytes) -> str:
    text = word.decode(errors="backslashreplace")
    return repr(text if len(text) <= LONGEST else text[: LONGEST - 1] + "…")


def _nulls(look: Look, pair: ValueMap, count: int) -> list[Finding]:
    """Nothing can be made of NULL: such rows agree only while the new side is NULL as well."""
    if not count:
        return []
    return [Finding(
        NAME, "refuse", f"column {look.table}.{pair.old}",
        f"is NULL in {count} {'row' if count == 1 else 'rows'}: to_new has nothing for it, so {pair.new} keeps what "
        "it holds there and the pair agrees only if that is NULL too",
        "give these rows a value of to_new first; where the new side is NULL as well", accept="null-statuses")]
