"""A cursor comes back from JSON as the key it was, with its types (cases C57, C58)."""

from __future__ import annotations

import json
from datetime import date, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steps.keyset import Keyset, decode, encode, shown_key

PARTS = st.one_of(st.integers(-(2**63), 2**64 - 1), st.text(max_size=20), st.binary(max_size=16), st.datetimes(),
                  st.dates(), st.decimals(allow_nan=False, allow_infinity=False, places=3))


@given(st.lists(PARTS, min_size=1, max_size=4))
def test_any_key_survives_json(parts: list[object]) -> None:
    back = decode(json.loads(encode(tuple(parts)) or ""))

    assert back == tuple(parts)
    assert [type(part) for part in back or ()] == [type(part) for part in parts]


@pytest.mark.parametrize("key", [(2**64 - 1,), (b"\0" * 16,), (b"ab" + b"\0" * 14, "é"), (datetime(2026, 1, 2, 3, 4, 5, 678901),),  # noqa: DTZ001
                                 (date(2026, 1, 2),), (Decimal("9" * 30),)])
def test_the_keys_that_others_lost_survive(key: tuple[object, ...]) -> None:
    assert decode(json.loads(encode(key) or "")) == key


def test_no_cursor_stays_no_cursor() -> None:
    assert (encode(None), decode(None)) == (None, None)


def test_a_composite_key_is_compared_column_by_column() -> None:
    keyset = Keyset("s", "t", ("a", "b"))

    assert keyset.after((1, 2)) == ("((`a` > \x00?) OR (`a` = \x00? AND `b` > \x00?))", (1, 1, 2))
    assert keyset.up_to((1, 2))[1] == (1, 1, 2, 1, 2)
    assert keyset.after(None) == ("TRUE", ())


def test_bytes_are_shown_as_hex() -> None:
    assert shown_key((b"ab\0", 7, "x")) == "616200/7/x"
