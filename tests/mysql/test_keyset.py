"""Every row once, whatever the key is made of, with and without a resume from JSON between chunks (cases C55 to C59)."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from steps import exact_look, passes, sync
from steps.errors import Refused
from steps.keyset import Key, Keyset, decode, encode
from steps.ledger import Ledger
from steps.mysql import VALUE, Session, quote
from steps.passes import Walk
from tests.conftest import App
from tests.mysql.conftest import Clients
from tests.plans import small

UNICODE = ["B", "a", "_x", "Z1", "z0", "É", "e9", "-1", "10", "9", "", "😀", "b'; --", "100%s", "x" * 191]
KEYS: dict[str, tuple[str, str, list[tuple[Any, ...]]]] = {
    "bigint unsigned": ("k BIGINT UNSIGNED", "k", [(n,) for n in (1, 2**63 - 1, 2**63, 2**64 - 1, 0)]),
    "bigint": ("k BIGINT", "k", [(n,) for n in (-(2**63), -1, 0, 1, 2**63 - 1)]),
    "binary": ("k BINARY(16)", "k", [(b"\0" * 16,), (b"ab" + b"\0" * 14,), (b"\xff" * 16,), (b"'\\%s:?" + b"\0" * 10,),
                                     (b"\0" * 15 + b"\1",)]),
    "varbinary": ("k VARBINARY(16)", "k", [(b"",), (b"\0",), (b"\0\0",), (b"a",), (b"a\0",)]),
    "varchar unicode_ci": ("k VARCHAR(191) COLLATE utf8mb4_unicode_ci", "k", [(v,) for v in UNICODE]),
    "varchar 0900_ai_ci": ("k VARCHAR(191) COLLATE utf8mb4_0900_ai_ci", "k", [(v,) for v in UNICODE]),
    "varchar bin": ("k VARCHAR(191) COLLATE utf8mb4_bin", "k", [(v,) for v in [*UNICODE, "A", "e", "é"]]),
    "char latin1": ("k CHAR(9) CHARACTER SET latin1", "k", [("é",), ("e1",), ("Z",), ("",), ("ß1",)]),
    "datetime(6)": ("k DATETIME(6)", "k", [("2026-01-02 03:04:05.000001",), ("2026-01-02 03:04:05.000002",), ("2026-01-02 03:04:05",),
                                           ("1000-01-01 00:00:00",), ("9999-12-31 23:59:59.999999",)]),
    "timestamp": ("k TIMESTAMP", "k", [("2026-03-29 01:59:59",), ("2026-03-29 02:30:00",), ("2026-10-25 02:30:00",)]),
    "date": ("k DATE", "k", [("2026-01-02",), ("2025-12-31",), ("1000-01-01",)]),
    "decimal": ("k DECIMAL(38,4)", "k", [(Decimal("-0.0001"),), (Decimal(9) * 10**33,), (Decimal("0.0001"),), (Decimal(0),)]),
    "composite": ("a VARCHAR(20) COLLATE utf8mb4_unicode_ci, b INT", "a, b", [(a, b) for a in ("x", "É", "y") for b in (-1, 0, 7)]),
    "composite descending": ("a INT, b BINARY(2), c INT", "a, b DESC, c", [
        (a, b, c) for a in (1, 2) for b in (b"\0\0", b"\0\1") for c in (1, 2)]),
    "odd name": ("`100%s``?:x` INT", "`100%s``?:x`", [(1,), (2,), (3,)]),
}


def make(client: App, columns: str, key: str) -> None:
    with client.connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE job ({columns}, status VARCHAR(32) NOT NULL DEFAULT 'pending', state VARCHAR(32) NOT NULL DEFAULT "
                       f"'pending', PRIMARY KEY ({key})) DEFAULT CHARSET utf8mb4")


@pytest.mark.parametrize("kind", KEYS)
def test_every_row_is_seen_and_filled_once(session: Session, clients: Clients, tmp_path: Path, kind: str) -> None:
    columns, key, rows = KEYS[kind]
    make(clients(), columns, key)
    for n, row in enumerate(rows):
        session.run(f"INSERT INTO job VALUES ({', '.join([VALUE] * len(row))}, {VALUE}, 'pending')", *row, ("completed", "failed")[n % 2])
    keyset = Keyset.of(session, str(session.schema), "job")
    in_order = session.query(f"SELECT {keyset.select} FROM job ORDER BY {keyset.select}")

    for chunk_rows in (1, 2, len(rows) + 1):
        assert walked(session, keyset, chunk_rows) == in_order

    plan = small(tmp_path, overrides=("backfill.first_chunk_rows=2", "backfill.largest_chunk_rows=2"))
    ledger = Ledger(session, str(session.schema), "job", plan.id)
    ledger.create()
    walk = Walk(session, keyset, sync.pairs(session, plan, str(session.schema)), plan.backfill)
    assert exact_look.disagreements(walk).count == len(rows)
    assert len(exact_look.disagreements(walk).keys) == min(10, len(rows))
    assert passes.fill(walk, ledger, "first").count == 0
    standing = ledger.passes()["first"]
    assert (standing["rows_examined"], standing["rows_changed"]) == (len(rows), len(rows))
    both = "(('completed', 'succeeded'), ('failed', 'failed'))"
    assert session.value(f"SELECT COUNT(*) FROM job WHERE (status, state) IN {both}") == len(rows)


def walked(session: Session, keyset: Keyset, rows: int) -> list[Key]:
    seen: list[Key] = []
    cursor: Key | None = None
    while chunk := keyset.next_keys(session, cursor, rows):
        seen += chunk
        cursor = decode(json.loads(encode(chunk[-1]) or ""))
        assert len(seen) < 100
    return seen


@pytest.mark.parametrize(("columns", "key", "reason"), [
    ("k FLOAT", "k", "key column k is float, which a cursor cannot carry exactly"),
    ("k DOUBLE", "k", "key column k is double"),
    ("k ENUM('b','a')", "k", "key column k is enum"),
    ("a INT, k TIME(3)", "a, k", "key column k is time"),
])
def test_a_key_that_a_cursor_cannot_carry_is_refused(session: Session, clients: Clients, columns: str, key: str, reason: str) -> None:
    make(clients(), columns, key)

    with pytest.raises(Refused, match=reason):
        Keyset.of(session, str(session.schema), "job")


def test_a_table_without_primary_key_is_refused(session: Session, clients: Clients) -> None:
    clients().run("CREATE TABLE job (id INT NULL UNIQUE)")

    with pytest.raises(Refused, match="has no primary key"):
        Keyset.of(session, str(session.schema), "job")


def test_the_way_behind_a_composite_cursor_uses_the_key(session: Session, clients: Clients) -> None:
    make(clients(), "a INT, b INT", "a, b")
    for a in range(40):
        session.run("INSERT INTO job (a, b) VALUES " + ", ".join(f"({a}, {b})" for b in range(50)))
    session.run("ANALYZE TABLE job")
    keyset = Keyset("", "job", ("a", "b"))
    condition, values = keyset.after((38, 47))
    plan = session.query(f"EXPLAIN FORMAT=TRADITIONAL SELECT a, b FROM job FORCE INDEX (PRIMARY) WHERE {condition} ORDER BY a, b LIMIT 10",
                         *values)

    assert (plan[0][4], plan[0][6]) == ("range", "PRIMARY")
    assert quote("a") in keyset.select
